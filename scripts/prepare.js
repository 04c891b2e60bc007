/** What npm runs after an installation. Plain JavaScript: a Node that is too old must get an answer as well. */
import { createRequire } from 'node:module'

/** @param {string} name */
const isInstalled = name => {
  try {
    createRequire(import.meta.url).resolve(`${name}/package.json`)
    return true
  } catch {
    return false
  }
}

// The packages that the build needs, and the Node that runs it, are development dependencies.
if (process.features.typescript && isInstalled('esbuild')) await import('./build.ts')
else
  process.stdout.write(
    'This checkout is not built: that takes the development dependencies and Node 24 or newer.\n',
  )
