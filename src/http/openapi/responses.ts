/** The parts of responses that several routes share, as the OpenAPI document describes them. */
import { type ErrorCode, errorCodes } from '../../errors.ts'
import { resource, text } from './field-schemas.ts'
import { Type } from './type.ts'

const header = (description: string) => ({ type: 'string', description })

export const requestIdHeader = {
  'request-id': header('Names this request in the logs; quote it when you report a problem.'),
}

const limitHeaders = {
  'ratelimit-policy': header('The limit: `q` requests in a window of `w` seconds per token.'),
  ratelimit: header('The remainder: `r` requests, until the window ends in `t` seconds.'),
}

export const tokenHeaders = { ...limitHeaders, ...requestIdHeader }

const readHeaders = {
  etag: header('Send it back in `If-None-Match` to be answered 304 while nothing changed.'),
  'cache-control': header('Always `private, no-cache`: keep it, but ask before you use it.'),
  'fatura-synced-at': {
    type: 'string',
    format: 'date-time',
    description:
      'Time until which the records are known to follow their source; absent before the first synchronization.',
  },
  ...tokenHeaders,
}

export const jsonContent = (schema: string) => ({ 'application/json': { schema: Type.Ref(schema) } })
const fileContent = (type: string) => ({ [type]: { schema: { type: 'string', contentMediaType: type } } })

/** Errors of every route behind a token. */
const guarded = [
  'invalid_parameter',
  'missing_token',
  'invalid_token',
  'insufficient_scope',
  'rate_limited',
  'unavailable',
  'overloaded',
] as const

export const guardedResponses = (success: object, ...codes: ErrorCode[]) => ({
  200: success,
  ...errorResponses(...guarded, ...codes),
})

/** Responses of a route whose answer has an ETag. */
export const readResponses = (description: string, schema: string, ...codes: ErrorCode[]) => ({
  ...guardedResponses({ description, headers: readHeaders, content: jsonContent(schema) }, ...codes),
  304: {
    type: 'null',
    description: 'The client already holds this: `If-None-Match` names its ETag.',
    headers: readHeaders,
  },
})

export const pdfResponse = {
  description: 'The PDF.',
  headers: {
    'content-disposition': header("A file name made from the document's own number."),
    ...tokenHeaders,
  },
  content: fileContent('application/pdf'),
}

export const qrResponse = {
  description: 'The image.',
  headers: tokenHeaders,
  content: fileContent('image/png'),
}

/** Errors of every route. */
const everywhere: readonly ErrorCode[] = [
  'invalid_request',
  'request_timeout',
  'payload_too_large',
  'uri_too_long',
  'headers_too_large',
  'internal',
]

export const ErrorCodeName = Type.Enum(Object.keys(errorCodes), {
  $id: 'ErrorCode',
  type: 'string',
  description: 'Stable; decide by this.',
})

export const ErrorBody = resource('ErrorBody', 'Every error, on every route, has this shape.', {
  error: Type.Object(
    {
      code: Type.Ref('ErrorCode'),
      message: text('For people: the fault, and what is allowed.'),
      param: Type.Optional(text('The parameter at fault.')),
      request_id: text('Names this request in the logs.'),
    },
    { additionalProperties: false, description: 'The error.' },
  ),
})

/** A route's error responses, those that every route shares included: one for each status, each code explained. */
export function errorResponses(...codes: ErrorCode[]) {
  const all = [...codes, ...everywhere]
  const isLimited = codes.includes('rate_limited')
  const statuses = [...new Set(all.map(code => errorCodes[code].status))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => [
      status,
      errorResponse(
        status,
        all.filter(code => errorCodes[code].status === status),
        isLimited && !beforeLimit.includes(status),
      ),
    ]),
  )
}

const wrongPage = { message: 'page must be a whole number, written in digits.', param: 'page' }

/** Statuses that are answered before a request counts. */
const beforeLimit = [401, 408, 413, 414, 431]

function errorResponse(status: number, codes: readonly ErrorCode[], isLimited: boolean) {
  return {
    description: codes.map(code => `\`${code}\`: ${errorCodes[code].meaning}`).join(' '),
    headers: {
      ...statusHeaders[status],
      // On a route behind a token, a 400 may be about the way the token was sent (RFC 6750).
      ...(isLimited && status === 400 && challengeHeader),
      ...(isLimited && limitHeaders),
      ...requestIdHeader,
    },
    content: {
      'application/json': {
        schema: Type.Ref('ErrorBody'),
        examples: Object.fromEntries(
          codes.map(code => [
            code,
            {
              summary: errorCodes[code].meaning,
              value: {
                error: {
                  code,
                  ...(code === 'invalid_parameter' ? wrongPage : { message: errorCodes[code].meaning }),
                  request_id: 'req_0f3a9c51d2e78b4406fd1c95a3e27b60',
                },
              },
            },
          ]),
        ),
      },
    },
  }
}

const challengeHeader = { 'www-authenticate': header('A Bearer challenge after RFC 6750.') }
const retryHeader = {
  'retry-after': { type: 'integer', description: 'Seconds until a retry makes sense.' },
}
const statusHeaders: Record<number, object> = {
  ...{ 401: challengeHeader, 403: challengeHeader },
  ...{ 429: retryHeader, 502: retryHeader, 503: retryHeader, 504: retryHeader },
}
