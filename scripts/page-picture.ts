/** What a picture of the billing page tells of the page that it shows: a text chunk of the PNG holds its hash. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { builtFolder } from '../src/http/web-files.ts'

export const picture = new URL('../docs/page.png', import.meta.url)

/** Of the bundle, which changes with what is shown and not with a comment. */
export function hashPage(): string {
  const assets = new URL('page/assets/', builtFolder)
  const hash = createHash('sha256')
  // A name holds the hash of its content.
  for (const name of readdirSync(assets).sort()) hash.update(`${name}\n`)
  return hash.digest('hex')
}

const keyword = 'Source'
/** The signature and the first chunk of a PNG, which says its size. */
const headBytes = 8 + 25

/** The same picture with a text chunk after its head. */
export function withText(png: Buffer, text: string): Buffer {
  const body = Buffer.from(`tEXt${keyword}\0${text}`, 'latin1')
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(body.length - 4)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([png.subarray(0, headBytes), length, body, sum, png.subarray(headBytes)])
}

/** The hash of the page that docs/page.png shows; null in a picture without one. */
export function readPictured(): string | null {
  return /tEXtSource\0([\da-f]{64})/.exec(readFileSync(picture).toString('latin1'))?.[1] ?? null
}
