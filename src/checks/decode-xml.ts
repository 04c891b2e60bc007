/** An XML file's text: in the encoding that it names, out of a ZIP archive if it is in one. */
import { pipeline, Readable } from 'node:stream'
import { createInflateRaw } from 'node:zlib'

/** A file that is not what it should be, or not whole. The message continues its name: "is cut off …". */
export class FileError extends Error {}

export async function* decodeXml(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: TextDecoder | null = null
  try {
    for await (const chunk of unpack(bytes)) {
      decoder ??= createDecoder(chunk)
      yield decoder.decode(chunk, { stream: true })
    }
    yield decoder?.decode() ?? ''
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new FileError(`holds bytes that are not ${decoder?.encoding}, the encoding that it names`)
  }
}

/** By the byte order mark, else by the XML declaration; else UTF-8. */
function createDecoder(head: Uint8Array): TextDecoder {
  const start = Buffer.from(head.subarray(0, 200)).toString('latin1')
  const mark = /^(\xfe\xff|\xff\xfe)/.exec(start)?.[1]
  const named =
    /^(?:\xef\xbb\xbf)?<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']/.exec(start)?.[1] ?? 'utf-8'
  const label = mark === undefined ? named : mark === '\xfe\xff' ? 'utf-16be' : 'utf-16le'
  try {
    return new TextDecoder(label, { fatal: true })
  } catch {
    throw new FileError(`is in the encoding ${label}, which is not known here`)
  }
}

const headBytes = 30

/** The first file of a ZIP archive; anything else as it is. The first chunk holds at least the beginning of an XML declaration. */
async function* unpack(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks = bytes[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  async function fill(size: number): Promise<void> {
    while (head.length < size) {
      const { done, value } = await chunks.next()
      if (done) return
      head = Buffer.concat([head, value])
    }
  }
  async function* rest(): AsyncGenerator<Uint8Array> {
    if (head.length > 0) yield head
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  try {
    await fill(200)
    if (!head.subarray(0, 4).equals(Buffer.from('PK\x03\x04'))) return yield* rest()
    if (head.length < headBytes) throw new FileError('is cut off: the ZIP archive is not whole')
    const [flags, method, name, extra] = [6, 8, 26, 28].map(at => head.readUInt16LE(at))
    if (((flags ?? 0) & 1) === 1 || method !== 8)
      throw new FileError('is a ZIP archive that cannot be read: unpack it')
    const start = headBytes + (name ?? 0) + (extra ?? 0)
    await fill(start)
    head = head.subarray(start)
    const inflate = createInflateRaw()
    pipeline(Readable.from(rest()), inflate, () => {})
    yield* inflate
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'Z_BUF_ERROR') throw new FileError('is cut off: the ZIP archive is not whole')
    throw code === 'Z_DATA_ERROR' ? new FileError('is a damaged ZIP archive') : error
  } finally {
    await chunks.return?.()
  }
}
