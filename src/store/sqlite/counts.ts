/** Totals, first pages and counters of the customers that a transaction changed: written before it commits. */
import type { DatabaseSync } from 'node:sqlite'
import {
  Changes,
  countedAbove,
  dayLength,
  dayOf,
  everyDay,
  headSize,
  heldAtMost,
  ixOf,
  type State,
  spans,
  stretchOf,
} from '../read-model/counting.ts'
import { keepSums, monthsOf, replaceMonths } from '../read-model/sums.ts'
import { joinSummaries, makeSums } from './read-pages.ts'

/** A row of invoices, as far as counters need it. */
export interface StateRow {
  status: string
  ix_status: string | null
}

/** A customer's newest summaries, joined. */
export const currentHead = `
  coalesce((SELECT ${joinSummaries} FROM (
    SELECT summary FROM invoices WHERE customer_id = ?1 ORDER BY issued_at DESC, id DESC LIMIT ${headSize})), x'')`

export function keepCounts(db: DatabaseSync) {
  const isCounted = db.prepare('SELECT counted FROM customers WHERE customer_id = ?1')
  const countInvoices = db.prepare('SELECT count(*) AS n FROM invoices WHERE customer_id = ?1')
  const readMoments = db.prepare('SELECT DISTINCT issued_at FROM invoices WHERE customer_id = ?1')
  const readDay = db.prepare(`
    SELECT status, ix_status FROM invoices INDEXED BY invoices_in_order
    WHERE customer_id = ?1 AND issued_at >= ?2 AND issued_at < ?3`)
  // The states there are, or were: of each, the span has a counter or none.
  const ofEachState =
    'WHERE customer_id = ?1 AND (status, ix) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2))'
  const readStates = db.prepare(
    `SELECT json_group_array(json_array(status, ix)) AS states FROM counts WHERE customer_id = ?1 AND span = ${spans.all}`,
  )
  const deleteCounts = db.prepare(
    `DELETE FROM counts ${ofEachState} AND span = ?3 AND start >= ?4 AND start < ?5`,
  )
  const insertCount = db.prepare(`
    INSERT INTO counts (customer_id, span, status, ix, start, n) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`)
  const sumCounts = db.prepare(`
    INSERT INTO counts (customer_id, span, status, ix, start, n)
    SELECT ?1, ?3, status, ix, ?4, sum(n) FROM counts
    ${ofEachState} AND span = ?5 AND start >= ?6 AND start < ?7 GROUP BY status, ix`)
  const deleteAllCounts = db.prepare('DELETE FROM counts WHERE customer_id = ?1')
  const readTotal = db.prepare(
    `SELECT n FROM counts WHERE customer_id = ?1 AND span = ${spans.all} AND status = '' AND ix = '' AND start = 0`,
  )
  // The clock keeps a version unique even across a store restored from a backup; the sum keeps it rising.
  const saveCustomer = db.prepare(`
    INSERT INTO customers (customer_id, version, total, counted, sums, head)
    VALUES (?1, ?2, ?3, ?4 IS NOT NULL, ?4, ${currentHead})
    ON CONFLICT (customer_id) DO UPDATE SET version = max(version + 1, excluded.version),
      total = excluded.total, counted = excluded.counted, sums = excluded.sums, head = excluded.head`)
  const readSums = db.prepare('SELECT sums FROM customers WHERE customer_id = ?1')
  const makeAll = db.prepare(makeSums())
  const makeMonth = db.prepare(makeSums('AND issued_at >= ?2 AND issued_at < ?3'))

  function daysOf(customerId: string): Set<number> {
    const moments = readMoments.all(customerId) as unknown as { issued_at: number }[]
    return new Set(moments.map(({ issued_at }) => dayOf(issued_at)))
  }

  function countDay(customerId: string, day: number, states: StateSet): void {
    const rows = readDay.all(customerId, day * dayLength, (day + 1) * dayLength) as unknown as StateRow[]
    deleteCounts.run(customerId, states.text, spans.day, day, day + 1)
    for (const { status, ix, n } of countStates(rows)) {
      insertCount.run(customerId, spans.day, status, ix, day, n)
      states.add(status, ix)
    }
  }

  /** Counts days again, and all that is made of them; returns the total. */
  function countDays(customerId: string, days: ReadonlySet<number>): number {
    const states = new StateSet(String(readStates.get(customerId)?.states))
    const stretches = new Set<number>()
    for (const day of days) {
      stretches.add(stretchOf(day))
      countDay(customerId, day, states)
    }
    for (const first of stretches) {
      deleteCounts.run(customerId, states.text, spans.stretch, first, first + 1)
      sumCounts.run(customerId, states.text, spans.stretch, first, spans.day, first, first + spans.stretch)
    }
    deleteCounts.run(customerId, states.text, spans.all, 0, 1)
    sumCounts.run(customerId, states.text, spans.all, 0, spans.stretch, everyDay.first, everyDay.end)
    return Number(readTotal.get(customerId)?.n ?? 0)
  }

  /** Counts all of a customer's invoices again; returns the total. */
  function countAll(customerId: string): number {
    deleteAllCounts.run(customerId)
    return countDays(customerId, daysOf(customerId))
  }

  function sumMonths(customerId: string, days: ReadonlySet<number>): string {
    const months = monthsOf(days)
    const made = months.map(({ from, before }) => String(makeMonth.get(customerId, from, before)?.sums))
    return replaceMonths((readSums.get(customerId)?.sums ?? null) as string | null, months, made)
  }

  function sumAll(customerId: string): string {
    return keepSums(String(makeAll.get(customerId)?.sums))
  }

  let changes = new Changes()

  function flush(): void {
    for (const [customerId, { counted, days }] of changes.customers) {
      let total = counted ? countDays(customerId, days) : Number(countInvoices.get(customerId)?.n)
      const isLarge = counted || total > countedAbove
      if (isLarge && !counted) total = countAll(customerId)
      const sums = counted ? sumMonths(customerId, days) : isLarge ? sumAll(customerId) : null
      saveCustomer.run(customerId, Date.now(), total, sums)
    }
    changes = new Changes()
  }

  return {
    begin(): void {
      changes = new Changes()
    },
    /** An invoice of these moments came, went or changed: the customer's version rises, and it is counted again. */
    note(customerId: string, ...moments: number[]): void {
      if (!changes.has(customerId)) {
        if (changes.customers.size >= heldAtMost) flush()
        changes.add(customerId, isCounted.get(customerId)?.counted === 1)
      }
      changes.note(customerId, ...moments)
    },
    /** Before the transaction ends. */
    flush,
    /** Counts a customer again, whatever was kept of it. */
    recount(customerId: string): void {
      deleteAllCounts.run(customerId)
      const total = Number(countInvoices.get(customerId)?.n)
      const isLarge = total > countedAbove
      if (isLarge) countAll(customerId)
      saveCustomer.run(customerId, Date.now(), total, isLarge ? sumAll(customerId) : null)
    },
  }
}

/** The states of a customer's counters, as the text that statements take. */
class StateSet {
  text: string
  private readonly names: Set<string>

  constructor(text: string) {
    this.text = text
    this.names = new Set((JSON.parse(text) as string[][]).map(state => JSON.stringify(state)))
  }

  add(status: string, ix: string): void {
    const name = JSON.stringify([status, ix])
    if (this.names.has(name)) return
    this.names.add(name)
    this.text = `[${[...this.names].join(',')}]`
  }
}

/** Number of rows of each state, of each status, of each ix_status, and in all. */
export function countStates(rows: readonly StateRow[]): (State & { n: number })[] {
  const counts = new Map<string, State & { n: number }>()
  const add = (status: string, ix: string) => {
    const name = `${status} ${ix}`
    const count = counts.get(name)
    if (count === undefined) counts.set(name, { status, ix, n: 1 })
    else count.n++
  }
  for (const { status, ix_status } of rows) {
    const ix = ixOf(ix_status)
    add(status, ix)
    add(status, '')
    add('', ix)
    add('', '')
  }
  return [...counts.values()]
}
