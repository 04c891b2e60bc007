/** Stripe's objects as API version 2026-10-28.endive writes them. Only fields that the sandbox reads or changes are listed. */
import type { InvoiceStatus } from '../../src/domain/invoice.ts'

export const apiVersion = '2026-10-28.endive'

export interface StripeTaxRate {
  id: string
  object: 'tax_rate'
  display_name: string
  percentage: number
  effective_percentage: number | null
  inclusive: boolean
  [field: string]: unknown
}

export interface StripeTax {
  amount: number
  tax_behavior: 'exclusive' | 'inclusive'
  tax_rate_details: { tax_rate: string }
  taxability_reason: string
  taxable_amount: number
  type: 'tax_rate_details'
}

export interface StripeDiscountAmount {
  amount: number
  discount: string
}

export interface StripeLine {
  id: string
  object: 'line_item'
  amount: number
  currency: string
  description: string | null
  discount_amounts: StripeDiscountAmount[]
  /** Ids of the item's own discounts. `discount_amounts` also has the item's share of the invoice's discounts. */
  discounts: string[]
  pricing: { unit_amount_decimal: string | null; [field: string]: unknown } | null
  quantity: number | null
  quantity_decimal: string | null
  subtotal: number
  taxes: StripeTax[]
  [field: string]: unknown
}

export interface StripeList<T> {
  object: 'list'
  data: T[]
  has_more: boolean
  total_count?: number
  url: string
}

export interface StripeInvoicePayment {
  id: string
  object: 'invoice_payment'
  amount_paid: number | null
  amount_requested: number
  created: number
  currency: string
  invoice: string
  is_default: boolean
  livemode: false
  payment: { type: 'payment_intent'; payment_intent: string }
  status: string
  status_transitions: { canceled_at: number | null; paid_at: number | null }
}

export interface StripeInvoice {
  id: string
  object: 'invoice'
  amount_due: number
  amount_paid: number
  amount_remaining: number
  created: number
  currency: string
  customer: string | StripeCustomer | null
  customer_account: string | null
  customer_email: string | null
  customer_name: string | null
  customer_tax_ids: { type: string; value: string }[] | null
  default_tax_rates: StripeTaxRate[]
  description: string | null
  discounts: string[]
  due_date: number | null
  effective_at: number | null
  ending_balance: number | null
  invoice_pdf: string | null
  /** The account stores all lines. An answer contains the first ten. */
  lines: StripeList<StripeLine>
  metadata: Record<string, string>
  number: string | null
  /** The account stores all payments, newest first. An answer contains the first ten, and only when the request expands them. */
  payments: StripeList<StripeInvoicePayment>
  post_payment_credit_notes_amount: number
  pre_payment_credit_notes_amount: number
  starting_balance: number
  status: InvoiceStatus
  status_transitions: {
    finalized_at: number | null
    marked_uncollectible_at: number | null
    paid_at: number | null
    voided_at: number | null
  }
  subtotal: number
  subtotal_excluding_tax: number | null
  total: number
  total_discount_amounts: StripeDiscountAmount[]
  total_excluding_tax: number | null
  total_taxes: StripeTax[]
  [field: string]: unknown
}

export interface LivingCustomer {
  id: string
  object: 'customer'
  deleted?: undefined
  balance: number
  business_name?: string
  created: number
  email: string | null
  individual_name?: string
  invoice_prefix: string
  name: string | null
  [field: string]: unknown
}

export interface DeletedCustomer {
  id: string
  object: 'customer'
  deleted: true
}

export type StripeCustomer = LivingCustomer | DeletedCustomer

export interface StripeEvent {
  id: string
  object: 'event'
  api_version: string
  created: number
  data: { object: Record<string, unknown>; previous_attributes?: Record<string, unknown> }
  livemode: false
  pending_webhooks: number
  request: { id: string | null; idempotency_key: string | null }
  type: string
}

export function makeEvent(
  id: string,
  type: string,
  created: number,
  object: object,
  previous_attributes?: Record<string, unknown>,
): StripeEvent {
  return {
    id,
    object: 'event',
    api_version: apiVersion,
    created,
    data: {
      object: object as Record<string, unknown>,
      ...(previous_attributes === undefined ? {} : { previous_attributes }),
    },
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
  }
}

/** Number of lines or payments that an invoice contains in an answer. */
const embedded = 10

export function onTheWire(invoice: StripeInvoice, hasPayments = false): object {
  const { lines, payments, ...rest } = invoice
  return { ...rest, lines: firstOf(lines), ...(hasPayments && { payments: firstOf(payments) }) }
}

function firstOf<T>(list: StripeList<T>): StripeList<T> {
  if (list.data.length <= embedded) return list
  return { ...list, data: list.data.slice(0, embedded), has_more: true }
}

/** Merges metadata entries as Stripe does. An empty text removes an entry. */
export function mergeMetadata(
  metadata: Record<string, string>,
  entries: Record<string, string>,
): Record<string, string> {
  return Object.fromEntries(Object.entries({ ...metadata, ...entries }).filter(([, value]) => value !== ''))
}

/** Returns the former values of changed entries. Null for a new entry. */
export function formerMetadata(
  before: Record<string, string>,
  after: Record<string, string>,
): Record<string, string | null> {
  const changed = Object.keys({ ...before, ...after }).filter(name => before[name] !== after[name])
  return Object.fromEntries(changed.map(name => [name, before[name] ?? null]))
}
