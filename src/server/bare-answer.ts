import { STATUS_CODES } from 'node:http'

/** On every answer of every port: it is data for programs, never a page, and nobody else's to embed. */
export const securityHeaders = [
  ['x-content-type-options', 'nosniff'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cross-origin-resource-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
] as const

export const securityLines = writeSecurityLines({})

/** Their text with other values where `given` has some. */
export function writeSecurityLines(given: Record<string, string>): string {
  const headers = { ...Object.fromEntries(securityHeaders), ...given }
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\r\n')
}

/** A whole answer of JSON, for a socket on which there is no request to answer. It closes the connection, unless told. */
export function writeBareAnswer(
  status: number,
  headers: Record<string, string>,
  body: string,
  connection = 'close',
): string {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `date: ${new Date().toUTCString()}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    securityLines,
    `connection: ${connection}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
