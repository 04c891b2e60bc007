/** Holds what is kept of a customer's invoices beside them against the rows, one customer at a time. */
import type { DatabaseSync } from 'node:sqlite'
import { countedAbove, dayOf, spans, stretchOf } from '../read-model/counting.ts'
import { hasSameParts, signDay } from '../read-model/search-signs.ts'
import { countStates, currentHead, type StoredRow } from './counts.ts'
import { dayColumns, makeDay, type SearchDay, type SearchRow, textsOf } from './search-days.ts'

export function recounts(db: DatabaseSync) {
  const nextCustomer = db.prepare(`
    SELECT min(customer_id) AS customer_id FROM (
      SELECT min(customer_id) AS customer_id FROM customers WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM invoices WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM counts WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM search_days WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM search_signs WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM search_words WHERE customer_id > ?1
      UNION ALL SELECT min(customer_id) FROM parties WHERE customer_id > ?1)`)
  const countInvoices = db.prepare('SELECT count(*) AS n FROM invoices WHERE customer_id = ?1')
  const countLeft = db.prepare(`
    SELECT count(*) AS n FROM parties WHERE customer_id = ?1 AND NOT EXISTS (
      SELECT 1 FROM invoices INDEXED BY invoices_by_party
      WHERE invoices.customer_id = ?1 AND invoices.party_id = parties.party_id)`)
  const sumTotals = db.prepare('SELECT coalesce(sum(total), 0) AS n FROM customers')
  const readCustomer = db.prepare(
    `SELECT total, counted, head <> ${currentHead} AS is_head_wrong FROM customers WHERE customer_id = ?1`,
  )
  const readRows = db.prepare(`
    SELECT issued_at, status, ix_status, party_id, own_text FROM invoices INDEXED BY invoices_in_order
    WHERE customer_id = ?1 ORDER BY issued_at DESC, id DESC`)
  const readParties = db.prepare('SELECT party_id, text FROM parties WHERE customer_id = ?1')
  const readCounts = db.prepare('SELECT span, start, status, ix, n FROM counts WHERE customer_id = ?1')
  const readDays = db.prepare(
    `SELECT day, is_signed, signed_size, ${dayColumns} FROM search_days WHERE customer_id = ?1`,
  )
  const readParts = db.prepare(`
    SELECT 'sign' AS kind, part, day, bits FROM search_signs WHERE customer_id = ?1
    UNION ALL SELECT 'word', part, day, bits FROM search_words WHERE customer_id = ?1`)

  /** The invoices in the list's order. */
  function rowsOf(customerId: string): (SearchRow & { issued_at: number })[] {
    const parties = new Map(readParties.all(customerId).map(({ party_id, text }) => [party_id, String(text)]))
    const stored = readRows.all(customerId) as unknown as (StoredRow & { issued_at: number })[]
    return stored.map(({ party_id, ...row }) => ({ ...row, party: parties.get(party_id) ?? '' }))
  }

  /** How many counters and texts of a customer are wrong, and how many invoices there are. */
  function check(customerId: string): { wrong: number; invoices: number } {
    const invoices = Number(countInvoices.get(customerId)?.n)
    const customer = readCustomer.get(customerId)
    const isCounted = customer?.counted === 1
    let wrong = Number(customer?.total ?? 0) === invoices && (isCounted || invoices <= countedAbove) ? 0 : 1
    if (customer?.is_head_wrong === 1) wrong++
    wrong += Number(countLeft.get(customerId)?.n)
    return { wrong: wrong + checkCounters(customerId, isCounted), invoices }
  }

  function checkCounters(customerId: string, isCounted: boolean): number {
    const days = Map.groupBy(isCounted ? rowsOf(customerId) : [], ({ issued_at }) => dayOf(issued_at))
    const expected = new Map<string, string | number>()
    for (const [day, part] of days)
      for (const { status, ix, n } of countStates(part))
        for (const [span, start] of [
          [spans.day, day],
          [spans.stretch, stretchOf(day)],
          [spans.all, 0],
        ]) {
          const name = JSON.stringify([span, start, status, ix])
          expected.set(name, Number(expected.get(name) ?? 0) + n)
        }
    const stored = new Map<string, unknown>()
    for (const { span, start, status, ix, n } of readCounts.all(customerId))
      stored.set(JSON.stringify([span, start, status, ix]), n)
    const searchDays = readDays.all(customerId) as unknown as StoredDay[]
    const unsigned = new Set(searchDays.filter(({ is_signed }) => is_signed === 0).map(({ day }) => day))
    for (const day of searchDays) stored.set(`day ${day.day}`, nameDay(day))
    for (const { kind, part, day, bits } of readParts.all(customerId))
      if (!unsigned.has(Number(day))) stored.set(`${kind} ${day} ${part}`, nameBytes(bits as Uint8Array))
    for (const [day, rows] of days) {
      const made = makeDay(rows)
      expected.set(`day ${day}`, nameDay(made))
      if (unsigned.has(day)) continue
      const { signs, words } = signDay(textsOf(made))
      for (const [part, bits] of signs.entries()) expected.set(`sign ${day} ${part}`, nameBytes(bits))
      for (const [part, bits] of words.entries()) expected.set(`word ${day} ${part}`, nameBytes(bits))
    }
    for (const { day, signed_size, is_signed } of searchDays)
      if (is_signed === 1 && !hasSameParts(signed_size, days.get(day)?.length ?? 0))
        stored.set(`size ${day}`, signed_size)
    let wrong = 0
    for (const [name, value] of expected) if (stored.get(name) !== value) wrong++
    for (const name of stored.keys()) if (!expected.has(name)) wrong++
    return wrong
  }

  return {
    check,
    /** How many invoices there are, as the totals say. */
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

type StoredDay = SearchDay & { day: number; is_signed: number; signed_size: number }

function nameDay({ states, marks, parties, texts }: SearchDay): string {
  return [states, nameBytes(marks), parties, texts].join(' ')
}

function nameBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
