/** Stripe's events: the requested types, and the invoices that an event concerns. */
import type Stripe from 'stripe'
import type { Notification } from '../source.ts'

/**
 * Event types that the connector requests. A webhook endpoint should send the same types. They concern
 * invoices, payments, credit notes, and customers, whose names and tax ids appear on drafts. Stripe accepts at
 * most 20 types in one request, and no patterns. `invoice.upcoming` is left out because it has no invoice yet.
 * `invoice.will_be_due`, `invoice.sent` and failed payments are left out because they change no stored data.
 */
export const neededEvents = [
  'invoice.created',
  'invoice.deleted',
  'invoice.finalization_failed',
  'invoice.finalized',
  'invoice.marked_uncollectible',
  'invoice.overdue',
  'invoice.overpaid',
  'invoice.paid',
  'invoice.payment_succeeded',
  'invoice.updated',
  'invoice.voided',
  'invoice_payment.paid',
  'credit_note.created',
  'credit_note.updated',
  'credit_note.voided',
  'customer.updated',
  'customer.deleted',
  'customer.tax_id.created',
  'customer.tax_id.updated',
  'customer.tax_id.deleted',
] as const

/**
 * Returns the notification for an event. Null when the event concerns no
 * invoice. The record in the event is not stored, because it may be outdated.
 */
export function readEvent({ id, type, created, data }: Stripe.Event): Notification | null {
  const object = data?.object as Record<'id' | 'object' | 'customer' | 'invoice', unknown> | undefined
  const idOf = (value: unknown) => {
    const found = typeof value === 'string' ? value : (value as { id?: unknown } | null)?.id
    return typeof found === 'string' ? found : null
  }
  const customer_id = object?.object === 'customer' ? idOf(object) : idOf(object?.customer)
  if (type.startsWith('invoice.')) {
    const invoice_id = object?.object === 'invoice' && typeof object.id === 'string' ? object.id : null
    // A preview of an upcoming invoice has no id that begins with `in_`.
    return invoice_id?.startsWith('in_') ? { id, type, created, invoice_id, customer_id } : null
  }
  if (/^(invoice_payment|credit_note)\./.test(type)) {
    const invoice_id = idOf(object?.invoice)
    return invoice_id?.startsWith('in_') ? { id, type, created, invoice_id, customer_id } : null
  }
  const scope = type.startsWith('customer.') ? invoicesToFollow(type, data?.previous_attributes) : 'none'
  if (customer_id === null || scope === 'none') return null
  return { id, type, created, invoice_id: null, customer_id, ...(scope === 'draft' && { only: scope }) }
}

/** Customer fields that change an invoice until it is finalized. */
const draftsFollow = ['name', 'email', 'individual_name', 'tax_ids']
/** Customer fields that change every invoice of the customer. */
const allFollow = ['business_name']

/** Tells which invoices a change of their customer concerns. An event without previous values may concern all of them. */
function invoicesToFollow(type: string, previous: unknown): 'all' | 'draft' | 'none' {
  // Any other event concerns drafts only. Issued invoices keep the stored names, even of a deleted customer.
  if (type !== 'customer.updated') return 'draft'
  if (typeof previous !== 'object' || previous === null) return 'all'
  const changed = Object.keys(previous)
  if (changed.some(name => allFollow.includes(name))) return 'all'
  return changed.some(name => draftsFollow.includes(name)) ? 'draft' : 'none'
}
