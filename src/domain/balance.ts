/** The domain: what a customer has to pay, since when, and what stands in its favour. Pure. */
import { dayMs } from './calendar.ts'
import { creditedCents, isFullyCredited } from './document-json.ts'
import type { Invoice, InvoiceDocument } from './invoice.ts'
import { type PaymentFacts, toPayCents } from './payment.ts'

/** A customer's balance, as it is sent. Sums are exact in the JSON, and rounded in a `number` beyond 2^53. */
export interface CustomerBalance {
  /** The UTC day, YYYY-MM-DD, by which days overdue are counted. */
  day: string
  /** In the order of their codes. */
  currencies: readonly CurrencyBalance[]
  /** The open invoices, the oldest due first. */
  invoices: readonly OpenInvoice[]
  /** How many open invoices there are beside these. */
  more: number
}

export interface CurrencyBalance {
  currency: string
  /** What is to be paid of open invoices: nothing is taken off it. */
  remaining_cents: number
  count: number
  /** The part of it whose due day has passed. */
  overdue_cents: number
  overdue_count: number
  /** The oldest due day that has passed; null when none has. */
  overdue_since: string | null
  /** The same sum by days overdue. */
  aging: Record<AgingBucket, number>
  /** What open invoices leave in the customer's favour. */
  credit_cents: number
  credit_count: number
}

export interface OpenInvoice
  extends Pick<Invoice, 'id' | 'number' | 'issued_at' | 'currency' | 'total_cents'> {
  /** As printed on its certified document; null without one. */
  document_number: string | null
  paid_cents: number
  /** What is to be paid; 0 for an invoice in the customer's favour. */
  remaining_cents: number
  /** What it leaves in the customer's favour. */
  credit_cents: number
  /** YYYY-MM-DD; null without one: then it is due at once, and never overdue. */
  due_date: string | null
  days_overdue: number
  /** Whether it can be paid on the payment platform's page. */
  can_be_paid: boolean
}

/** Days overdue, each from the first number of days up. */
const buckets = [
  ['not_overdue_cents', Number.NEGATIVE_INFINITY],
  ['overdue_1_30_cents', 1],
  ['overdue_31_60_cents', 31],
  ['overdue_61_90_cents', 61],
  ['overdue_over_90_cents', 91],
] as const
export type AgingBucket = (typeof buckets)[number][0]
export const agingBuckets = buckets.map(([name]) => name)

/** A customer's open invoices of one currency and due day. */
export interface OpenSum {
  currency: string
  due_date: string | null
  /** All of them. */
  count: number
  to_pay_count: number
  to_pay_cents: bigint
  in_favour_count: number
  in_favour_cents: bigint
}

/** How many open invoices a balance shows. */
export const openInvoicesShown = 100

type Billed = Pick<Invoice, 'status' | 'total_cents' | 'currency'>

/**
 * What an open invoice leaves in the customer's favour: a negative total, once what was owed before is taken off, and credit notes of
 * its certified document that the payment platform was not told of. It took the others off what remains.
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

/** Whole days from the due day to a day; 0 until it has passed, and without a due day. */
export function daysOverdue(dueDate: string | null, day: string): number {
  if (dueDate === null) return 0
  return Math.max(0, Math.round((Date.parse(day) - Date.parse(dueDate)) / dayMs))
}

export function bucketOf(days: number): AgingBucket {
  return buckets.findLast(([, from]) => days >= from)?.[0] ?? 'not_overdue_cents'
}

type ExactSums<T> = { [Name in keyof T]: T[Name] extends number ? number | bigint : T[Name] }
export type ExactBalance = Omit<ExactSums<CurrencyBalance>, 'aging'> & { aging: Record<AgingBucket, bigint> }

/** The sums by currency, in the order of their codes. */
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

/** Whether an invoice is to be paid on the payment platform's page: something of it remains, and its certified document is not credited whole. */
export function isPayable(invoice: Billed, facts: PaymentFacts, document: InvoiceDocument | null): boolean {
  return toPayCents(invoice, facts) > 0 && !isFullyCredited(document, invoice.currency)
}
