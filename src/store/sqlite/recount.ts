/** Compares totals, first pages and counters with the rows, one customer at a time. */
import type { DatabaseSync } from 'node:sqlite'
import { countedAbove } from '../read-model/counting.ts'
import { currentHead, madeCounters } from './counts.ts'

const keptCounters = 'SELECT month, status, currency, ix, n, high, low FROM counts WHERE customer_id = ?1'

export function recounts(db: DatabaseSync) {
  const nextCustomer = db.prepare(`
    SELECT min(customer_id) AS customer_id FROM (
      SELECT min(customer_id) AS customer_id FROM customers WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM invoices WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM counts WHERE customer_id > ?1)`)
  const countInvoices = db.prepare('SELECT count(*) AS n FROM invoices WHERE customer_id = ?1')
  const sumTotals = db.prepare('SELECT coalesce(sum(total), 0) AS n FROM customers')
  const readCustomer = db.prepare(
    `SELECT total, counted, head <> ${currentHead} AS is_head_wrong FROM customers WHERE customer_id = ?1`,
  )
  const countKept = db.prepare('SELECT count(*) AS n FROM counts WHERE customer_id = ?1')
  const countWrong = db.prepare(`
    WITH made AS (${madeCounters}), kept AS (${keptCounters})
    SELECT count(*) AS n FROM (
      SELECT month, status, currency, ix FROM (SELECT * FROM made EXCEPT SELECT * FROM kept)
      UNION SELECT month, status, currency, ix FROM (SELECT * FROM kept EXCEPT SELECT * FROM made))`)

  return {
    /** Number of wrong totals, first pages and counters of a customer, and of its invoices. */
    check(customerId: string): { wrong: number; invoices: number } {
      const invoices = Number(countInvoices.get(customerId)?.n)
      const customer = readCustomer.get(customerId)
      const isCounted = customer?.counted === 1
      const isTotalWrong =
        Number(customer?.total ?? 0) !== invoices || (!isCounted && invoices > countedAbove)
      const counters = (isCounted ? countWrong : countKept).get(customerId)
      const wrong = Number(isTotalWrong) + Number(customer?.is_head_wrong ?? 0) + Number(counters?.n)
      return { wrong, invoices }
    },
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
