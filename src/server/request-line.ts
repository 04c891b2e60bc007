/**
 * Finds request lines with more than one space between their parts. Node's parser takes several as one, as RFC 9112 allows,
 * and does not show them; a proxy before it may read such a line otherwise.
 */
import type { IncomingMessage } from 'node:http'
import type { Connection } from './connection.ts'

/** The error's code, in the form of those of Node's parser. */
export const spacedLine = 'HPE_SPACED_LINE'

/** To be called for each request of a connection, while Node's parser is at it. */
export function isSpaced(connection: Connection, request: IncomingMessage): boolean {
  const { method, url, socket, headers } = request
  const { bytesRead, parser } = socket as typeof socket & { parser?: Parser | null }
  const headBegan = connection.bytesRead
  const bytes = bytesRead - headBegan
  const hasBody = (headers['content-length'] ?? headers['transfer-encoding']) !== undefined
  // How much of what comes next is a body is not known here.
  connection.bytesRead = hasBody ? Number.POSITIVE_INFINITY : bytesRead
  const plainBytes = countBytes(request)
  // Nearly all heads are of this size, and have no room for more spaces unless one is saved elsewhere (`Host:x`). To look at the bytes
  // of each would take a twentieth of a list's time.
  if (bytes === plainBytes) return false
  const piece = parser?.getCurrentBuffer()?.toString('latin1') ?? ''
  // The beginning of the next request may have come with this one.
  const end = piece.indexOf('\r\n\r\n', headBegan - (bytesRead - piece.length))
  if (!hasBody && end !== -1) connection.bytesRead -= piece.length - (end + '\r\n\r\n'.length)
  for (const [, spacedMethod, target] of piece.matchAll(spacedLines))
    if (spacedMethod === method && target === url) return true
  if (piece.includes(`${method} ${url} HTTP/`)) return false
  // The line came in a piece before, and no body with this one: what is too much is a space.
  return bytes > plainBytes && !hasBody
}

/** Node's own: the bytes that are being read. */
type Parser = { getCurrentBuffer(): Buffer | undefined }

const spacedLines = /^([A-Z-]+) (?= |\S+ {2}) *(\S+) +HTTP\//gm

/** The size of a head with one space between the parts of its first line and one before each value, and without a body. */
function countBytes({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  const parts = rawHeaders.length
  let bytes = method.length + url.length + '  HTTP/1.1\r\n\r\n'.length + (parts / 2) * ': \r\n'.length
  for (const part of rawHeaders) bytes += part.length
  return bytes
}
