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

/** InvoiceXpress answers in JSON that it does not know a record. Any other 404 comes from a gateway, and means nothing. */
function refusalOf(answer: Answer): SourceError {
  const isFromInvoiceXpress = typeof answer.body === 'object' && answer.body !== null
  return answer.status === 404 && !isFromInvoiceXpress
    ? new SourceError('failed', 'A gateway before InvoiceXpress answered 404')
    : new Refused(answer)
}

const refusedKey = 'InvoiceXpress refused the key: it must be valid, and of the account that is asked'
const explanations: Record<number, string> = {
  401: refusedKey,
  403: refusedKey,
  404: 'InvoiceXpress does not know it',
  429: 'InvoiceXpress asked for a pause',
}

/** Answers of gateways and of the rate limit concern no record; InvoiceXpress' own answers concern the requested one. */
function scopeOf(status: number): FailureScope {
  if (status === 401 || status === 403) return 'access'
  return [408, 429, 502, 503, 504].includes(status) ? 'source' : 'record'
}

/** The object in a 200. An error in such a body is an error. */
export function readObject(answer: Answer): Record<string, unknown> {
  if (answer.status !== 200) throw refusalOf(answer)
  const { body } = answer
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SourceError('failed', 'InvoiceXpress sent an unreadable answer')
  if (['errors', 'error', 'reason'].some(key => Object.hasOwn(body, key)))
    throw new SourceError('failed', 'InvoiceXpress answered an error as a success', { scope: 'record' })
  return body as Record<string, unknown>
}

/** The only record in an object, under a key that varies with its type. */
export function readWrapped(answer: Answer): [key: string, record: unknown] {
  const [sole, ...others] = Object.entries(readObject(answer))
  if (sole === undefined || others.length > 0) throw unfit('a record')
  return sole
}

const pdfAnswer = shape({ output: isAnything })
const pdf = shape({ pdfUrl: isFilled })

/** The address of a PDF. It holds a secret. */
export function readPdfUrl(answer: Answer): string {
  return readAs(pdf, readAs(pdfAnswer, readObject(answer), 'a PDF').output, 'a PDF').pdfUrl
}

const qrAnswer = shape({ qr_code: isAnything })
const qrCode = shape({ url: isFilled })

/** The address of a QR code's image. It holds a secret. */
export function readQrUrl(answer: Answer): string {
  return readAs(qrCode, readAs(qrAnswer, readObject(answer), 'a QR code').qr_code, 'a QR code').url
}

const isCount = isWhole(0, /^[0-9]{1,15}$/)
const pagination = shape({ current_page: isCount, total_pages: isCount, total_entries: isCount })

/** The requested page and no other: else one might be read for ever, or in another's place. */
export function readPage(answer: Answer, page: number) {
  const { pagination: found, ...rest } = readObject(answer)
  const { current_page, total_pages, total_entries } = readAs(pagination, found, 'a list')
  // The list is called `invoices`, or seldom by the name of a type.
  const [records, ...others] = Object.values(rest)
  if (!Array.isArray(records) || others.length > 0) throw unfit('a list')
  const [current, pages, total] = [Number(current_page), Number(total_pages), Number(total_entries)]
  // A list that grew shorter since its last page was read ends before this one.
  const isBeyond = total === 0 || page > pages
  const fits = current === page && pages <= Math.max(1, total) && isBeyond === (records.length === 0)
  if (!fits) throw unfit('a page')
  return { records, pages, total }
}

/** Returns a value that has the shape. The error names the field, never its value. */
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

/** After a 429 without `Retry-After`: the limit is counted by the minute, which the retries of one call then outlast. */
const defaultPauseMs = 15_000

export const invoiceXpressFailures: Failures = {
  name: 'InvoiceXpress',
  /** A refusal of the key or of the request stays; any other failure may pass. */
  mayPass: error =>
    !(error instanceof Refused) || error.status === 408 || error.status === 429 || error.status >= 500,
  /** InvoiceXpress works if it answers about the request, the key or the rate limit itself. */
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
