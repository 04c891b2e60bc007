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

/** Enough for an XML declaration, packed or not. */
const declarationBytes = 200
const headBytes = 30
const descriptorBytes = 16

/** The first file of a ZIP archive; anything else as it is. The first chunk holds at least the beginning of an XML declaration. */
async function* unpack(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const input = openInput(bytes)
  try {
    await input.fill(declarationBytes)
    if (!isEntry(input.head)) return yield* input.rest()
    await skipFolders(input)
    await input.fill(declarationBytes)
    const inflate = createInflateRaw()
    pipeline(Readable.from(input.rest()), inflate, () => {})
    yield* inflate
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'Z_BUF_ERROR') throw notWhole()
    throw code === 'Z_DATA_ERROR' ? new FileError('is a damaged ZIP archive') : error
  } finally {
    await input.close()
  }
}

const notWhole = () => new FileError('is cut off: the ZIP archive is not whole')

const isEntry = (head: Buffer) => head.subarray(0, 4).equals(Buffer.from('PK\x03\x04'))

type Input = ReturnType<typeof openInput>

/** Bytes of which the beginning can be looked at. */
function openInput(bytes: AsyncIterable<Uint8Array>) {
  const chunks = bytes[Symbol.asyncIterator]()
  const input = {
    head: Buffer.alloc(0) as Buffer,
    /** Until the head has so many bytes, or all. */
    async fill(size: number): Promise<void> {
      while (input.head.length < size) {
        const { done, value } = await chunks.next()
        if (done) return
        input.head = Buffer.concat([input.head, value])
      }
    },
    async skip(size: number): Promise<void> {
      await input.fill(size)
      input.head = input.head.subarray(size)
    },
    async *rest(): AsyncGenerator<Uint8Array> {
      if (input.head.length > 0) yield input.head
      yield* { [Symbol.asyncIterator]: () => chunks }
    },
    close: () => chunks.return?.(),
  }
  return input
}

/** To the data of the first file. Folders are entries of their own, with a slash at the end of their names. */
async function skipFolders(input: Input): Promise<void> {
  for (;;) {
    await input.fill(headBytes)
    if (input.head.length < headBytes) throw notWhole()
    if (!isEntry(input.head)) throw new FileError('is a ZIP archive without a file')
    const [flags = 0, method, name = 0, extra = 0] = [6, 8, 26, 28].map(at => input.head.readUInt16LE(at))
    const size = input.head.readUInt32LE(18)
    await input.fill(headBytes + name)
    const isFolder = input.head[headBytes + name - 1] === '/'.charCodeAt(0)
    if (!isFolder && ((flags & 1) === 1 || method !== 8))
      throw new FileError('is a ZIP archive that cannot be read: unpack it')
    await input.skip(headBytes + name + extra)
    if (!isFolder) return
    await input.skip(size)
    if ((flags & 8) === 8) await input.skip(descriptorBytes)
  }
}
