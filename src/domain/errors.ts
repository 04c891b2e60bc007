/** All error codes of the API, with HTTP status and meaning. Imports nothing. */
export const errorCodes = {
  invalid_request: { status: 400, meaning: 'The request itself is malformed. `message` explains why.' },
  invalid_parameter: {
    status: 400,
    meaning:
      'The value of the path or query parameter `param` is not allowed. `message` names the allowed values.',
  },
  missing_token: { status: 401, meaning: 'No `Authorization: Bearer` header was sent.' },
  invalid_token: {
    status: 401,
    meaning:
      'The token is unknown, malformed, expired, revoked, or meant for another service. `message` has the reason.',
  },
  insufficient_scope: {
    status: 403,
    meaning:
      'The token is not valid for this customer, whether or not the customer exists. Or it is for one invoice only, or not for all customers, or lacks a required scope.',
  },
  route_not_found: { status: 404, meaning: 'Nothing is served at this path.' },
  invoice_not_found: {
    status: 404,
    meaning: 'The customer has no such invoice. It does not exist, or belongs to another customer.',
  },
  document_not_found: {
    status: 404,
    meaning:
      'The invoice exists, but has no document of this kind, or its system no longer has the document.',
  },
  method_not_allowed: { status: 405, meaning: 'The service is read-only: GET, HEAD and OPTIONS only.' },
  request_timeout: { status: 408, meaning: 'The request did not arrive completely in time.' },
  document_not_issued: { status: 409, meaning: 'The invoice or its document is a draft: it has no PDF yet.' },
  not_payable: {
    status: 409,
    meaning:
      'The invoice cannot be paid. It is not open, nothing of it remains, its external document is credited whole, or the payment platform has no page for it.',
  },
  cursor_expired: {
    status: 410,
    meaning:
      'Changes after this cursor are no longer kept, or the store was restored. Request a new cursor without `after`, then list the invoices again.',
  },
  payload_too_large: {
    status: 413,
    meaning: 'The body of the request is too large. No GET request of this API needs one.',
  },
  uri_too_long: { status: 414, meaning: 'The URL is longer than 8,192 bytes.' },
  rate_limited: {
    status: 429,
    meaning:
      'The token sent too many requests, or waits for too many downloads, searches or changes. Or the token is wrong, and its address sent too many wrong ones.',
  },
  headers_too_large: { status: 431, meaning: 'The request headers are larger than 16 KiB.' },
  internal: { status: 500, meaning: 'A fault of this service. The log has the details.' },
  upstream_failed: {
    status: 502,
    meaning: 'The system that holds the document failed, or is not connected.',
  },
  unavailable: {
    status: 503,
    meaning:
      'The store, or the keys of the identity provider, cannot be read right now. Or a search took too long, or too many documents, changes or checks of tokens are asked for. Or the process is about to end.',
  },
  overloaded: {
    status: 503,
    meaning: 'More requests come than this process or its database can serve. Nothing was done.',
  },
  document_not_ready: {
    status: 503,
    meaning: 'The PDF is still being made.',
  },
  upstream_timeout: { status: 504, meaning: 'The system that holds the document did not answer in time.' },
} as const satisfies Record<string, { status: number; meaning: string }>

export type ErrorCode = keyof typeof errorCodes

/** An error for the client. The message is sent unchanged. The cause is only logged. */
export class ApiError extends Error {
  readonly code: ErrorCode
  /** Name of the request parameter that caused the error. */
  readonly param: string | undefined
  /** Seconds after which a retry makes sense. */
  readonly retryAfter: number | undefined

  constructor(
    code: ErrorCode,
    message: string,
    { param, retryAfter, cause }: { param?: string; retryAfter?: number; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.code = code
    this.param = param
    this.retryAfter = retryAfter
  }
}
