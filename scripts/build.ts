/**
 * Builds what the sources do not hold as it is used: the pages for browsers, Stripe's library in one file, and the modules that other
 * programs import. `npm ci` runs it, and so do the tests. A part whose inputs are as they were is left alone.
 */
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { builtFolder } from '../src/http/web-files.ts'

const root = new URL('..', import.meta.url)

interface Part {
  /** Files that it is made of; a change of a package's version is one of package-lock.json. */
  inputs: readonly string[]
  /** A file that is there once it is built. */
  output: URL
  /** Imported only when it is needed: the packages that build take long to load. */
  build(): Promise<void>
}

const parts: Record<string, Part> = {
  page: {
    inputs: ['src/domain/**/*.ts', 'src/web/**/*.*', 'src/sdk/*.ts', 'scripts/build-page.ts'],
    output: new URL('page/page.html', builtFolder),
    build: async () => (await import('./build-page.ts')).buildPage(builtFolder),
  },
  reference: {
    inputs: ['scripts/build-reference.ts'],
    output: new URL('reference/', builtFolder),
    build: async () => (await import('./build-reference.ts')).buildReference(builtFolder),
  },
  stripe: {
    inputs: ['scripts/build-modules.ts'],
    output: new URL('stripe.cjs', builtFolder),
    build: async () => (await import('./build-modules.ts')).buildStripe(builtFolder),
  },
  mcp: {
    inputs: ['scripts/build-modules.ts'],
    output: new URL('mcp.js', builtFolder),
    build: async () => (await import('./build-modules.ts')).buildMcp(builtFolder),
  },
  library: {
    inputs: ['src/domain/**/*.ts', 'src/sdk/*.ts', 'scripts/build-modules.ts'],
    output: new URL('dist/src/sdk/client.js', root),
    build: async () => (await import('./build-modules.ts')).buildLibrary(new URL('dist/src/', root)),
  },
}

const inputsFile = new URL('inputs.json', builtFolder)
const built: Record<string, string> = existsSync(inputsFile)
  ? JSON.parse(readFileSync(inputsFile, 'utf8'))
  : {}
for (const [name, { inputs, output, build }] of Object.entries(parts)) {
  const digest = digestFiles(['package-lock.json', ...inputs])
  if (built[name] === digest && existsSync(output)) continue
  await build()
  built[name] = digest
  mkdirSync(builtFolder, { recursive: true })
  writeFileSync(inputsFile, JSON.stringify(built))
}

function digestFiles(patterns: readonly string[]): string {
  const digest = createHash('sha256')
  for (const path of globSync(patterns, { cwd: root }).sort())
    digest.update(`${path}\n`).update(readFileSync(new URL(path, root)))
  return digest.digest('hex')
}
