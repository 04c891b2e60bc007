/**
 * Finds request lines with more than one space between their parts. Node's parser takes several as one, as RFC 9112 allows,
 * and does not show them; a proxy before it may read such a line otherwise.
 */
import type { IncomingMessage } from 'node:http'
import type { Connection } from './connection.ts'

/** The error's code, in the form of those of Node's parser. */
export const spacedLine = 'HPE_SPACED_LINE'

const spacedLines = /^([A-Z-]+) (?: +(\S+) +|(\S+) {2,})HTTP\//gm

/** A longer line is refused by the parser. */
const maxLineLength = 16 * 1024

/** Looks at what arrives, before Node reads it. A piece that looks like a request and is none, as in a body, does no harm. */
export function watchRequestLines(connection: Connection): void {
  let begun = ''
  connection.socket.prependListener('data', (chunk: Buffer) => {
    if (begun === '' && chunk.at(-1) === newline && !chunk.includes('  ')) return
    const text = begun + chunk.toString('latin1')
    const lineStart = text.lastIndexOf('\n') + 1
    begun = text.length - lineStart > maxLineLength ? '' : text.slice(lineStart)
    for (const [, method, target, other] of text.matchAll(spacedLines))
      connection.spaced = `${method} ${target ?? other}`
  })
}

const newline = 0x0a

export function isSpaced({ spaced }: Connection, { method, url }: IncomingMessage): boolean {
  return spaced !== null && spaced === `${method} ${url}`
}
