/** Pages of lists and searches: several statements, all from one snapshot of the connection. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { openInvoicesShown } from '../../domain/balance.ts'
import type { Expansion } from '../../domain/expanded.ts'
import { countPages } from '../../domain/invoice.ts'
import {
  boundsOf,
  type CreditRow,
  isCountable,
  isFiltered,
  type OpenSumRow,
  type SumRow,
  toCredits,
  toOpenSum,
  toSum,
} from '../sql/counting.ts'
import { expansionSql } from '../sql/expansion-sql.ts'
import { conditionsOf, counterConditionsOf, monthIn } from '../sql/filters.ts'
import type { CustomerSums, InvoicePage, InvoiceQuery, OpenInvoices, Snapshot } from '../store.ts'
import { prepareOnce } from './shared-db.ts'

const joinSummaries = "coalesce(group_concat(summary, ','), '')"

/** A summary as it is sent: what `expand` adds stands at its end. */
function shownOf(expand: readonly Expansion[] = []): string {
  if (expand.length === 0) return 'summary'
  const members = expand.map(name => `',"${name}":' || ${expansionSql(name, 'sqlite', '')}`)
  return `substr(summary, 1, length(summary) - 1) || ${members.join(' || ')} || '}'`
}

const openOf = `invoices INDEXED BY invoices_open WHERE customer_id = ?1 AND status = 'open'`

export function readPages(db: DatabaseSync) {
  const prepare = prepareOnce(db)
  const begin = db.prepare('BEGIN')
  const end = db.prepare('ROLLBACK')
  const customerState = db.prepare(`
    SELECT coalesce(total, 0) AS total, coalesce(version, 0) AS version, counted, synced_at, life
    FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  const summariesAt = ({ expand }: InvoiceQuery, places: readonly number[]) => {
    const statement = prepare(`
      SELECT ${joinSummaries} AS summaries
      FROM (SELECT ${shownOf(expand)} AS summary FROM json_each(?1) CROSS JOIN invoices ON invoices.rowid = value)`)
    return statement.get(JSON.stringify(places))?.summaries as string
  }
  const seek = seekByCounters(prepare)
  const sumCounters = db.prepare(`
    SELECT month, status, currency, sum(n), sum(total_cents) FROM counts
    WHERE customer_id = ?1 GROUP BY 1, 2, 3`)
  const sumInvoices = db.prepare(`
    SELECT ${monthIn.sqlite('issued_at')}, status, currency, count(*), sum(total_cents)
    FROM invoices INDEXED BY invoices_in_order WHERE customer_id = ?1 GROUP BY 1, 2, 3`)
  const sumCredits = db.prepare(`
    SELECT currency, sum(credited_cents) FROM invoices INDEXED BY invoices_credited
    WHERE customer_id = ?1 AND status = 'open' AND credited_cents <> 0 GROUP BY currency`)
  const sumOpen = db.prepare(`
    SELECT currency, due_date, count(*), count(*) FILTER (WHERE to_pay_cents > 0), sum(to_pay_cents),
      count(*) FILTER (WHERE in_favour_cents > 0), sum(in_favour_cents)
    FROM ${openOf} GROUP BY due_date, currency`)
  for (const statement of [sumCounters, sumInvoices, sumCredits, sumOpen]) {
    statement.setReturnArrays(true)
    statement.setReadBigInts(true)
  }
  const firstOpen = db.prepare(
    `SELECT summary, payment, document FROM json_each(?1) CROSS JOIN invoices ON invoices.rowid = value`,
  )
  /** By their due days: overdue on a day, without one, and the rest. */
  const placesOpen = ['due_date < ?2', 'due_date IS NULL', 'due_date >= ?2'].map(condition =>
    db.prepare(
      `SELECT rowid AS place FROM ${openOf} AND ${condition} ORDER BY due_date, currency, id LIMIT ?3 + 0`,
    ),
  )

  function readStanding(customerId: string) {
    return customerState.get(customerId) as unknown as Snapshot & { total: number; counted: number | null }
  }

  function readOpenSums(customerId: string) {
    return (sumOpen.all(customerId) as unknown as OpenSumRow[]).map(toOpenSum)
  }

  /** Total, page and the row ids of its invoices, by one pass over the index. */
  function find(query: InvoiceQuery) {
    const { from, order, values } = matchingRows(query)
    const matches = `SELECT json_group_array(place) AS places FROM (SELECT rowid AS place ${from} ${order})`
    const places = JSON.parse(String(prepare(matches).get(...values)?.places)) as number[]
    const { page, skip } = clampPage(query, places.length)
    return { total: places.length, page, places: places.slice(skip, skip + query.page_size) }
  }

  /** Total and page by one statement, or two for a page beyond the last. Null where the customer's counters know them. */
  function readAtOnce(query: InvoiceQuery): InvoicePage | null {
    const { from, order, values } = matchingRows(query)
    const unlessCounted = (sql: string) =>
      isCountable(query) ? `CASE WHEN counted = 1 THEN NULL ELSE ${sql} END` : sql
    const total = isFiltered(query) ? `(SELECT count(*) ${from})` : 'coalesce(total, 0)'
    const cut = limitClause(values, query.page_size, 0)
    const statement = prepare(`
      SELECT ${unlessCounted(total)} AS total, coalesce(version, 0) AS version, synced_at, life,
        ${unlessCounted(`(SELECT ${joinSummaries} FROM (SELECT ${shownOf(query.expand)} AS summary ${from} ${order} ${cut}))`)} AS summaries
      FROM freshness LEFT JOIN customers ON customer_id = ?1`)
    for (let { page } = query; ; ) {
      values[values.length - 1] = (page - 1) * query.page_size
      const row = statement.get(...values) as unknown as {
        [Name in keyof InvoicePage]: InvoicePage[Name] | null
      }
      if (row.total === null) return null
      const found = clampPage({ ...query, page }, row.total)
      if (found.page === page) return { ...row, page } as InvoicePage
      page = found.page
    }
  }

  return {
    readSnapshot(customerId: string): Snapshot {
      const { version, synced_at, life } = readStanding(customerId)
      return { version, synced_at, life }
    },

    readSums(customerId: string): CustomerSums {
      begin.run()
      try {
        const { version, counted, synced_at, life } = readStanding(customerId)
        const rows = (counted === 1 ? sumCounters : sumInvoices).all(customerId) as unknown as SumRow[]
        const credited = toCredits(sumCredits.all(customerId) as unknown as CreditRow[])
        return { sums: rows.map(toSum), credited, open: readOpenSums(customerId), version, synced_at, life }
      } finally {
        end.run()
      }
    },

    readOpen(customerId: string, day: string): OpenInvoices {
      begin.run()
      try {
        const { version, synced_at, life } = readStanding(customerId)
        const places: number[] = []
        for (const statement of placesOpen)
          for (const { place } of statement.all(customerId, day, openInvoicesShown - places.length))
            places.push(Number(place))
        const invoices = firstOpen.all(JSON.stringify(places)) as unknown as OpenInvoices['invoices']
        return { sums: readOpenSums(customerId), invoices, version, synced_at, life }
      } finally {
        end.run()
      }
    },

    /** Null for a search among more invoices than these. */
    readPage(query: InvoiceQuery, maxSearched = Number.POSITIVE_INFINITY): InvoicePage | null {
      const isSearch = query.words !== undefined
      const page = isSearch ? null : readAtOnce(query)
      if (page !== null) return page
      begin.run()
      try {
        const { total, version, counted, synced_at, life } = readStanding(query.customer_id)
        if (isSearch && total > maxSearched) return null
        // The counters may have gone since.
        if (!isSearch && counted !== 1) return readAtOnce(query)
        const { places, ...found } = isSearch ? find(query) : seek(query)
        return { ...found, summaries: summariesAt(query, places), version, synced_at, life }
      } finally {
        end.run()
      }
    },
  }
}

/** A page by counters: they give the total and the page's months, and only within these are invoices skipped. */
function seekByCounters(prepare: (sql: string) => StatementSync) {
  /** Months with invoices that match, or what the filter leaves of them, latest first. One that it cuts is counted by its rows. */
  function readParts(query: InvoiceQuery) {
    const { issued_from, issued_before } = query
    const values: Value[] = [query.customer_id]
    const bind = (value: Value): string => `?${values.push(value)}`
    const conditions = [
      'customer_id = ?1',
      ...counterConditionsOf(query, { engine: 'sqlite', row: '', bind }),
    ]
    const months = prepare(`
      SELECT month, sum(n) AS n FROM counts WHERE ${conditions.join(' AND ')}
      GROUP BY month ORDER BY month DESC`).all(...values)
    return months.map(({ month, n }) => {
      const whole = boundsOf(String(month))
      const from = Math.max(whole.from, issued_from ?? whole.from)
      const before = Math.min(whole.before, issued_before ?? whole.before)
      const part = { ...query, issued_from: from, issued_before: before }
      if (from === whole.from && before === whole.before) return { part, n: Number(n) }
      const cut = matchingRows(part)
      return { part, n: Number(prepare(`SELECT count(*) AS n ${cut.from}`).get(...cut.values)?.n) }
    })
  }

  function readPlaces(part: InvoiceQuery, limit: number, skip: number): number[] {
    const { order, values, ...rows } = matchingRows(part)
    const found = prepare(`SELECT rowid AS place ${rows.from} ${order} ${limitClause(values, limit, skip)}`)
    return found.all(...values).map(({ place }) => Number(place))
  }

  return (query: InvoiceQuery) => {
    const { page_size } = query
    const parts = readParts(query)
    const total = parts.reduce((sum, { n }) => sum + n, 0)
    const { page, skip } = clampPage(query, total)
    const places: number[] = []
    let left = skip
    for (const { part, n } of parts) {
      if (places.length >= page_size) break
      if (left < n) places.push(...readPlaces(part, page_size - places.length, left))
      left = Math.max(0, left - n)
    }
    if (places.length !== Math.max(0, Math.min(page_size, total - skip)))
      throw new Error('The counters of a customer do not add up. Run: fatura doctor --repair')
    return { total, page, places }
  }
}

type Value = string | number

export function clampPage(
  { page, page_size }: Pick<InvoiceQuery, 'page' | 'page_size'>,
  total: number,
): { page: number; skip: number } {
  const clamped = Math.max(1, Math.min(page, countPages(total, page_size)))
  return { page: clamped, skip: (clamped - 1) * page_size }
}

/** SQLite compiles a statement anew for every value of a parameter that stands alone behind LIMIT: a sum does not stand alone. */
function limitClause(values: Value[], limit: number, skip: number): string {
  return `LIMIT ?${values.push(limit)} + 0 OFFSET ?${values.push(skip)}`
}

/** The rows that match, in the list's order, from the index alone. The SQL depends on which filters are given, never on their values. */
export function matchingRows(query: InvoiceQuery): { from: string; order: string; values: Value[] } {
  const values: Value[] = [query.customer_id]
  const bind = (value: Value): string => `?${values.push(value)}`
  const conditions = ['customer_id = ?1', ...conditionsOf(query, { engine: 'sqlite', row: '', bind })]
  return {
    from: `FROM invoices INDEXED BY invoices_in_order WHERE ${conditions.join(' AND ')}`,
    order: 'ORDER BY issued_at DESC, id DESC',
    values,
  }
}
