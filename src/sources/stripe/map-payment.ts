/** Maps the payment fields of Stripe's invoices to the types of `domain`. Pure. */
import { dayOf } from '../../domain/calendar.ts'
import type { Invoice } from '../../domain/invoice.ts'
import {
  completePaymentFacts,
  type Payment,
  type PaymentFacts,
  type TaxByRate,
} from '../../domain/payment.ts'
import type { InvoiceHead, PaymentItem } from './invoice-shape.ts'
import { percentOfRate, type TaxRates } from './map-invoice.ts'

/**
 * Facts that Stripe leaves out are derived from the others. `payments` is null when the payments
 * could not be read. A draft shows the customer's current balance, but Stripe applies a balance
 * only when it finalizes the invoice. So a draft's amounts are computed without the balance.
 */
export function mapPaymentFacts(
  source: InvoiceHead,
  invoice: Pick<Invoice, 'status' | 'total_cents'>,
  rates: TaxRates,
  payments: readonly PaymentItem[] | null,
): PaymentFacts {
  const given: Partial<PaymentFacts> = {
    due_date: source.due_date == null ? null : dayOf(source.due_date * 1000),
    closed_at: closedAt(source, invoice.status),
    taxes: taxesOf(source, rates),
    payments: mapPayments(payments ?? []),
  }
  const amounts = {
    amount_due_cents: source.amount_due,
    amount_paid_cents: source.amount_paid,
    amount_remaining_cents: source.amount_remaining,
    pre_payment_credit_cents: source.pre_payment_credit_notes_amount,
    post_payment_credit_cents: source.post_payment_credit_notes_amount,
    starting_balance_cents: source.starting_balance,
  }
  return completePaymentFacts(
    invoice,
    invoice.status === 'draft' ? given : { ...given, ...onlyGiven(amounts) },
  )
}

/** Names of Stripe's fields that hold the time when an invoice was paid, voided or marked uncollectible. */
const closings = { paid: 'paid_at', void: 'voided_at', uncollectible: 'marked_uncollectible_at' } as const

function closedAt({ status_transitions }: InvoiceHead, status: Invoice['status']): string | null {
  if (status === 'draft' || status === 'open') return null
  const seconds = status_transitions?.[closings[status]]
  return seconds == null ? null : new Date(seconds * 1000).toISOString()
}

function onlyGiven<T extends object>(fields: T) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** Returns null when Stripe sends no list of taxes. An unknown rate is null, not 0 %. */
function taxesOf(source: InvoiceHead, rates: TaxRates): TaxByRate[] | null {
  const { total_taxes } = source
  if (total_taxes == null) return null
  const taxes = total_taxes.map(
    ({ amount, taxable_amount, taxability_reason, tax_rate_details }): TaxByRate => {
      const rate = tax_rate_details?.tax_rate ?? null
      return {
        rate_percent: rate === null ? null : percentOfRate(source, rate, rates),
        base_cents: taxable_amount ?? null,
        tax_cents: amount,
        reason: taxability_reason ?? null,
      }
    },
  )
  const alike = Map.groupBy(taxes, ({ rate_percent, reason }, index) =>
    // Unknown rates are not merged, because they may differ.
    JSON.stringify(rate_percent === null ? index : [rate_percent, reason]),
  )
  return [...alike.values()]
    .map(some => some.reduce(addTax))
    .sort(
      (a, b) => (b.rate_percent ?? -1) - (a.rate_percent ?? -1) || compare(a.reason ?? '', b.reason ?? ''),
    )
}

function addTax(a: TaxByRate, b: TaxByRate): TaxByRate {
  const isKnown = a.base_cents !== null && b.base_cents !== null
  return {
    ...a,
    base_cents: isKnown ? Number(a.base_cents) + Number(b.base_cents) : null,
    tax_cents: a.tax_cents + b.tax_cents,
  }
}

/** Leaves out canceled payments. Several parts with the same payment id become one payment. */
export function mapPayments(items: readonly PaymentItem[]): Payment[] {
  const payments = items.filter(({ status }) => status !== 'canceled').map(mapPayment)
  return [...Map.groupBy(payments, ({ id }) => id).values()]
    .map(some => some.reduce(addPayment))
    .sort((a, b) => compare(a.paid_at ?? '~', b.paid_at ?? '~') || compare(a.id, b.id))
}

function mapPayment({ id, payment, status, amount_paid, status_transitions }: PaymentItem): Payment {
  const by = payment?.payment_intent ?? payment?.charge ?? payment?.payment_record ?? id
  const isPaid = status === 'paid'
  const seconds = isPaid ? status_transitions?.paid_at : null
  return {
    id: typeof by === 'string' ? by : by.id,
    amount_cents: isPaid ? (amount_paid ?? 0) : 0,
    paid_at: seconds == null ? null : new Date(seconds * 1000).toISOString(),
  }
}

function addPayment(a: Payment, b: Payment): Payment {
  const [last = null] = [a.paid_at, b.paid_at]
    .filter(at => at !== null)
    .sort()
    .reverse()
  return { id: a.id, amount_cents: a.amount_cents + b.amount_cents, paid_at: last }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
