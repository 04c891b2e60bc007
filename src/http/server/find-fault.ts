import type { IncomingMessage } from 'node:http'

/**
 * Returns the fault of a request that Node's parser accepts, as a message for its sender, or null. The answer to a
 * faulty request must close the connection, because nobody can know where another request would begin.
 */
export function findFault(request: IncomingMessage): string | null {
  const { headers, httpVersionMajor, httpVersionMinor, method, rawHeaders, url } = request
  if (httpVersionMajor !== 1) return 'Use HTTP/1.1 or HTTP/1.0; no other version is served.'
  if (url === '*' && method !== 'OPTIONS')
    return 'Only OPTIONS requests may have the path *. Name another path.'
  const { host } = headers
  if (host === undefined) {
    if (httpVersionMinor === 1) return 'The Host header is missing.'
  } else if (!isHost(host)) return 'The Host header must be a host name, with or without a port.'
  else if (isRepeated('host', rawHeaders)) return 'Send the Host header once.'
  if (headers['transfer-encoding'] !== undefined && !isChunked(request))
    return 'The only transfer coding that is understood is chunked, once, in HTTP/1.1.'
  return null
}

/**
 * Removes scheme and host from a request target. A server must accept an absolute URL, as a proxy does (RFC 9112,
 * section 3.2.2).
 */
export function withoutOrigin(target: string): string {
  return target.replace(/^https?:\/\/[^/?]*(?=\/)/i, '')
}

export function isChunked({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return httpVersionMinor === 1 && headers['transfer-encoding']?.toLowerCase() === 'chunked'
}

// RFC 3986: a host name, an IPv4 address, or an IPv6 address in brackets.
const hostForm = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::(\d*))?$/
const maxPort = 65_535

function isHost(host: string): boolean {
  const found = hostForm.exec(host)
  return found !== null && Number(found[1] ?? 0) <= maxPort
}

/** Whether a header was sent twice. Node keeps only the first value in `headers`, but `rawHeaders` has both. */
export function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  let given = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] as string
    if (header.length === name.length && header.toLowerCase() === name) given++
  }
  return given > 1
}
