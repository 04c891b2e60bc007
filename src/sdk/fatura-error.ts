import type { ErrorCode } from '../domain/errors.ts'

/**
 * The service's error codes, and two of the client. `connection_failed`: no complete answer came.
 * `unexpected_answer`: the answer is not Fatura's, for example a proxy's page.
 */
export type FaturaErrorCode = ErrorCode | 'connection_failed' | 'unexpected_answer'

type Details = Partial<Pick<FaturaError, 'status' | 'requestId' | 'retryAfter' | 'param' | 'cause'>>

export class FaturaError extends Error {
  override readonly name = 'FaturaError'
  readonly code: FaturaErrorCode
  /** HTTP status. Null when no answer came. */
  readonly status: number | null = null
  /** Identifies the request in the service's logs. Quote it in a problem report. */
  readonly requestId: string | null = null
  /** Seconds until a retry makes sense. Null when the service gave none. */
  readonly retryAfter: number | null = null
  /** Name of the invalid parameter. Set only with `invalid_parameter`. */
  readonly param: string | null = null

  constructor(code: FaturaErrorCode, message: string, { cause, ...details }: Details = {}) {
    super(message, { cause })
    this.code = code
    Object.assign(this, details)
  }
}

export async function readError(answer: Response): Promise<FaturaError> {
  const { status, headers } = answer
  const body = (await answer.json().catch(() => null)) as { error?: Partial<FaturaError> } | null
  const error = body?.error
  const details = { status, requestId: headers.get('request-id'), retryAfter: readRetryAfter(headers) }
  return typeof error?.code === 'string'
    ? new FaturaError(error.code, String(error.message), { ...details, param: error.param ?? null })
    : new FaturaError('unexpected_answer', `The answer, with status ${status}, is not Fatura's.`, details)
}

/** Returns seconds. The service sends seconds, and a proxy may send a date. */
function readRetryAfter(headers: Headers): number | null {
  const text = headers.get('retry-after')
  if (!text) return null
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - Date.now()) / 1000)
  return Number.isNaN(seconds) ? null : Math.max(0, seconds)
}
