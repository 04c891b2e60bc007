/**
 * A page of a customer with counters, at the same cost wherever it lies: counters give the total and the days in which
 * the page lies, and only within the first of them are invoices skipped. The caller holds a read transaction.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import {
  coverDays,
  type Days,
  dayLength,
  dayOf,
  everyDay,
  type State,
  spans,
  stateAsked,
} from '../read-model/counting.ts'
import type { InvoiceQuery } from '../store.ts'
import { clampPage, matchingRows } from './matching-rows.ts'

type Count = readonly [start: number, span: number, n: number]

export interface Sought {
  total: number
  page: number
  /** The row ids of the page's invoices. */
  places: number[]
}

export function seekByCounters(db: DatabaseSync, prepare: (sql: string) => StatementSync) {
  const readTotal = db.prepare(
    `SELECT n FROM counts WHERE customer_id = ?1 AND span = ${spans.all} AND status = ?2 AND ix = ?3 AND start = 0`,
  )
  const readCounts = db.prepare(`
    SELECT start, span, n FROM counts
    WHERE customer_id = ?1 AND span = ?2 AND status = ?3 AND ix = ?4 AND start >= ?5 AND start < ?6
    ORDER BY start DESC`)
  // A list may read some dozen of them: as objects they would take half as long again.
  readCounts.setReturnArrays(true)

  /** Counters of a state, latest first. */
  function countsOf(customerId: string, { status, ix }: State, part: Days & { span: number }): Count[] {
    return readCounts.all(customerId, part.span, status, ix, part.first, part.end) as unknown as Count[]
  }

  return (query: InvoiceQuery): Sought => {
    const { customer_id, page_size } = query
    const asked = stateAsked(query)
    const days = daysOf(query)
    const isAnyDay = days.first === everyDay.first && days.end === everyDay.end
    const counts = isAnyDay
      ? countsOf(customer_id, asked, { span: spans.stretch, ...days })
      : coverDays(days).flatMap(part => countsOf(customer_id, asked, part))
    const total = isAnyDay
      ? Number(readTotal.get(customer_id, asked.status, asked.ix)?.n ?? 0)
      : counts.reduce((sum, [, , n]) => sum + n, 0)
    const { page, skip } = clampPage(query, total)

    const places: number[] = []
    const { from, order, values } = matchingRows({ ...query, issued_from: 0, issued_before: 0 })
    const [earliest, before] = [values.length - 2, values.length - 1]
    const sql = `SELECT rowid AS place ${from} ${order} LIMIT ?${values.length + 1} OFFSET ?${values.length + 2}`
    let left = skip
    const readDay = (day: number) => {
      values[earliest] = day * dayLength
      values[before] = (day + 1) * dayLength
      const rows = prepare(sql).all(...values, page_size - places.length, left)
      for (const { place } of rows) places.push(Number(place))
      left = 0
    }
    /** Reads the days in which the page lies, until it is full. */
    const readIn = (some: readonly Count[]) => {
      for (const [start, span, n] of some) {
        if (places.length >= page_size) return
        if (left >= n) left -= n
        else if (span === spans.day) readDay(start)
        else readIn(countsOf(customer_id, asked, { span: spans.day, first: start, end: start + span }))
      }
    }
    if (total > 0) readIn(counts)
    if (places.length !== Math.max(0, Math.min(page_size, total - skip)))
      throw new Error('The counters of a customer do not add up. Run: fatura doctor --repair')
    return { total, page, places }
  }
}

function daysOf({ issued_from, issued_before }: InvoiceQuery): Days {
  return {
    first: issued_from === undefined ? everyDay.first : dayOf(issued_from),
    end: issued_before === undefined ? everyDay.end : dayOf(issued_before),
  }
}
