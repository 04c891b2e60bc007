/** Reads lines from a stream of bytes, in constant memory. */

/** Maximum length of a line, far longer than any invoice. A file without line ends must not fill the memory. */
const maximumLineBytes = 16 * 1024 * 1024

export interface TextLine {
  /** Line number, counted from 1. Blank lines count. */
  number: number
  /** Null when the line cannot be read. `reason` then tells why. */
  text: string | null
  reason?: string
}

/** Yields every line that is not blank. Lines end in LF or CRLF. A byte order mark at the start is skipped. */
export async function* readLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<TextLine> {
  const utf8 = new TextDecoder('utf-8', { fatal: true })
  const parts: Uint8Array[] = []
  let held = 0
  let number = 0

  function finish(end: Uint8Array): TextLine | null {
    number++
    const length = held + end.length
    const line = parts.length === 0 ? end : Buffer.concat([...parts, end])
    parts.length = 0
    held = 0
    if (length > maximumLineBytes)
      return { number, text: null, reason: `is longer than ${maximumLineBytes} bytes` }
    try {
      const text = utf8.decode(line).trim()
      return text === '' ? null : { number, text }
    } catch {
      return { number, text: null, reason: 'is not UTF-8' }
    }
  }

  for await (const chunk of bytes) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = finish(chunk.subarray(start, end))
      if (line !== null) yield line
      start = end + 1
    }
    const rest = chunk.subarray(start)
    // A line that is already too long is not kept. Only its length is counted.
    if (held <= maximumLineBytes) parts.push(rest)
    held += rest.length
  }
  const last = held === 0 ? null : finish(new Uint8Array())
  if (last !== null) yield last
}
