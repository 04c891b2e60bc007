/**
 * Counters keep totals, sums and deep pages of large customers cheap. Every customer has a total; a customer of many invoices also
 * has a counter for each month, status, ix_status and currency of its invoices: their number, and the sum of their totals. The
 * transaction that changes rows adds to them what it changed.
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

/** Above this many invoices a customer has counters. Up to it, scanning the index takes no longer than adding them up. */
export const countedAbove = 2_000

/** Whether counters save a customer who has them a scan: of what a filter takes, or of what lies before a page. */
export function isCountable(query: InvoiceQuery): boolean {
  if (rowFilterNames.some(name => query[name] !== undefined && rowFilters[name].counted === null))
    return false
  return isFiltered(query) || (query.page - 1) * query.page_size > countedAbove
}

export function isFiltered(filter: InvoiceFilter): boolean {
  return filterNames.some(name => filter[name] !== undefined)
}

export type Countable = Pick<InvoiceRow, 'issued_at' | 'status' | 'ix_status' | 'currency' | 'total_cents'>

/** A counter, or what is added to one. */
export type Counter = [
  ...[month: string, status: string, currency: string, ix: string],
  ...[n: number, totalCents: bigint],
]

/** The `ix_status` in a counter's key, where none is no null. */
export function ixOf(ixStatus: string | null): string {
  return ixStatus === null ? '-' : `=${ixStatus}`
}

/** The columns of a statement over invoices that makes counters, grouped by the first four. */
export function counterColumns(engine: EngineName): string {
  return `${monthIn[engine]('issued_at')} AS month, status, currency, coalesce('=' || ix_status, '-') AS ix,
    count(*) AS n, sum(total_cents) AS total_cents`
}

/** A whole number that may be beyond 2^53, as SQLite returns it, and PostgreSQL in JSON. */
type ExactSum = bigint | string

/** SQLite returns every number of a row with a sum as a bigint. */
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

/** Sums of entries by currency, as those of credits. */
export const toSums = toCredits

/** Number of entries of a currency, what they add and what they take off. */
export type PeriodRow = [
  ...[currency: string, n: number | bigint],
  ...[debitCents: ExactSum, creditCents: ExactSum],
]

export function toPeriod([currency, n, debit, credit]: PeriodRow): FoundEntries['period'][number] {
  return { currency, count: Number(n), debit: BigInt(debit), credit: BigInt(credit) }
}

/** Every day is between them. */
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

/** From a month's first moment up to, not including, the next month's. */
export function boundsOf(month: string): { from: number; before: number } {
  return { from: Date.parse(`${month}-01`), before: Date.parse(lastDayOf(month)) + dayMs }
}

export interface CustomerChange {
  /** Invoices that came, less those that went. */
  added: number
  /** The customer's version before. */
  previous: number
  /** Invoices that changed, in the order of their first changes. */
  kinds: Map<string, ChangeKind>
  /** Differences of a customer with counters. */
  counters: Map<string, Counter>
}

export class Changes {
  readonly customers = new Map<string, CustomerChange>()
  /** To be filled before any change of a customer is noted; a new one may be left out. */
  readonly known = new Map<string, { isCounted: boolean; version: number }>()
  noted = 0

  /** An invoice changed, or came, or went: null where there was or is none. */
  note(
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
    this.noted++
    change.added += Number(after !== null) - Number(before !== null)
    if (known?.isCounted !== true) return
    if (before !== null) countInvoice(change.counters, before, -1)
    if (after !== null) countInvoice(change.counters, after, 1)
  }
}

/** Two changes of an invoice in one transaction are one. */
function mergeKinds(first: ChangeKind | undefined, then: ChangeKind): ChangeKind {
  if (first === undefined || first === then || then === 'deleted') return then
  return first === 'created' ? 'created' : 'updated'
}

/** The columns of `changes`, but for the commit and the time. */
export const changeColumns = {
  customer_id: 'text',
  version: 'bigint',
  previous: 'bigint',
  invoice_id: 'text',
  kind: 'text',
  place: 'bigint',
} as const

/** A change as it is written, in the order of these columns. */
export type ChangeRow = readonly (string | number)[]

/** A customer's changes as rows; `placeBefore` is the place of the last one before them in the commit. */
export function changeRows(customerId: string, change: CustomerChange, last: number, placeBefore: number) {
  const before = last - change.kinds.size
  return Array.from(change.kinds, ([invoiceId, kind], i) => {
    const previous = i === 0 ? change.previous : before + i
    return [customerId, before + i + 1, previous, invoiceId, kind, placeBefore + i + 1]
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
