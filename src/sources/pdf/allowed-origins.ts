import { SourceError } from '../source.ts'

/** Whether a URL is of one of the origins: scheme, host and port, exactly. Throws when the list holds what is none. */
export function isAllowed(url: URL, origins: readonly string[]): boolean {
  return origins.some(origin => {
    const allowed = parseOrigin(origin)
    if (allowed === null)
      throw new SourceError(
        'failed',
        `The allowed origin ${origin} is not an origin: expected https://host or https://host:port.`,
      )
    if (allowed.protocol !== url.protocol || allowed.port !== url.port) return false
    // An origin begins with "*." where its subdomains are meant, at any depth, and not itself.
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
