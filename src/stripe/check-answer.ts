/** Checks of Stripe's answers. */
import type Stripe from 'stripe'
import { SourceError } from '../sources.ts'
import { shape } from '../upstream/shape.ts'
import { eventShape, type InvoiceHead, invoiceShape, isId, readAs, taxRateShape } from './invoice-shape.ts'
import { type LinePage, readLinePage } from './list-lines.ts'
import { percentageOf } from './map-invoice.ts'

export interface Page<T> {
  data: T[]
  has_more: boolean
  /** Number of records without an id. */
  nameless: number
}

/** Keeps the records with ids. None may be the one where the last page ended: the list would be read for ever. */
export function checkPage<T extends { id: string }>(
  page: { data: T[]; has_more: boolean },
  after: string | null,
): Page<T> {
  if (!Array.isArray(page.data) || typeof page.has_more !== 'boolean') throw misfit()
  const named = page.data.filter(record => hasId.misfit(record) === null)
  const fits = named.every(({ id }) => id !== after) && !(page.has_more && named.length === 0)
  if (!fits) throw misfit()
  return { data: named, has_more: page.has_more, nameless: page.data.length - named.length }
}

const hasId = shape({ id: isId })

function misfit(): SourceError {
  return new SourceError('failed', 'Stripe sent a page that does not fit')
}

export function nextOf<T extends { id: string }>({
  data,
  has_more,
}: Pick<Page<T>, 'data' | 'has_more'>): string | null {
  return has_more ? (data.at(-1)?.id ?? null) : null
}

/** An invoice that fits, with its lines when it carries all of them. */
export interface CheckedInvoice {
  invoice: InvoiceHead
  lines: LinePage | null
}

export function checkInvoice(answer: unknown): CheckedInvoice {
  const invoice = readAs(invoiceShape, answer, 'an invoice')
  const { lines } = invoice
  const isCut = typeof lines === 'object' && lines !== null && 'has_more' in lines && lines.has_more === true
  return { invoice, lines: isCut ? null : readLinePage(lines) }
}

/** An event that does not fit is a failure: no change may be skipped. */
export function checkEvent(event: Stripe.Event): Stripe.Event {
  readAs(eventShape, event, `an event (${event.id})`)
  return event
}

export function checkPercentage(rate: unknown): number {
  return percentageOf(readAs(taxRateShape, rate, 'a tax rate'))
}
