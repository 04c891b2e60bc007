/**
 * What npm runs after an installation in a checkout. Plain JavaScript: a Node that is too old must get an answer as well. The script
 * is named `postprepare`: of one named `prepare`, npm would warn everybody who installs the package.
 */
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
