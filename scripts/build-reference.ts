/** The API reference's one script: taken out of its package, named by its content, and compressed. */
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib } from 'node:zlib'
import scalar from '@scalar/fastify-api-reference'
import Fastify from 'fastify'
import { nameContent } from '../src/http/static-files.ts'

/** The best takes 20 s for 9 % less. */
const brotliQuality = 6

export async function buildReference(buildFolder: URL): Promise<void> {
  const folder = new URL('reference/', buildFolder)
  await mkdir(folder, { recursive: true })
  const script = await readScript()
  const name = `scalar-${nameContent(script)}.js`
  const params = {
    [zlib.BROTLI_PARAM_QUALITY]: brotliQuality,
    [zlib.BROTLI_PARAM_SIZE_HINT]: script.length,
  }
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(script, { params }),
    promisify(gzip)(script, { level: 9 }),
  ])
  // Others may read while this writes: each comes whole, and the one that is looked for comes last.
  for (const [file, content] of [
    [`${name}.gz`, gz],
    [`${name}.br`, br],
  ] as const) {
    const written = new URL(`${file}.${process.pid}`, folder)
    await writeFile(written, content)
    await rename(written, new URL(file, folder))
  }
  for (const file of await readdir(folder))
    if (!file.startsWith(name)) await rm(new URL(file, folder), { force: true })
}

/** The package gives its script to those who ask its plugin: the plain package would bring 130 more along. */
async function readScript(): Promise<Buffer> {
  const app = Fastify()
  await app.register(scalar, { routePrefix: '/docs', configuration: { content: {} } })
  const answer = await app.inject('/docs/js/scalar.js')
  await app.close()
  if (answer.statusCode !== 200 || answer.rawPayload.length < 1_000_000)
    throw new Error(`The script of the API reference is not where it was: status ${answer.statusCode}.`)
  return answer.rawPayload
}
