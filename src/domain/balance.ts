/** Computes what a customer has to pay, since when, and which credit the customer has. Pure functions. */
import { dayMs } from './calendar.ts'
import { creditedCents, isFullyCredited } from './document-json.ts'
import type { Invoice, InvoiceDocument } from './invoice.ts'
import { type PaymentFacts, toPayCents } from './payment.ts'

/** A customer's balance, as the API sends it. The JSON holds all digits of the sums, but a JavaScript `number` rounds values above 2^53. */
export interface CustomerBalance {
  /** UTC day of the answer, YYYY-MM-DD. Days overdue are counted up to this day. */
  day: string
  /** Sums of each currency, sorted by currency code. */
  currencies: readonly CurrencyBalance[]
  /** Open invoices. Overdue ones come first, then those without a due day, then the rest. */
  invoices: readonly OpenInvoice[]
  /** Number of open invoices that are not in `invoices`. */
  more: number
}

export interface CurrencyBalance {
  currency: string
  /** Amount to pay of all open invoices. The customer's credit is not subtracted. */
  remaining_cents: number
  count: number
  /** Amount to pay of the invoices whose due day has passed. */
  overdue_cents: number
  overdue_count: number
  /** The earliest due day that has passed. Null when no invoice is overdue. */
  overdue_since: string | null
  /** `remaining_cents` split by days overdue. */
  aging: Record<AgingBucket, number>
  /** Credit that open invoices leave in the customer's favour. */
  credit_cents: number
  credit_count: number
}

export interface OpenInvoice
  extends Pick<Invoice, 'id' | 'number' | 'issued_at' | 'currency' | 'total_cents'> {
  /** Printed number of the certified document. Null without a document. */
  document_number: string | null
  paid_cents: number
  /** Amount to pay. 0 for an invoice in the customer's favour. */
  remaining_cents: number
  /** Credit that the invoice leaves in the customer's favour. */
  credit_cents: number
  /** Due day, YYYY-MM-DD. An invoice without a due day (null) is due at once and never overdue. */
  due_date: string | null
  days_overdue: number
  /** True when the invoice can be paid on the payment platform's page. */
  can_be_paid: boolean
}

/** Groups of days overdue. Each number is the lowest number of days in its group. */
const buckets = [
  ['not_overdue_cents', Number.NEGATIVE_INFINITY],
  ['overdue_1_30_cents', 1],
  ['overdue_31_60_cents', 31],
  ['overdue_61_90_cents', 61],
  ['overdue_over_90_cents', 91],
] as const
export type AgingBucket = (typeof buckets)[number][0]
export const agingBuckets = buckets.map(([name]) => name)

/** Sums of a customer's open invoices that have the same currency and due day. */
export interface OpenSum {
  currency: string
  due_date: string | null
  /** Number of all open invoices, including those with nothing to pay. */
  count: number
  to_pay_count: number
  to_pay_cents: bigint
  in_favour_count: number
  in_favour_cents: bigint
}

/** Maximum number of open invoices that a balance lists. */
export const openInvoicesShown = 100

type Billed = Pick<Invoice, 'status' | 'total_cents' | 'currency'>

/**
 * Returns the credit that an open invoice leaves in the customer's favour. The credit is the sum of two parts. The first part is the amount
 * of a negative total, less what the customer owed before. The second part is certified credit notes that the payment platform does not
 * know. Credit notes that the platform knows have already reduced the amount to pay.
 */
export function inFavourCents(
  { status, total_cents, currency }: Billed,
  { amount_remaining_cents, starting_balance_cents, pre_payment_credit_cents }: PaymentFacts,
  document: InvoiceDocument | null,
): number {
  if (status !== 'open') return 0
  const ofTotal = Math.max(0, -amount_remaining_cents, -total_cents - Math.max(starting_balance_cents, 0))
  const certified = creditedCents(document, currency)
  return ofTotal + Math.max(0, certified - pre_payment_credit_cents)
}

/** Returns the whole days from the due day to `day`. Returns 0 when there is no due day, or when the due day has not passed. */
export function daysOverdue(dueDate: string | null, day: string): number {
  if (dueDate === null) return 0
  return Math.max(0, Math.round((Date.parse(day) - Date.parse(dueDate)) / dayMs))
}

export function bucketOf(days: number): AgingBucket {
  return buckets.findLast(([, from]) => days >= from)?.[0] ?? 'not_overdue_cents'
}

type ExactSums<T> = { [Name in keyof T]: T[Name] extends number ? number | bigint : T[Name] }
export type ExactBalance = Omit<ExactSums<CurrencyBalance>, 'aging'> & { aging: Record<AgingBucket, bigint> }

/** Returns the sums of each currency, sorted by currency code. */
export function sumBalances(sums: readonly OpenSum[], day: string): ExactBalance[] {
  const byCurrency = [...Map.groupBy(sums, ({ currency }) => currency)]
  return byCurrency.sort(([a], [b]) => (a < b ? -1 : 1)).map(([currency, of]) => balanceOf(currency, of, day))
}

function balanceOf(currency: string, sums: readonly OpenSum[], day: string): ExactBalance {
  const overdue = sums.filter(
    ({ due_date, to_pay_count }) => to_pay_count > 0 && daysOverdue(due_date, day) > 0,
  )
  const aging = Object.fromEntries(agingBuckets.map(name => [name, 0n])) as ExactBalance['aging']
  for (const { due_date, to_pay_cents } of sums) aging[bucketOf(daysOverdue(due_date, day))] += to_pay_cents
  return {
    currency,
    remaining_cents: addUp(sums, 'to_pay_cents'),
    count: count(sums, 'to_pay_count'),
    overdue_cents: addUp(overdue, 'to_pay_cents'),
    overdue_count: count(overdue, 'to_pay_count'),
    overdue_since: overdue.map(({ due_date }) => due_date).sort()[0] ?? null,
    aging,
    credit_cents: addUp(sums, 'in_favour_cents'),
    credit_count: count(sums, 'in_favour_count'),
  }
}

function addUp(sums: readonly OpenSum[], name: 'to_pay_cents' | 'in_favour_cents'): bigint {
  return sums.reduce((all, sum) => all + sum[name], 0n)
}

function count(sums: readonly OpenSum[], name: 'to_pay_count' | 'in_favour_count'): number {
  return sums.reduce((all, sum) => all + sum[name], 0)
}

export function describeOpenInvoice(
  invoice: Invoice,
  facts: PaymentFacts,
  document: InvoiceDocument | null,
  { day, hasPage }: { day: string; hasPage: boolean },
): OpenInvoice {
  const { id, number, issued_at, currency, total_cents } = invoice
  const remaining_cents = toPayCents(invoice, facts)
  return {
    ...{ id, number, issued_at, currency, total_cents },
    document_number: document?.number ?? null,
    paid_cents: facts.amount_paid_cents,
    remaining_cents,
    credit_cents: inFavourCents(invoice, facts, document),
    due_date: facts.due_date,
    days_overdue: remaining_cents > 0 ? daysOverdue(facts.due_date, day) : 0,
    can_be_paid: hasPage && isPayable(invoice, facts, document),
  }
}

/**
 * Tells whether the invoice can be paid on the payment platform's page. Something must remain to be paid, and credit notes must not cover
 * the whole certified document.
 */
export function isPayable(invoice: Billed, facts: PaymentFacts, document: InvoiceDocument | null): boolean {
  return toPayCents(invoice, facts) > 0 && !isFullyCredited(document, invoice.currency)
}
