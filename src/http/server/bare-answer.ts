import { STATUS_CODES } from '../../sources/calls/node-http.ts'

function writeHeaderLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

/**
 * Security headers of every answer on every port, unless a route sets its own policy. Answers are data for programs,
 * never a page, and may not be embedded.
 */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}

/** A complete JSON answer that ends its connection. Used on a raw socket, where there is no request to answer. */
export function writeBareAnswer(status: number, headers: Record<string, string>, body: string): string {
  const lines = writeHeaderLines({
    date: new Date().toUTCString(),
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
    connection: 'close',
    ...securityHeaders,
  })
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`
}
