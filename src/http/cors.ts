/**
 * Which pages of other origins may call the API from a browser: an allow-list of exact origins. Credentials that a browser
 * would add by itself are never allowed: a page sends its token. See CONTRIBUTING.md for why this is not a package.
 */
import type { IncomingMessage } from 'node:http'
import { createHeadSet } from '../server/bare-answer.ts'
import type { LinesFor } from '../server/secure-response.ts'

/** What a page may read of an answer beside its body. */
const exposed =
  'ETag, Request-Id, RateLimit, RateLimit-Policy, Retry-After, Content-Disposition, Fatura-Synced-At'

/** Two hours, the longest that every browser keeps it. */
const preflightSeconds = 7_200

/** What a preflight is told beside what every answer says. */
export const preflightHeaders = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'Authorization, If-None-Match, Traceparent',
  'access-control-max-age': String(preflightSeconds),
}

export interface Cors {
  linesFor: LinesFor
  /** Whether a browser asks if a page of an allowed origin may send a request. */
  isPreflight(request: IncomingMessage): boolean
}

/** Null when no origin is allowed: nothing is then said of it. */
export function createCors(origins: readonly string[]): Cors | null {
  if (origins.length === 0) return null
  const vary = { vary: 'Origin' }
  const others = createHeadSet(vary).lines
  const allowed = new Map(
    origins.map(origin => [
      origin,
      createHeadSet({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposed,
        ...vary,
      }).lines,
    ]),
  )
  return {
    linesFor: (origin = '') => allowed.get(origin) ?? others,
    isPreflight: ({ method, headers }) =>
      method === 'OPTIONS' &&
      headers['access-control-request-method'] !== undefined &&
      allowed.has(headers.origin ?? ''),
  }
}

/** The `Origin` of a request that was not read, out of what arrived of it. */
export function findOrigin(head: string): string | undefined {
  return /\r\norigin:[ \t]*(\S+)[ \t]*\r\n/i.exec(head)?.[1]
}
