/** What InvoiceXpress answers, believed only once it fits. */
import { type FailureScope, SourceError, type SourceFailure } from '../sources.ts'
import type { Failures } from '../upstream/failures.ts'
import { readRetryAfter } from '../upstream/retry-after.ts'
import type { Shape } from '../upstream/shape.ts'
import type { Answer } from './client.ts'

/** An answer with another status than the one for what was asked. */
export class Refused extends SourceError {
  readonly status: number
  /** What `Retry-After` said, if anything. */
  readonly after: string | undefined

  constructor({ status, retryAfter }: Answer) {
    const [failure, message] = explainStatus(status)
    super(failure, message, { scope: scopeOf(status) })
    this.status = status
    this.after = retryAfter
  }
}

/** InvoiceXpress says in JSON that it does not know a record. Any other 404 comes from a gateway before it, and says nothing of the record. */
function refusalOf(answer: Answer): SourceError {
  const isItsOwn = typeof answer.body === 'object' && answer.body !== null
  return answer.status === 404 && !isItsOwn
    ? new SourceError('failed', 'A gateway before InvoiceXpress answered 404')
    : new Refused(answer)
}

function explainStatus(status: number): [SourceFailure, string] {
  switch (status) {
    case 401:
    case 403:
      return ['failed', 'InvoiceXpress refused the key: it must be valid, and of the account that is asked']
    case 404:
      return ['missing', 'InvoiceXpress does not know it']
    case 429:
      return ['failed', 'InvoiceXpress asked for a pause']
    default:
      return ['failed', `InvoiceXpress answered ${status}`]
  }
}

/** What stands before InvoiceXpress, and its limits, are about no record; whatever it says itself is about the one asked for. */
function scopeOf(status: number): FailureScope {
  if (status === 401 || status === 403) return 'access'
  return [408, 429, 502, 503, 504].includes(status) ? 'source' : 'record'
}

/** The body of a 200, an object; an error in such a body is one all the same. */
export function readObject(answer: Answer): Record<string, unknown> {
  if (answer.status !== 200) throw refusalOf(answer)
  const { body } = answer
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SourceError('failed', 'InvoiceXpress answered what cannot be read')
  if (['errors', 'error', 'reason'].some(key => Object.hasOwn(body, key)))
    throw new SourceError('failed', 'InvoiceXpress answered an error as a success', { scope: 'record' })
  return body as Record<string, unknown>
}

/** A record stands alone in an object, under a key that varies with its type. */
export function readWrapped(answer: Answer): [key: string, record: unknown] {
  const [sole, ...others] = Object.entries(readObject(answer))
  if (sole === undefined || others.length > 0) throw unfit('a record')
  return sole
}

/** The value, when it has the shape. What does not fit is told by its name, and never by what is in it. */
export function readAs<T>(shape: Shape<T>, value: unknown, what: string): T {
  const misfit = shape.misfit(value)
  if (misfit === null) return value as T
  throw unfit(what, misfit)
}

/** `field` names what is wrong, where one field is. */
export function unfit(what: string, field = ''): SourceError {
  const where = field === '' ? '' : `: ${field}`
  return new SourceError('failed', `InvoiceXpress sent ${what} that does not fit${where}`, {
    scope: 'record',
  })
}

/**
 * After a 429 that does not say for how long: the limit is counted by the minute, and the retries of one call then
 * outlast that minute.
 */
const usualPauseMs = 15_000

export const invoiceXpressFailures: Failures = {
  name: 'InvoiceXpress',
  /** A refusal of the key or of the question will be the same next time; anything else may pass. */
  mayPass: error =>
    !(error instanceof Refused) || error.status === 408 || error.status === 429 || error.status >= 500,
  /** Not an answer that is about the question, the key or how often it was asked: then InvoiceXpress works. */
  isFault: error => !(error instanceof Refused && error.status >= 400 && error.status < 500),
  pauseFor: error =>
    error instanceof Refused && error.status === 429
      ? readRetryAfter(error.after, Date.now(), usualPauseMs)
      : 0,
  explain: error =>
    error instanceof SourceError
      ? error
      : new SourceError('failed', 'InvoiceXpress answered what cannot be read'),
}
