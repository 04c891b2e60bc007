/** Compares totals, first pages and counters with the rows, one customer at a time. */
import type { DatabaseSync } from 'node:sqlite'
import { countedAbove, dayOf, spans, stretchOf } from '../read-model/counting.ts'
import { keepSums } from '../read-model/sums.ts'
import { countStates, currentHead, type StateRow } from './counts.ts'
import { makeSums } from './read-pages.ts'

export function recounts(db: DatabaseSync) {
  const nextCustomer = db.prepare(`
    SELECT min(customer_id) AS customer_id FROM (
      SELECT min(customer_id) AS customer_id FROM customers WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM invoices WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM counts WHERE customer_id > ?1)`)
  const countInvoices = db.prepare('SELECT count(*) AS n FROM invoices WHERE customer_id = ?1')
  const sumTotals = db.prepare('SELECT coalesce(sum(total), 0) AS n FROM customers')
  const readCustomer = db.prepare(
    `SELECT total, counted, sums, head <> ${currentHead} AS is_head_wrong FROM customers WHERE customer_id = ?1`,
  )
  const readRows = db.prepare(`
    SELECT issued_at, status, ix_status FROM invoices INDEXED BY invoices_in_order WHERE customer_id = ?1`)
  const readCounts = db.prepare('SELECT span, start, status, ix, n FROM counts WHERE customer_id = ?1')

  const sumAll = db.prepare(makeSums())

  /** Number of wrong totals, counters and sums of a customer, and of its invoices. */
  function check(customerId: string): { wrong: number; invoices: number } {
    const invoices = Number(countInvoices.get(customerId)?.n)
    const customer = readCustomer.get(customerId)
    const isCounted = customer?.counted === 1
    let wrong = Number(customer?.total ?? 0) === invoices && (isCounted || invoices <= countedAbove) ? 0 : 1
    if (customer?.is_head_wrong === 1) wrong++
    const sums = isCounted ? keepSums(String(sumAll.get(customerId)?.sums)) : null
    if ((customer?.sums ?? null) !== sums) wrong++
    return { wrong: wrong + checkCounters(customerId, isCounted), invoices }
  }

  function checkCounters(customerId: string, isCounted: boolean): number {
    const rows = (isCounted ? readRows.all(customerId) : []) as unknown as (StateRow & {
      issued_at: number
    })[]
    const days = Map.groupBy(rows, ({ issued_at }) => dayOf(issued_at))
    const expected = new Map<string, number>()
    for (const [day, part] of days)
      for (const { status, ix, n } of countStates(part))
        for (const [span, start] of [
          [spans.day, day],
          [spans.stretch, stretchOf(day)],
          [spans.all, 0],
        ]) {
          const name = JSON.stringify([span, start, status, ix])
          expected.set(name, (expected.get(name) ?? 0) + n)
        }
    const stored = new Map<string, unknown>()
    for (const { span, start, status, ix, n } of readCounts.all(customerId))
      stored.set(JSON.stringify([span, start, status, ix]), n)
    let wrong = 0
    for (const [name, value] of expected) if (stored.get(name) !== value) wrong++
    for (const name of stored.keys()) if (!expected.has(name)) wrong++
    return wrong
  }

  return {
    check,
    /** Number of invoices, by the totals. */
    estimate(): number {
      return Number(sumTotals.get()?.n)
    },
    *customers(): Generator<string> {
      for (let last = ''; ; ) {
        const next = nextCustomer.get(last)?.customer_id
        if (next === null || next === undefined) return
        last = String(next)
        yield last
      }
    },
  }
}
