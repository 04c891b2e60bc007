/** What is relied on of Stripe's answers, whatever they hold. */
import type Stripe from 'stripe'
import { SourceError, UnfitRecord } from '../sources.ts'
import { type LinePage, readLinePage } from './list-lines.ts'
import { percentageOf } from './map-invoice.ts'

export const unreadable = 'Stripe sent an invoice that does not fit'

type Page<T> = { data: T[]; has_more: boolean }

/** A page whose records have ids, none of them where the last page ended: else it would be read for ever. */
export function checkPage<T extends { id: string }>(page: Page<T>, after: string | null): Page<T> {
  const fits =
    Array.isArray(page.data) &&
    typeof page.has_more === 'boolean' &&
    page.data.every(({ id }) => typeof id === 'string' && id !== '' && id !== after) &&
    !(page.has_more && page.data.length === 0)
  if (!fits) throw new SourceError('failed', 'Stripe sent a page that does not fit')
  return page
}

export function nextOf<T extends { id: string }>({ data, has_more }: Page<T>): string | null {
  return has_more ? (data.at(-1)?.id ?? null) : null
}

/** An invoice that fits, with its lines when it carries all of them. */
export interface CheckedInvoice {
  invoice: Stripe.Invoice
  lines: LinePage | null
}

/** What the mapping relies on, whatever Stripe sent: asked again, it may fit. */
export function checkInvoice(invoice: Stripe.Invoice): CheckedInvoice {
  const amounts = [invoice.subtotal, invoice.total, invoice.created]
  const fits =
    invoice.object === 'invoice' &&
    typeof invoice.id === 'string' &&
    amounts.every(Number.isSafeInteger) &&
    [invoice.total_excluding_tax, invoice.amount_shipping].every(isWholeOrNull) &&
    typeof invoice.currency === 'string' &&
    /^[a-z]{3}$/.test(invoice.currency) &&
    [invoice.number, invoice.customer_name, invoice.customer_email].every(isTextOrNull) &&
    [invoice.total_taxes, invoice.total_discount_amounts, invoice.total_pretax_credit_amounts].every(
      isAmountsOrNull,
    ) &&
    Array.isArray(invoice.discounts ?? [])
  if (!fits) throw new UnfitRecord(unreadable)
  return { invoice, lines: invoice.lines?.has_more ? null : readLinePage(invoice.lines) }
}

export function checkPercentage(rate: Stripe.TaxRate): number {
  const percentage = percentageOf(rate)
  if (!Number.isFinite(percentage)) throw new UnfitRecord('Stripe sent a tax rate that does not fit')
  return percentage
}

const isTextOrNull = (value: unknown) => value === null || value === undefined || typeof value === 'string'
const isWholeOrNull = (value: unknown) => value === null || value === undefined || Number.isSafeInteger(value)
const isAmountsOrNull = (value: unknown) =>
  value === null ||
  value === undefined ||
  (Array.isArray(value) && value.every(({ amount }) => Number.isSafeInteger(amount)))
