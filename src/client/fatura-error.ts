/** What goes wrong between a client and the service, with all that the service says of it. */
import type { ErrorCode } from '../errors.ts'

/**
 * The service's own codes, and two of the client's: no whole answer came, or one came that is not the service's, as from a
 * proxy before it. The list is closed.
 */
export type FaturaErrorCode = ErrorCode | 'connection_failed' | 'unexpected_answer'

export interface FaturaErrorDetails {
  status?: number | null
  requestId?: string | null
  /** In seconds. */
  retryAfter?: number | null
  param?: string | null
  cause?: unknown
}

export class FaturaError extends Error {
  override readonly name = 'FaturaError'
  readonly code: FaturaErrorCode
  /** Null when no answer came. */
  readonly status: number | null
  /** Names the request in the service's logs: quote it when you report a problem. */
  readonly requestId: string | null
  /** After how many seconds a new try makes sense; null when none was told. */
  readonly retryAfter: number | null
  /** The parameter at fault, with `invalid_parameter`. */
  readonly param: string | null

  constructor(code: FaturaErrorCode, message: string, details: FaturaErrorDetails = {}) {
    super(message, { cause: details.cause })
    this.code = code
    this.status = details.status ?? null
    this.requestId = details.requestId ?? null
    this.retryAfter = details.retryAfter ?? null
    this.param = details.param ?? null
  }
}

interface ErrorBody {
  code: ErrorCode
  message: string
  param: string
}

/** From an answer that is no success to the error that it tells. */
export async function readError(answer: Response): Promise<FaturaError> {
  const { status, headers } = answer
  const body = (await answer.json().catch(() => null)) as { error?: Partial<ErrorBody> } | null
  const told = body?.error
  const details = { status, requestId: headers.get('request-id'), retryAfter: readRetryAfter(headers) }
  return typeof told?.code === 'string'
    ? new FaturaError(told.code, String(told.message), { ...details, param: told.param ?? null })
    : new FaturaError('unexpected_answer', `The answer, with status ${status}, is not Fatura's.`, details)
}

/** The service sends seconds; a proxy may send a date. */
function readRetryAfter(headers: Headers): number | null {
  const text = headers.get('retry-after')
  if (!text) return null
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - Date.now()) / 1000)
  return Number.isNaN(seconds) ? null : Math.max(0, seconds)
}
