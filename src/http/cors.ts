/**
 * CORS: an allow-list of exact origins whose pages may call the API from a browser. Credentials that a browser
 * would add by itself are never allowed: a page sends its token. See docs/dependencies.md for why this is not a package.
 */
import type { IncomingMessage } from 'node:http'

/** Headers that a page may read. */
const exposed =
  'ETag, Request-Id, RateLimit, RateLimit-Policy, Retry-After, Content-Disposition, Fatura-Synced-At'

/** Headers of the answer to a preflight, beside those of every answer. */
export const preflightHeaders = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'Authorization, If-None-Match, Traceparent',
  // Two hours, the longest that every browser keeps it.
  'access-control-max-age': '7200',
}

export type Cors = NonNullable<ReturnType<typeof createCors>>

/** Null when no origin is allowed: answers then have no CORS headers. */
export function createCors(origins: readonly string[]) {
  if (origins.length === 0) return null
  const vary = { vary: 'Origin' }
  const allowed = new Map(
    origins.map(origin => [
      origin,
      { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed, ...vary },
    ]),
  )
  return {
    headersFor: (origin = ''): Record<string, string> => allowed.get(origin) ?? vary,
    /** Whether a request is a preflight of an allowed origin. */
    isPreflight: ({ method, headers }: IncomingMessage) =>
      method === 'OPTIONS' &&
      headers['access-control-request-method'] !== undefined &&
      allowed.has(headers.origin ?? ''),
  }
}

/** The `Origin` of a request that was not read, out of what arrived of it. */
export function findOrigin(head: string): string | undefined {
  return /\r\norigin:[ \t]*(\S+)[ \t]*\r\n/i.exec(head)?.[1]
}
