import type Stripe from 'stripe'
import { SourceError } from '../sources.ts'
import { shape } from '../upstream/shape.ts'
import { eventShape, invoiceShape, isId, readAs } from './invoice-shape.ts'
import { readLinePage } from './list-lines.ts'

/** Keeps records with ids, and counts the others. None may be the one where the last page ended: the list would be read for ever. */
export function checkPage<T extends { id: string }>(
  page: { data: T[]; has_more: boolean },
  after: string | null,
): { data: T[]; next: string | null; nameless: number } {
  const isPage = Array.isArray(page.data) && typeof page.has_more === 'boolean'
  const named = isPage ? page.data.filter(hasId) : []
  const fits = isPage && named.every(({ id }) => id !== after) && !(page.has_more && named.length === 0)
  if (!fits) throw new SourceError('failed', 'Stripe sent a page that does not fit')
  const next = page.has_more ? (named.at(-1)?.id ?? null) : null
  return { data: named, next, nameless: page.data.length - named.length }
}

const hasId = shape({ id: isId })

export type CheckedInvoice = ReturnType<typeof checkInvoice>

/** An invoice that fits, with its lines when it carries all of them. */
export function checkInvoice(answer: unknown) {
  const invoice = readAs(invoiceShape, answer, 'an invoice')
  const { lines } = invoice
  const isCut = typeof lines === 'object' && lines !== null && 'has_more' in lines && lines.has_more === true
  return { id: invoice.id, invoice, lines: isCut ? null : readLinePage(lines) }
}

/** An event that does not fit is a failure: no change may be skipped. */
export function checkEvent(event: Stripe.Event): Stripe.Event {
  readAs(eventShape, event, `an event (${event.id})`)
  return event
}
