/**
 * Counters keep totals and deep pages cheap. Every customer has a total; a customer of many invoices also has counters of
 * them by day, by stretches of 32 days and over all, each by status and ix_status. They are written in the transaction
 * that changes the rows, by counting the days it touched again.
 */
import { defaultPageSize } from '../../invoice.ts'
import type { InvoiceQuery } from '../store.ts'
import { type FilterName, filterNames, type InvoiceFilter } from './filters.ts'

/**
 * Above this many invoices a customer has counters. Up to it, counting and skipping rows in the index takes less than twice
 * as long as reading counters, and writing gets cheaper.
 */
export const countedAbove = 2_000

/** How many of a customer's newest invoices are kept joined as they are sent: the default page is then one row. */
export const headSize = defaultPageSize

/** How many customers that changed within one transaction are held in memory. */
export const heldAtMost = 10_000

/** The filters that counters know. With any other, a large customer's rows are looked at, as a small one's. */
const countedFilters: readonly FilterName[] = ['status', 'ix_status', 'issued_from', 'issued_before']
export const uncountedFilters = filterNames.filter(name => !countedFilters.includes(name))

/** Whether counters save a customer who has them a scan: of what a filter takes, or of what lies before a page. */
export function isCountable(query: InvoiceQuery): boolean {
  if (uncountedFilters.some(name => query[name] !== undefined)) return false
  return isFiltered(query) || (query.page - 1) * query.page_size > countedAbove
}

export function isFiltered(filter: InvoiceFilter): boolean {
  return filterNames.some(name => filter[name] !== undefined)
}

/** Whether a question is for the kept page. */
export function isForHead(query: InvoiceQuery): boolean {
  return query.page === 1 && query.page_size === headSize && !isFiltered(query)
}

export const dayLength = 86_400_000

/** How many days a counter covers; 0 is all of them. Stretches have one length, so that no calendar is needed. */
export const spans = { all: 0, day: 1, stretch: 32 } as const

/**
 * Which invoices a counter counts: of one status or of any (''), and with one ix_status ('=settled'), with none ('-') or
 * whatever it is (''). Each invoice is in four counters of a span, so that every filter reads one.
 */
export interface State {
  status: string
  ix: string
}

export function ixOf(ixStatus: string | null): string {
  return ixStatus === null ? '-' : `=${ixStatus}`
}

/** The state that a question's filters ask for. */
export function stateAsked(filters: Pick<InvoiceFilter, 'status' | 'ix_status'>): State {
  const { status = '', ix_status } = filters
  return { status, ix: ix_status === undefined ? '' : ixOf(ix_status) }
}

/** The UTC day of a moment, counted from the epoch. */
export function dayOf(milliseconds: number): number {
  return Math.floor(milliseconds / dayLength)
}

/** The first day of the stretch that holds a day. */
export function stretchOf(day: number): number {
  return Math.floor(day / spans.stretch) * spans.stretch
}

/** Days from `first` up to, not including, `end`. */
export interface Days {
  first: number
  end: number
}

/** Further than any date reaches. */
export const everyDay: Days = { first: -(2 ** 30), end: 2 ** 30 }

/** The counters that cover a range of days exactly, latest first: days at its ends, stretches between. */
export function coverDays({ first, end }: Days): { span: number; first: number; end: number }[] {
  const [from, to] = [stretchOf(first + spans.stretch - 1), stretchOf(end)]
  const parts =
    from >= to
      ? [{ span: spans.day, first, end }]
      : [
          { span: spans.day, first: to, end },
          { span: spans.stretch, first: from, end: to },
          { span: spans.day, first, end: from },
        ]
  return parts.filter(part => part.first < part.end)
}

/** What a transaction changed: the customers, and of those with counters the days. */
export class Changes {
  readonly customers = new Map<string, { counted: boolean; days: Set<number> }>()

  /** Tells of a customer, before any of its changes. */
  add(customerId: string, counted: boolean): void {
    if (!this.known.has(customerId)) this.known.set(customerId, counted)
  }

  has(customerId: string): boolean {
    return this.known.has(customerId)
  }

  /** An invoice of that moment came, went or changed. */
  note(customerId: string, ...moments: number[]): void {
    let entry = this.customers.get(customerId)
    if (entry === undefined) {
      entry = { counted: this.known.get(customerId) ?? false, days: new Set() }
      this.customers.set(customerId, entry)
    }
    if (entry.counted) for (const moment of moments) entry.days.add(dayOf(moment))
  }

  private readonly known = new Map<string, boolean>()
}
