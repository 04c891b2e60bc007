/** Stripe's events: which are requested, and what they notify of. */
import type Stripe from 'stripe'
import type { Notification } from '../source.ts'

/**
 * Requested events, which a webhook endpoint should send too: of invoices, their payments and credit notes, and of customers,
 * whose names and tax ids drafts follow. Stripe takes at most 20 names in one request, and no pattern among them.
 * `invoice.upcoming` has no invoice yet; `invoice.will_be_due`, `invoice.sent` and the failures of a payment change nothing that
 * is stored.
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

/** The notification of an event; null when it concerns no invoice. Its data is not used: it may be old. */
export function readEvent({ id, type, created, data }: Stripe.Event): Notification | null {
  const object = data?.object as Record<'id' | 'object' | 'customer' | 'invoice', unknown> | undefined
  const idOf = (value: unknown) => {
    const found = typeof value === 'string' ? value : (value as { id?: unknown } | null)?.id
    return typeof found === 'string' ? found : null
  }
  const customer_id = object?.object === 'customer' ? idOf(object) : idOf(object?.customer)
  if (type.startsWith('invoice.')) {
    const invoice_id = object?.object === 'invoice' && typeof object.id === 'string' ? object.id : null
    // A preview of an upcoming invoice has no id.
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

/** Fields of a customer that an invoice follows until it is finalized. */
const draftsFollow = ['name', 'email', 'individual_name', 'tax_ids']
/** Fields of a customer that every invoice follows. */
const allFollow = ['business_name']

/** The invoices that follow a change of their customer. An event without previous values may mean any. */
function invoicesToFollow(type: string, previous: unknown): 'all' | 'draft' | 'none' {
  // A deleted customer has no names: the stored ones stay.
  if (type !== 'customer.updated') return 'draft'
  if (typeof previous !== 'object' || previous === null) return 'all'
  const changed = Object.keys(previous)
  if (changed.some(name => allFollow.includes(name))) return 'all'
  return changed.some(name => draftsFollow.includes(name)) ? 'draft' : 'none'
}
