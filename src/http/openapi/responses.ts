/** The parts of responses that several routes share, as the OpenAPI document describes them. */
import { type ErrorCode, errorCodes } from '../../domain/errors.ts'
import { refer, text, whole } from './schema-parts.ts'

export const requestIdHeader = {
  'request-id': text('ID of this request in the logs. Give it when you report a problem.'),
}

const limitHeaders = {
  'ratelimit-policy': text('The limit of a token: at most `q` requests in a window of `w` seconds.'),
  ratelimit: text(
    'The rest of the limit: the token may send `r` more requests until the window ends in `t` seconds.',
  ),
}

const tokenHeaders = { ...limitHeaders, ...requestIdHeader }

const readHeaders = {
  etag: text('Version of the answer. Send it in `If-None-Match` to get 304 while nothing changed.'),
  'cache-control': text(
    'Always `private, no-cache`. Clients may keep the answer, but must ask again before they use it.',
  ),
  'fatura-synced-at': text(
    'Time up to which the records agree with their source. It is absent before the first synchronization.',
    { format: 'date-time' },
  ),
  ...tokenHeaders,
}

export const jsonContent = (schema: string) => ({ 'application/json': { schema: refer(schema) } })

const tokenErrors = [
  'invalid_parameter',
  'missing_token',
  'invalid_token',
  'insufficient_scope',
  'rate_limited',
  'unavailable',
  'overloaded',
] as const

const guardedResponses = (success: object, codes: readonly ErrorCode[]) => ({
  200: success,
  ...errorResponses(...tokenErrors, ...codes),
})

export const jsonResponses = (description: string, schema: string, ...codes: ErrorCode[]) =>
  guardedResponses({ description, headers: tokenHeaders, content: jsonContent(schema) }, codes)

export const readResponses = (description: string, schema: string, ...codes: ErrorCode[]) => ({
  ...guardedResponses({ description, headers: readHeaders, content: jsonContent(schema) }, codes),
  304: {
    type: 'null',
    description: 'The client already has this answer, because `If-None-Match` names its ETag.',
    headers: readHeaders,
  },
})

const fileErrors = [
  'invoice_not_found',
  'document_not_found',
  'upstream_failed',
  'document_not_ready',
  'upstream_timeout',
] as const

export const fileResponses = (description: string, type: string, headers = {}, ...codes: ErrorCode[]) =>
  guardedResponses(
    {
      description,
      headers: { ...headers, ...tokenHeaders },
      content: { [type]: { schema: { type: 'string', contentMediaType: type } } },
    },
    [...fileErrors, ...codes],
  )

export const nameHeader = {
  'content-disposition': text('A file name that contains the number of the document.'),
}

const commonErrors: readonly ErrorCode[] = [
  'invalid_request',
  'request_timeout',
  'payload_too_large',
  'uri_too_long',
  'headers_too_large',
  'internal',
]

/**
 * The error responses of a route, one for each status. They include the errors of every route, and explain each code.
 */
export function errorResponses(...codes: ErrorCode[]) {
  const isLimited = codes.includes('rate_limited')
  const byStatus = Object.groupBy([...codes, ...commonErrors], code => errorCodes[code].status)
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, alike]) => [
      status,
      errorResponse(Number(status), alike, isLimited && !beforeLimit.includes(Number(status))),
    ]),
  )
}

const wrongPage = { message: 'page must be a whole number, written in digits.', param: 'page' }

/** Statuses of requests that are answered before the rate limit counts them. */
const beforeLimit = [401, 408, 413, 414, 431]

function errorResponse(status: number, codes: readonly ErrorCode[], isLimited: boolean) {
  return {
    description: codes.map(code => `\`${code}\`: ${errorCodes[code].meaning}`).join(' '),
    headers: {
      ...statusHeaders[status],
      // On a route behind a token, a 400 may concern the way the token was sent (RFC 6750).
      ...(isLimited && status === 400 && challengeHeader),
      ...(isLimited && limitHeaders),
      ...requestIdHeader,
    },
    content: {
      'application/json': {
        schema: refer('ErrorBody'),
        examples: Object.fromEntries(
          codes.map(code => [
            code,
            {
              summary: errorCodes[code].meaning,
              value: {
                error: {
                  code,
                  ...(code === 'invalid_parameter' ? wrongPage : { message: errorCodes[code].meaning }),
                  request_id: 'req_0f3a9c51-d2e7-4b44-86fd-1c95a3e27b60',
                },
              },
            },
          ]),
        ),
      },
    },
  }
}

const challengeHeader = { 'www-authenticate': text('A Bearer challenge, as RFC 6750 describes.') }
const retryHeader = { 'retry-after': whole('Number of seconds to wait before the request is sent again.') }
const statusHeaders: Record<number, object> = {
  ...{ 401: challengeHeader, 403: challengeHeader },
  ...{ 429: retryHeader, 502: retryHeader, 503: retryHeader, 504: retryHeader },
}
