/** A page by counters: they give the total and the page's months, and only within these are invoices skipped. */
import type { StatementSync } from 'node:sqlite'
import { monthOf } from '../../calendar.ts'
import { boundsOf, ixOf } from '../read-model/counting.ts'
import type { InvoiceQuery } from '../store.ts'
import { clampPage, cutOut, matchingRows, type Value } from './matching-rows.ts'

/** A month, or what the filter leaves of it. */
interface Part {
  from: number
  before: number
  n: number
}

export function seekByCounters(prepare: (sql: string) => StatementSync) {
  /** Months with invoices that match, latest first. One that the filter cuts is counted by its rows. */
  function readParts(query: InvoiceQuery): Part[] {
    const { status, ix_status, issued_from, issued_before } = query
    const values: Value[] = [query.customer_id]
    const given = [
      ['status =', status],
      ['ix =', ix_status === undefined ? undefined : ixOf(ix_status)],
      ['month >=', issued_from === undefined ? undefined : monthOf(issued_from)],
      ['month <=', issued_before === undefined ? undefined : monthOf(issued_before - 1)],
    ] as const
    const conditions = given.flatMap(([condition, value]) =>
      value === undefined ? [] : ` AND ${condition} ?${values.push(value)}`,
    )
    const months = prepare(`
      SELECT month, sum(n) AS n FROM counts WHERE customer_id = ?1${conditions.join('')}
      GROUP BY month ORDER BY month DESC`).all(...values)
    return months.map(({ month, n }) => {
      const whole = boundsOf(String(month))
      const from = Math.max(whole.from, issued_from ?? whole.from)
      const before = Math.min(whole.before, issued_before ?? whole.before)
      if (from === whole.from && before === whole.before) return { from, before, n: Number(n) }
      const cut = matchingRows({ ...query, issued_from: from, issued_before: before })
      return { from, before, n: Number(prepare(`SELECT count(*) AS n ${cut.from}`).get(...cut.values)?.n) }
    })
  }

  function readPlaces(query: InvoiceQuery, { from, before }: Part, limit: number, skip: number): number[] {
    const { order, values, ...rows } = matchingRows({ ...query, issued_from: from, issued_before: before })
    const found = prepare(`SELECT rowid AS place ${rows.from} ${order} ${cutOut(values, limit, skip)}`)
    return found.all(...values).map(({ place }) => Number(place))
  }

  /** With the row ids of the page's invoices. */
  return (query: InvoiceQuery): { total: number; page: number; places: number[] } => {
    const { page_size } = query
    const parts = readParts(query)
    const total = parts.reduce((sum, { n }) => sum + n, 0)
    const { page, skip } = clampPage(query, total)
    const places: number[] = []
    let left = skip
    for (const part of parts) {
      if (places.length >= page_size) break
      if (left < part.n) places.push(...readPlaces(query, part, page_size - places.length, left))
      left = Math.max(0, left - part.n)
    }
    if (places.length !== Math.max(0, Math.min(page_size, total - skip)))
      throw new Error('The counters of a customer do not add up. Run: fatura doctor --repair')
    return { total, page, places }
  }
}
