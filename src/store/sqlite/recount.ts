/** Holds what is kept of a customer's invoices beside them against the rows, one customer at a time. */
import type { DatabaseSync } from 'node:sqlite'
import { countedAbove, dayOf, spans, stretchOf } from '../counting.ts'
import { countStates, currentHead } from './counts.ts'
import { groupTexts, type SearchRow } from './search-days.ts'

export function recounts(db: DatabaseSync) {
  const nextCustomer = db.prepare(`
    SELECT min(customer_id) AS customer_id FROM (
      SELECT min(customer_id) AS customer_id FROM customers WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM invoices WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM counts WHERE customer_id > ?1)`)
  const readCustomer = db.prepare(
    `SELECT total, counted, head <> ${currentHead} AS is_head_wrong FROM customers WHERE customer_id = ?1`,
  )
  const readRows = db.prepare(`
    SELECT issued_at, status, ix_status, party_id, own_text FROM invoices WHERE customer_id = ?1`)
  const readCounts = db.prepare('SELECT span, start, status, ix, n FROM counts WHERE customer_id = ?1')
  const readTexts = db.prepare('SELECT day, kinds, texts FROM search_days WHERE customer_id = ?1')

  /** How many counters and texts of a customer are wrong. */
  function check(customerId: string): number {
    const rows = readRows.all(customerId) as unknown as (SearchRow & { issued_at: number })[]
    const customer = readCustomer.get(customerId)
    const isCounted = customer?.counted === 1
    let wrong =
      Number(customer?.total ?? 0) === rows.length && (isCounted || rows.length <= countedAbove) ? 0 : 1
    if (customer?.is_head_wrong === 1) wrong++
    const days = Map.groupBy(isCounted ? rows : [], ({ issued_at }) => dayOf(issued_at))
    const expected = new Map<string, string | number>()
    const add = (span: number, start: number, part: readonly SearchRow[]) => {
      for (const { status, ix, n } of countStates(part)) {
        const name = JSON.stringify([span, start, status, ix])
        expected.set(name, Number(expected.get(name) ?? 0) + n)
      }
    }
    for (const [day, part] of days) {
      add(spans.day, day, part)
      add(spans.stretch, stretchOf(day), part)
      add(spans.all, 0, part)
      const { kinds, texts } = groupTexts(part)
      expected.set(`texts ${day}`, kinds + texts)
    }
    const stored = new Map<string, unknown>()
    for (const { span, start, status, ix, n } of readCounts.all(customerId))
      stored.set(JSON.stringify([span, start, status, ix]), n)
    for (const { day, kinds, texts } of readTexts.all(customerId))
      stored.set(`texts ${day}`, `${kinds}${texts}`)
    for (const [name, value] of expected) if (stored.get(name) !== value) wrong++
    for (const name of stored.keys()) if (!expected.has(name)) wrong++
    return wrong
  }

  return {
    check,
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
