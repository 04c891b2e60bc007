/** Decodes an XML file in the encoding that the file declares. A ZIP archive is unpacked first. */
import { pipeline, Readable } from 'node:stream'
import { createInflateRaw } from 'node:zlib'

/** Thrown for a wrong or incomplete file. The message continues the file's name, for example "is cut off …". */
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

/** Chooses the encoding by the byte order mark, then by the XML declaration. The default is UTF-8. */
function createDecoder(firstChunk: Uint8Array): TextDecoder {
  const start = Buffer.from(firstChunk.subarray(0, 200)).toString('latin1')
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

/** Enough bytes for an XML declaration. */
const declarationBytes = 200
const headerBytes = 30
const descriptorBytes = 16

/**
 * Yields the first file of a ZIP archive. Other input is passed on unchanged. The first chunk holds at least the start of an XML
 * declaration.
 */
async function* unpack(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const input = openInput(bytes)
  try {
    await input.fill(declarationBytes)
    if (!isEntry(input.start)) return yield* input.rest()
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

const isEntry = (bytes: Buffer) => bytes.subarray(0, 4).equals(Buffer.from('PK\x03\x04'))

type Input = ReturnType<typeof openInput>

/** Wraps a stream of bytes so that the first bytes can be read without being consumed. */
function openInput(bytes: AsyncIterable<Uint8Array>) {
  const chunks = bytes[Symbol.asyncIterator]()
  const input = {
    start: Buffer.alloc(0) as Buffer,
    /** Reads until `start` has `size` bytes, or until the input ends. */
    async fill(size: number): Promise<void> {
      while (input.start.length < size) {
        const { done, value } = await chunks.next()
        if (done) return
        input.start = Buffer.concat([input.start, value])
      }
    },
    async skip(size: number): Promise<void> {
      await input.fill(size)
      input.start = input.start.subarray(size)
    },
    async *rest(): AsyncGenerator<Uint8Array> {
      if (input.start.length > 0) yield input.start
      yield* { [Symbol.asyncIterator]: () => chunks }
    },
    close: () => chunks.return?.(),
  }
  return input
}

/** Skips to the data of the first file. Folders are entries with a name that ends in a slash. */
async function skipFolders(input: Input): Promise<void> {
  for (;;) {
    await input.fill(headerBytes)
    if (input.start.length < headerBytes) throw notWhole()
    if (!isEntry(input.start)) throw new FileError('is a ZIP archive without a file')
    const [flags = 0, method, name = 0, extra = 0] = [6, 8, 26, 28].map(at => input.start.readUInt16LE(at))
    const size = input.start.readUInt32LE(18)
    await input.fill(headerBytes + name)
    const isFolder = input.start[headerBytes + name - 1] === '/'.charCodeAt(0)
    if (!isFolder && ((flags & 1) === 1 || method !== 8))
      throw new FileError('is a ZIP archive that cannot be read: unpack it')
    await input.skip(headerBytes + name + extra)
    if (!isFolder) return
    await input.skip(size)
    if ((flags & 8) === 8) await input.skip(descriptorBytes)
  }
}
