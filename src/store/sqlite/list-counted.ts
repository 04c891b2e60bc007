/**
 * A page of a customer with counters, at the same cost wherever it lies: counters give the total and the day in which
 * the page begins, and only within that day are invoices skipped. The caller holds a read transaction.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { countPages } from '../../invoice.ts'
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
import { joinSummaries, type Value } from './list-statement.ts'
import { type Steps, searchCounted } from './search-counted.ts'

export interface CountedPage {
  total: number
  page: number
  summaries: Uint8Array | null
}

type Count = readonly [start: number, span: number, n: number]

interface Place {
  start: number
  span: number
  n: number
  left: number
}

/** Beyond this many states at once, a page is read from the list of all of them. */
const mergedAtMost = 24

export function listCounted(db: DatabaseSync, prepare: (sql: string) => StatementSync) {
  const readStates = db.prepare(
    `SELECT status, ix FROM counts WHERE customer_id = ?1 AND span = ${spans.all} AND status <> '' AND ix <> ''`,
  )
  const readCount = db.prepare(
    `SELECT n FROM counts WHERE customer_id = ?1 AND span = ${spans.all} AND status = ?2 AND ix = ?3 AND start = 0`,
  )
  const readCounts = db.prepare(`
    SELECT start, span, n FROM counts
    WHERE customer_id = ?1 AND span = ?2 AND status = ?3 AND ix = ?4 AND start >= ?5 AND start < ?6
    ORDER BY start DESC`)
  // A list may read some dozen of them: as objects they would take half as long again.
  readCounts.setReturnArrays(true)
  const search = searchCounted(db)

  /** Counters of a state, latest first. */
  function countsOf(customerId: string, { status, ix }: State, part: Days & { span: number }): Count[] {
    return readCounts.all(customerId, part.span, status, ix, part.first, part.end) as unknown as Count[]
  }

  /** The states that a question's filters take together; none when they take all. */
  function statesOf(customerId: string, asked: State): State[] {
    if (asked.status === '' && asked.ix === '') return []
    if (asked.status !== '' && asked.ix !== '') return [asked]
    return (readStates.all(customerId) as unknown as State[]).filter(
      ({ status, ix }) =>
        (asked.status === '' || status === asked.status) && (asked.ix === '' || ix === asked.ix),
    )
  }

  function listMatching(query: InvoiceQuery): CountedPage {
    const { customer_id, page_size } = query
    const asked = stateAsked(query)
    const days = daysOf(query)
    if (days.first >= days.end) return { total: 0, page: 1, summaries: null }
    const isAnyDay = days.first === everyDay.first && days.end === everyDay.end
    const counts = isAnyDay ? null : coverDays(days).flatMap(part => countsOf(customer_id, asked, part))
    const total =
      counts === null ? Number(readCount.get(customer_id, asked.status, asked.ix)?.n ?? 0) : sum(counts)
    const page = clamp(query.page, total, page_size)
    if (total === 0) return { total, page, summaries: null }
    let offset = (page - 1) * page_size
    let { first, end } = days
    let isWithinDay = false
    if (offset > 0) {
      const place = seek(counts ?? countsOf(customer_id, asked, { span: spans.stretch, ...days }), offset)
      const stretch = { span: spans.day, first: place.start, end: place.start + spans.stretch }
      const within =
        place.span === spans.day ? place : seek(countsOf(customer_id, asked, stretch), place.left)
      end = within.start + 1
      offset = within.left
      // A day is small: what lies in it as a whole is read in the list's order, and no states are merged.
      isWithinDay = within.n - within.left >= page_size
      if (isWithinDay) first = within.start
    }
    const { sql, values } = pageStatement(query, isWithinDay ? [] : statesOf(customer_id, asked), {
      from: first * dayLength,
      before: end * dayLength,
      offset,
    })
    return { total, page, summaries: prepare(sql).get(...values)?.summaries as Uint8Array }
  }

  function* searchMatching(query: InvoiceQuery): Steps<CountedPage> {
    if (search.isEvery(query)) return listMatching(query)
    const { page_size } = query
    const days = daysOf(query)
    const asked = yield* search.find(query, days, (query.page - 1) * page_size)
    const page = clamp(query.page, asked.total, page_size)
    // Only the total tells that there is no such page; then the last one is looked for.
    const found = page === query.page ? asked : yield* search.find(query, days, (page - 1) * page_size)
    return { ...found, page }
  }

  return { list: listMatching, search: searchMatching }
}

function daysOf({ issued_from, issued_before }: InvoiceQuery): Days {
  return {
    first: issued_from === undefined ? everyDay.first : dayOf(issued_from),
    end: issued_before === undefined ? everyDay.end : dayOf(issued_before),
  }
}

function sum(counts: readonly Count[]): number {
  return counts.reduce((total, [, , n]) => total + n, 0)
}

function clamp(page: number, total: number, pageSize: number): number {
  return Math.max(1, Math.min(page, countPages(total, pageSize)))
}

/** The counter within which the place lies, and how many are left to skip in it. */
function seek(counts: readonly Count[], offset: number): Place {
  let left = offset
  for (const [start, span, n] of counts) {
    if (left < n) return { start, span, n, left }
    left -= n
  }
  throw new Error('The counters of a customer do not add up. Run: fatura doctor --repair')
}

/** The rows' texts from a place on. Of several states, each is read in its own order, and they are merged. */
function pageStatement(
  query: InvoiceQuery,
  states: readonly State[],
  { from, before, offset }: { from: number; before: number; offset: number },
): { sql: string; values: (Value | null)[] } {
  const values: (Value | null)[] = [query.customer_id, from, before, query.page_size, offset]
  const bind = (value: Value | null): string => `?${values.push(value)}`
  const bounds = 'customer_id = ?1 AND issued_at >= ?2 AND issued_at < ?3'
  const columns = 'rowid AS place, issued_at, id'
  const isMerged = states.length > 0 && states.length <= mergedAtMost
  const streams = isMerged
    ? states.map(
        ({ status, ix }) => `
          SELECT ${columns} FROM invoices INDEXED BY invoices_by_state
          WHERE ${bounds} AND status = ${bind(status)} AND ix_status IS ${bind(ix === '-' ? null : ix.slice(1))}`,
      )
    : [
        `SELECT ${columns} FROM invoices INDEXED BY invoices_in_order WHERE ${bounds}${
          query.status === undefined ? '' : ` AND status = ${bind(query.status)}`
        }${query.ix_status === undefined ? '' : ` AND ix_status = ${bind(query.ix_status)}`}`,
      ]
  const sql = `
    SELECT ${joinSummaries} AS summaries FROM (
      ${streams.join(' UNION ALL ')} ORDER BY issued_at DESC, id DESC LIMIT ?4 OFFSET ?5
    ) CROSS JOIN invoices ON invoices.rowid = place`
  return { sql, values }
}
