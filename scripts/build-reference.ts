/** The API reference's one script: taken out of its package, named by its content, and compressed. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
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
  const there = await readdir(folder)
  if (there.includes(`${name}.br`) && there.includes(`${name}.gz`)) return
  await Promise.all(there.map(file => rm(new URL(file, folder))))
  const params = {
    [zlib.BROTLI_PARAM_QUALITY]: brotliQuality,
    [zlib.BROTLI_PARAM_SIZE_HINT]: script.length,
  }
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(script, { params }),
    promisify(gzip)(script, { level: 9 }),
  ])
  // The one that is looked for comes last.
  await writeFile(new URL(`${name}.gz`, folder), gz)
  await writeFile(new URL(`${name}.br`, folder), br)
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
