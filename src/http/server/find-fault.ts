import type { IncomingMessage } from 'node:http'

/**
 * The fault of a request that Node's parser lets pass, in words for its sender, or null. The start and the recipient of the
 * next request on such a connection cannot be known: the answer must close the connection.
 */
export function findFault(request: IncomingMessage): string | null {
  const { headers, httpVersionMajor, httpVersionMinor, method, rawHeaders, url } = request
  if (httpVersionMajor !== 1) return 'Use HTTP/1.1 or HTTP/1.0; no other version is served.'
  if (url === '*' && method !== 'OPTIONS') return 'Only OPTIONS may ask for *; name a path.'
  const { host } = headers
  if (host === undefined) {
    if (httpVersionMinor === 1) return 'The Host header is missing.'
  } else if (!isHost(host)) return 'The Host header must be a host name, with or without a port.'
  else if (isRepeated('host', rawHeaders)) return 'Send the Host header once.'
  if (headers['transfer-encoding'] !== undefined && !isChunked(request))
    return 'The only transfer coding that is understood is chunked, once, in HTTP/1.1.'
  return null
}

/** A server must take a whole URL as well, as a proxy would (RFC 9112, section 3.2.2). */
export function withoutOrigin(target: string): string {
  return target.replace(/^https?:\/\/[^/?]*(?=\/)/i, '')
}

export function isChunked({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return httpVersionMinor === 1 && headers['transfer-encoding']?.toLowerCase() === 'chunked'
}

// RFC 3986: a name, an IPv4 address, or an IPv6 one in brackets.
const hostForm = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::(\d*))?$/
const maxPort = 65_535

function isHost(host: string): boolean {
  const found = hostForm.exec(host)
  return found !== null && Number(found[1] ?? 0) <= maxPort
}

/** Node keeps only the first of two; the raw list has both. */
export function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  let given = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] as string
    if (header.length === name.length && header.toLowerCase() === name) given++
  }
  return given > 1
}
