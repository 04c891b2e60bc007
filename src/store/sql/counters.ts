/**
 * Counters make totals, sums and deep pages of large customers cheap. Every customer has a total. A customer with many invoices also has a
 * counter for each combination of month, status, ix_status and currency. A counter holds the number of invoices and the sum of their
 * totals. The transaction that changes rows also updates the counters.
 */
import type { FoundEntries } from '../../domain/account.ts'
import type { OpenSum } from '../../domain/balance.ts'
import { dayMs, lastDayOf, monthOf } from '../../domain/calendar.ts'
import type { ChangeKind } from '../../domain/change.ts'
import type { InvoiceKey, InvoiceStatus, InvoiceSum } from '../../domain/invoice.ts'
import type { InvoiceQuery } from '../store.ts'
import {
  type EngineName,
  filterNames,
  type InvoiceFilter,
  monthIn,
  rowFilterNames,
  rowFilters,
} from './filters.ts'
import type { InvoiceRow } from './invoice-row.ts'

/** A customer with more invoices than this has counters. For fewer invoices, scanning the index takes no longer than adding up counters. */
export const countedAbove = 2_000

/** Tells whether counters avoid a scan, for a customer that has counters. They do for a filter that they know, and for a deep page. */
export function isCountable(query: InvoiceQuery): boolean {
  if (rowFilterNames.some(name => query[name] !== undefined && rowFilters[name].counted === null))
    return false
  return isFiltered(query) || (query.page - 1) * query.page_size > countedAbove
}

export function isFiltered(filter: InvoiceFilter): boolean {
  return filterNames.some(name => filter[name] !== undefined)
}

export type Countable = Pick<InvoiceRow, 'issued_at' | 'status' | 'ix_status' | 'currency' | 'total_cents'>

/** A counter, or the difference that is added to a counter. */
export type Counter = [
  ...[month: string, status: string, currency: string, ix: string],
  ...[n: number, totalCents: bigint],
]

/** Returns the text for an `ix_status` in a counter's key. A null status becomes "-", because the key must not contain nulls. */
export function ixOf(ixStatus: string | null): string {
  return ixStatus === null ? '-' : `=${ixStatus}`
}

/** Returns the columns of a statement that computes counters from invoices. The statement must group by the first four columns. */
export function counterColumns(engine: EngineName): string {
  return `${monthIn[engine]('issued_at')} AS month, status, currency, coalesce('=' || ix_status, '-') AS ix,
    count(*) AS n, sum(total_cents) AS total_cents`
}

/** A whole number that may exceed 2^53. SQLite returns a bigint, and PostgreSQL a text within JSON. */
type ExactSum = bigint | string

/** Row of a sum. SQLite returns every number of such a row as a bigint. */
export type SumRow = [
  ...[month: string, status: InvoiceStatus, currency: string],
  ...[n: number | bigint, totalCents: ExactSum],
]

export function toSum([month, status, currency, n, totalCents]: SumRow): InvoiceSum {
  return { currency, status, month, count: Number(n), total_cents: BigInt(totalCents) }
}

export type CreditRow = [currency: string, creditedCents: ExactSum]

export function toCredits(rows: readonly CreditRow[]): Map<string, bigint> {
  return new Map(rows.map(([currency, creditedCents]) => [currency, BigInt(creditedCents)]))
}

/** Converts sums of account entries by currency. Their rows have the form of `CreditRow`, so `toCredits` converts them. */
export const toSums = toCredits

/** Number of account entries of a currency, with the sum of debits and the sum of credits. */
export type PeriodRow = [
  ...[currency: string, n: number | bigint],
  ...[debitCents: ExactSum, creditCents: ExactSum],
]

export function toPeriod([currency, n, debit, credit]: PeriodRow): FoundEntries['period'][number] {
  return { currency, count: Number(n), debit: BigInt(debit), credit: BigInt(credit) }
}

/** Texts that sort before every day and after every day. */
export const [firstDay, lastDay] = ['', '~']

export type OpenSumRow = [
  ...[currency: string, dueDate: string | null, n: number | bigint],
  ...[toPayCount: number | bigint, toPayCents: ExactSum],
  ...[inFavourCount: number | bigint, inFavourCents: ExactSum],
]

export function toOpenSum(row: OpenSumRow): OpenSum {
  const [currency, due_date, n, toPayCount, toPayCents, inFavourCount, inFavourCents] = row
  return {
    ...{ currency, due_date, count: Number(n) },
    to_pay_count: Number(toPayCount),
    to_pay_cents: BigInt(toPayCents),
    in_favour_count: Number(inFavourCount),
    in_favour_cents: BigInt(inFavourCents),
  }
}

/** Returns the first moment of a month and the first moment of the next month, in milliseconds. */
export function boundsOf(month: string): { from: number; before: number } {
  return { from: Date.parse(`${month}-01`), before: Date.parse(lastDayOf(month)) + dayMs }
}

export interface CustomerChange {
  /** Number of added invoices, less the number of removed ones. */
  added: number
  /** The customer's version before the transaction. */
  previous: number
  /** Kind of change by invoice ID, in the order of the first changes. */
  kinds: Map<string, ChangeKind>
  /** Differences to add to the counters. Empty for a customer without counters. */
  counters: Map<string, Counter>
}

export class Changes {
  readonly customers = new Map<string, CustomerChange>()
  /** State of the customers, filled before their changes are recorded. A new customer may be missing. */
  readonly known = new Map<string, { isCounted: boolean; version: number }>()
  recorded = 0

  /** Records a change of an invoice. `before` is null for a new invoice. `after` is null for a deleted one. */
  record(
    { customer_id, id }: InvoiceKey,
    before: Countable | null,
    after: Countable | null,
    isDocument = false,
  ): void {
    const known = this.known.get(customer_id)
    let change = this.customers.get(customer_id)
    if (change === undefined) {
      change = { added: 0, previous: known?.version ?? 0, kinds: new Map(), counters: new Map() }
      this.customers.set(customer_id, change)
    }
    const kind =
      after === null ? 'deleted' : before === null ? 'created' : isDocument ? 'document' : 'updated'
    change.kinds.set(id, mergeKinds(change.kinds.get(id), kind))
    this.recorded++
    change.added += Number(after !== null) - Number(before !== null)
    if (known?.isCounted !== true) return
    if (before !== null) countInvoice(change.counters, before, -1)
    if (after !== null) countInvoice(change.counters, after, 1)
  }
}

/** Combines two changes of the same invoice within one transaction. */
function mergeKinds(first: ChangeKind | undefined, then: ChangeKind): ChangeKind {
  if (first === undefined || first === then || then === 'deleted') return then
  return first === 'created' ? 'created' : 'updated'
}

/** Columns of the table `changes`, except the commit and the time. */
export const changeColumns = {
  customer_id: 'text',
  version: 'bigint',
  previous: 'bigint',
  invoice_id: 'text',
  kind: 'text',
  place: 'bigint',
} as const

/** Values of one change, in the order of `changeColumns`. */
export type ChangeRow = readonly (string | number)[]

/**
 * Returns a customer's changes as rows. `last` is the customer's version after the last change. `positionBefore` is the number of changes
 * that the commit had before.
 */
export function changeRows(customerId: string, change: CustomerChange, last: number, positionBefore: number) {
  const before = last - change.kinds.size
  return Array.from(change.kinds, ([invoiceId, kind], i) => {
    const previous = i === 0 ? change.previous : before + i
    return [customerId, before + i + 1, previous, invoiceId, kind, positionBefore + i + 1]
  })
}

function countInvoice(counters: Map<string, Counter>, invoice: Countable, sign: 1 | -1): void {
  const { issued_at, status, ix_status, currency, total_cents } = invoice
  const [month, ix] = [monthOf(issued_at), ixOf(ix_status)]
  const key = JSON.stringify([month, status, currency, ix])
  const counter = counters.get(key) ?? [month, status, currency, ix, 0, 0n]
  counter[4] += sign
  counter[5] += BigInt(sign * total_cents)
  counters.set(key, counter)
}
