import { type Failures, readRetryAfter } from '../calls/failures.ts'
import { isAnything, isFilled, isWhole, type Shape, shape } from '../calls/shape.ts'
import { type FailureScope, SourceError } from '../source.ts'
import type { Answer } from './client.ts'

export class Refused extends SourceError {
  readonly status: number
  readonly after: string | undefined

  constructor({ status, retryAfter }: Omit<Answer, 'date'>) {
    const message = explanations[status] ?? `InvoiceXpress answered ${status}`
    super(status === 404 ? 'missing' : 'failed', message, { scope: scopeOf(status) })
    this.status = status
    this.after = retryAfter
  }
}

/** InvoiceXpress' own 404 has a JSON body and means that a record is missing. A 404 without JSON comes from a gateway and means nothing. */
function refusalOf(answer: Answer): SourceError {
  const isFromInvoiceXpress = typeof answer.body === 'object' && answer.body !== null
  return answer.status === 404 && !isFromInvoiceXpress
    ? new SourceError('failed', 'A gateway before InvoiceXpress answered 404')
    : new Refused(answer)
}

const refusedKey = 'InvoiceXpress refused the key. It must be valid and belong to the account'
const explanations: Record<number, string> = {
  401: refusedKey,
  403: refusedKey,
  404: 'InvoiceXpress does not know it',
  429: 'InvoiceXpress asked for a pause',
}

/**
 * 401 and 403 concern the key. Answers of gateways and of the rate limit
 * concern the source. All other answers concern the requested record.
 */
function scopeOf(status: number): FailureScope {
  if (status === 401 || status === 403) return 'access'
  return [408, 429, 502, 503, 504].includes(status) ? 'source' : 'record'
}

/** Returns the body of a 200 answer. Throws when the body is an error, because InvoiceXpress may send an error with status 200. */
export function readObject(answer: Answer): Record<string, unknown> {
  if (answer.status !== 200) throw refusalOf(answer)
  const { body } = answer
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SourceError('failed', 'InvoiceXpress sent an unreadable answer')
  if (['errors', 'error', 'reason'].some(key => Object.hasOwn(body, key)))
    throw new SourceError('failed', 'InvoiceXpress answered an error as a success', { scope: 'record' })
  return body as Record<string, unknown>
}

/** Returns the only key of an answer, and the record under that key. The key depends on the record's type, for example `invoice`. */
export function readWrapped(answer: Answer): [key: string, record: unknown] {
  const [sole, ...others] = Object.entries(readObject(answer))
  if (sole === undefined || others.length > 0) throw unfit('a record')
  return sole
}

const pdfAnswer = shape({ output: isAnything })
const pdf = shape({ pdfUrl: isFilled })

/** Returns the address of a PDF. The address holds a secret. */
export function readPdfUrl(answer: Answer): string {
  return readAs(pdf, readAs(pdfAnswer, readObject(answer), 'a PDF').output, 'a PDF').pdfUrl
}

const qrAnswer = shape({ qr_code: isAnything })
const qrCode = shape({ url: isFilled })

/** Returns the address of a QR code's image. The address holds a secret. */
export function readQrUrl(answer: Answer): string {
  return readAs(qrCode, readAs(qrAnswer, readObject(answer), 'a QR code').qr_code, 'a QR code').url
}

const isCount = isWhole(0, /^[0-9]{1,15}$/)
const pagination = shape({ current_page: isCount, total_pages: isCount, total_entries: isCount })

/**
 * Reads one page of a list. Throws when the answer is not the requested page.
 * Without this check, a pass over the list could repeat pages for ever or skip some.
 */
export function readPage(answer: Answer, page: number) {
  const { pagination: found, ...rest } = readObject(answer)
  const { current_page, total_pages, total_entries } = readAs(pagination, found, 'a list')
  // The list's key is `invoices`, or rarely the name of a document type.
  const [records, ...others] = Object.values(rest)
  if (!Array.isArray(records) || others.length > 0) throw unfit('a list')
  const [current, pages, total] = [Number(current_page), Number(total_pages), Number(total_entries)]
  // A list may become shorter between two requests. The requested page may then lie beyond its end, and is empty.
  const isBeyond = total === 0 || page > pages
  const fits = current === page && pages <= Math.max(1, total) && isBeyond === (records.length === 0)
  if (!fits) throw unfit('a page')
  return { records, pages, total }
}

/** Returns a value that has the shape. Otherwise throws an error that names the field, but never its value. */
export function readAs<T>(shape: Shape<T>, value: unknown, what: string): T {
  const misfit = shape.misfit(value)
  if (misfit === null) return value as T
  throw unfit(what, misfit)
}

export function unfit(what: string, field = ''): SourceError {
  const where = field === '' ? '' : `: ${field}`
  return new SourceError('failed', `InvoiceXpress sent ${what} that does not fit${where}`, {
    scope: 'record',
  })
}

/**
 * Pause after a 429 without `Retry-After`. InvoiceXpress counts requests by the minute. With this pause, the retries of one call last
 * longer than a minute.
 */
const defaultPauseMs = 15_000

export const invoiceXpressFailures: Failures = {
  name: 'InvoiceXpress',
  /** A refusal of the key or of the request is permanent. Any other failure may pass. */
  mayPass: error =>
    !(error instanceof Refused) || error.status === 408 || error.status === 429 || error.status >= 500,
  /** A 4xx answer concerns the request, the key or the rate limit. It shows that InvoiceXpress works. */
  isFault: error => !(error instanceof Refused && error.status >= 400 && error.status < 500),
  pauseFor: error =>
    error instanceof Refused && error.status === 429
      ? readRetryAfter(error.after, Date.now(), defaultPauseMs)
      : 0,
  explain: error =>
    error instanceof SourceError
      ? error
      : new SourceError('failed', 'InvoiceXpress sent an unreadable answer'),
}
