/** Modules in one file each. */
import { rename } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/** Stripe's library: as the hundreds of files that it consists of, it is 23 MB and takes twice as long to load. */
export async function buildStripe(folder: URL): Promise<void> {
  const entry = createRequire(import.meta.url).resolve('stripe')
  await bundle(entry, new URL('stripe.cjs', folder), { platform: 'node', target: 'node24' })
}

/** The MCP server's library: as three packages it is 17 MB, and takes twice as long to load. */
export async function buildMcp(folder: URL): Promise<void> {
  const entry = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server'))
  await bundle(entry, new URL('mcp.js', folder), {
    ...{ platform: 'node', format: 'esm', target: 'node24', minify: true },
  })
}

/** `fatura/client` and `fatura/link` of a checkout; `npm run compile` writes them, with their types, for a package. */
export async function buildLibrary(folder: URL): Promise<void> {
  for (const name of ['sdk/client', 'sdk/link'])
    await bundle(pathOf(`../src/${name}.ts`), new URL(`${name}.js`, folder), {
      format: 'esm',
      target: 'es2023',
    })
}

/** Another process may read the file meanwhile: it is replaced whole. */
async function bundle(entry: string, file: URL, options: BuildOptions): Promise<void> {
  const written = new URL(`${file.href}.${process.pid}`)
  await build({ entryPoints: [entry], outfile: fileURLToPath(written), bundle: true, ...options })
  await rename(written, file)
}
