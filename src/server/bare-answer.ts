import { STATUS_CODES } from '../node-http.ts'

/** Headers that stand together in the head of an answer. */
export interface HeadSet {
  pairs: readonly (readonly [name: string, value: string])[]
  /** The lines that are sent, each with its CRLF. */
  lines: string
}

export function createHeadSet(headers: Readonly<Record<string, string>>): HeadSet {
  const pairs = Object.entries(headers)
  return { pairs, lines: pairs.map(([name, value]) => `${name}: ${value}\r\n`).join('') }
}

/** Headers of every answer of every port: it is data for programs, never a page, and may not be embedded. */
export const securityHeaders = createHeadSet({
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
})

/**
 * A whole answer of JSON, for a socket on which there is no request to answer. It closes the connection by default.
 * `moreLines` have a CRLF each.
 */
export function writeBareAnswer(
  status: number,
  headers: Record<string, string>,
  body: string,
  { connection = 'close', moreLines = '' } = {},
): string {
  const head = createHeadSet({
    date: new Date().toUTCString(),
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
    connection,
  })
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.lines}${securityHeaders.lines}${moreLines}\r\n${body}`
}
