import { SourceError } from '../source.ts'

/** Whether a URL has one of the allowed origins: the same scheme, host and port. Throws when an entry of `origins` is no origin. */
export function isAllowed(url: URL, origins: readonly string[]): boolean {
  return origins.some(origin => {
    const allowed = parseOrigin(origin)
    if (allowed === null)
      throw new SourceError(
        'failed',
        `The allowed origin ${origin} is not an origin: expected https://host or https://host:port.`,
      )
    if (allowed.protocol !== url.protocol || allowed.port !== url.port) return false
    // An entry such as https://*.example.com allows subdomains at any depth, but not example.com itself.
    return allowed.hostname.startsWith('*.')
      ? url.hostname.endsWith(allowed.hostname.slice(1)) && url.hostname.length >= allowed.hostname.length
      : url.hostname === allowed.hostname
  })
}

export function isOrigin(text: string): boolean {
  return parseOrigin(text) !== null
}

function parseOrigin(text: string): URL | null {
  const url = URL.parse(text)
  const isOne =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.href === `${url.origin}/` &&
    /^(\*\.)?[^*]+$/.test(url.hostname)
  return isOne ? url : null
}
