/**
 * CORS: pages of the listed origins may call the API from a browser. Credentials that a browser adds by itself are
 * never allowed, because a page sends its token. See docs/dependencies.md for why this is not a package.
 */
import type { IncomingMessage } from 'node:http'

const exposedHeaders =
  'ETag, Request-Id, RateLimit, RateLimit-Policy, Retry-After, Content-Disposition, Fatura-Synced-At'

/** Headers of the answer to a preflight, besides the headers of every answer. */
export const preflightHeaders = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'Authorization, If-None-Match, Traceparent',
  // Two hours, the longest time that every browser accepts.
  'access-control-max-age': '7200',
}

export type Cors = NonNullable<ReturnType<typeof createCors>>

/** Null when no origin is allowed. Answers then have no CORS headers. */
export function createCors(origins: readonly string[]) {
  if (origins.length === 0) return null
  const vary = { vary: 'Origin' }
  const allowed = new Map(
    origins.map(origin => [
      origin,
      { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposedHeaders, ...vary },
    ]),
  )
  return {
    headersFor: (origin = ''): Record<string, string> => allowed.get(origin) ?? vary,
    isPreflight: ({ method, headers }: IncomingMessage) =>
      method === 'OPTIONS' &&
      headers['access-control-request-method'] !== undefined &&
      allowed.has(headers.origin ?? ''),
  }
}

/** Finds the `Origin` header in the received part of a request that could not be read. */
export function findOrigin(head: string): string | undefined {
  return /\r\norigin:[ \t]*(\S+)[ \t]*\r\n/i.exec(head)?.[1]
}
