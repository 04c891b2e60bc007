/** Reads pages of lists and searches. All statements of a page read from one snapshot of the connection. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { countPages } from '../../domain/list-query.ts'
import { boundsOf, isCountable, isFiltered } from '../sql/counters.ts'
import { expandedLines, lineBreak } from '../sql/expansion-sql.ts'
import { conditionsOf, counterConditionsOf } from '../sql/filters.ts'
import type { InvoicePage, InvoiceQuery, Snapshot } from '../store.ts'
import { sumReads } from './read-sums.ts'
import { prepareOnce } from './shared-db.ts'
import { openSnapshots } from './snapshots.ts'

type Prepare = (sql: string) => StatementSync

export function readPages(db: DatabaseSync) {
  const prepare = prepareOnce(db)
  const snapshots = openSnapshots(db)
  return {
    ...sumReads(db, snapshots),

    readSnapshot(customerId: string): Snapshot {
      const { version, synced_at, life } = snapshots.customer(customerId)
      return { version, synced_at, life }
    },

    /** Returns null for a search among more than `maxSearched` invoices. */
    readPage(query: InvoiceQuery, maxSearched = Number.POSITIVE_INFINITY): InvoicePage | null {
      const isSearch = query.words !== undefined
      const page = isSearch ? null : readAtOnce(prepare, query)
      if (page !== null) return page
      return snapshots.during(() => {
        const { total, version, counted, synced_at, life } = snapshots.customer(query.customer_id)
        if (isSearch && total > maxSearched) return null
        // The counters may have been removed since the first statement.
        if (!isSearch && counted !== 1) return readAtOnce(prepare, query)
        const { rowids, ...found } = isSearch ? find(prepare, query) : seek(prepare, query)
        return { ...found, summaries: readSummaries(prepare, query, rowids), version, synced_at, life }
      })
    },
  }
}

/**
 * Reads total and page with one statement, or with two for a page behind the last. Returns null when the customer's counters must be used
 * instead.
 */
function readAtOnce(prepare: Prepare, query: InvoiceQuery): InvoicePage | null {
  const { from, order, values } = matchingRows(query)
  const unlessCounted = (sql: string) =>
    isCountable(query) ? `CASE WHEN counted = 1 THEN NULL ELSE ${sql} END` : sql
  const total = isFiltered(query) ? `(SELECT count(*) ${from})` : 'coalesce(total, 0)'
  const limit = limitClause(values, query.page_size, 0)
  const statement = prepare(`
    SELECT ${unlessCounted(total)} AS total, coalesce(version, 0) AS version, synced_at, life,
      ${unlessCounted(`(SELECT ${joinTexts(query)} FROM (SELECT ${textOf(query)} AS text ${from} ${order} ${limit}))`)} AS summaries
    FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  for (let { page } = query; ; ) {
    values[values.length - 1] = (page - 1) * query.page_size
    const { total, summaries, ...snapshot } = statement.get(...values) as unknown as PageRow
    if (total === null || summaries === null) return null
    const found = clampPage({ ...query, page }, total)
    if (found.page === page) return { ...snapshot, total, page, summaries: readText(summaries) }
    page = found.page
  }
}

/** `total` and `summaries` are null for a customer with counters. */
interface PageRow extends Snapshot {
  total: number | null
  summaries: Uint8Array | null
}

interface FoundPage {
  total: number
  page: number
  rowids: number[]
}

/** Searches in one pass over the index of the customer's invoices. */
function find(prepare: Prepare, query: InvoiceQuery): FoundPage {
  const { from, order, values } = matchingRows(query)
  const matches = `SELECT json_group_array(row) AS rowids FROM (SELECT rowid AS row ${from} ${order})`
  const rowids = JSON.parse(String(prepare(matches).get(...values)?.rowids)) as number[]
  const { page, skip } = clampPage(query, rowids.length)
  return { total: rowids.length, page, rowids: rowids.slice(skip, skip + query.page_size) }
}

/**
 * Finds a page with the help of counters. Counters give the total and the months of the page. Only rows of these months are looked at:
 * the rows before the page are skipped, and the rows of the page are read.
 */
function seek(prepare: Prepare, query: InvoiceQuery): FoundPage {
  const { page_size } = query
  const parts = readParts(prepare, query)
  const total = parts.reduce((sum, { n }) => sum + n, 0)
  const { page, skip } = clampPage(query, total)
  const rowids: number[] = []
  let toSkip = skip
  for (const { part, n } of parts) {
    if (rowids.length >= page_size) break
    if (toSkip < n) rowids.push(...readRowids(prepare, part, page_size - rowids.length, toSkip))
    toSkip = Math.max(0, toSkip - n)
  }
  if (rowids.length !== Math.max(0, Math.min(page_size, total - skip)))
    throw new Error('The counters of a customer do not add up. Run: fatura doctor --repair')
  return { total, page, rowids }
}

/**
 * Returns the months with matching invoices, the latest first. When the filter contains only a part of a month, the matching rows of this
 * month are counted.
 */
function readParts(prepare: Prepare, query: InvoiceQuery): { part: InvoiceQuery; n: number }[] {
  const { issued_from, issued_before } = query
  const values: Value[] = [query.customer_id]
  const bind = (value: Value): string => `?${values.push(value)}`
  const conditions = ['customer_id = ?1', ...counterConditionsOf(query, { engine: 'sqlite', row: '', bind })]
  const months = prepare(`
    SELECT month, sum(n) AS n FROM counters WHERE ${conditions.join(' AND ')}
    GROUP BY month ORDER BY month DESC`).all(...values)
  return months.map(({ month, n }) => {
    const whole = boundsOf(String(month))
    const from = Math.max(whole.from, issued_from ?? whole.from)
    const before = Math.min(whole.before, issued_before ?? whole.before)
    const part = { ...query, issued_from: from, issued_before: before }
    const isWhole = from === whole.from && before === whole.before
    return { part, n: isWhole ? Number(n) : countRows(prepare, part) }
  })
}

function countRows(prepare: Prepare, query: InvoiceQuery): number {
  const { from, values } = matchingRows(query)
  return Number(prepare(`SELECT count(*) AS n ${from}`).get(...values)?.n)
}

function readRowids(prepare: Prepare, query: InvoiceQuery, limit: number, skip: number): number[] {
  const { from, order, values } = matchingRows(query)
  const found = prepare(`SELECT rowid AS row ${from} ${order} ${limitClause(values, limit, skip)}`)
  return found.all(...values).map(({ row }) => Number(row))
}

function readSummaries(prepare: Prepare, query: InvoiceQuery, rowids: readonly number[]): string {
  const statement = prepare(`
    SELECT ${joinTexts(query)} AS summaries
    FROM (SELECT ${textOf(query)} AS text FROM json_each(?1) CROSS JOIN invoices ON invoices.rowid = value)`)
  return readText(statement.get(JSON.stringify(rowids))?.summaries as Uint8Array)
}

const lines = expandedLines('sqlite', '', () => "''")
const linesWithTaxes = expandedLines('sqlite', '', taxes => taxes)

/** SQL of the text of one invoice: its summary, or several lines when `expand` is given. */
function textOf({ expand = [] }: InvoiceQuery): string {
  if (expand.length === 0) return 'summary'
  return expand.includes('taxes') ? linesWithTaxes : lines
}

/** SQL of a page's texts as bytes, because `readText` decodes bytes in half the time that node:sqlite takes for a text. */
function joinTexts({ expand = [] }: InvoiceQuery): string {
  const separator = expand.length === 0 ? "','" : lineBreak.sqlite
  return `CAST(coalesce(group_concat(text, ${separator}), '') AS BLOB)`
}

function readText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}

type Value = string | number

export function clampPage(
  { page, page_size }: Pick<InvoiceQuery, 'page' | 'page_size'>,
  total: number,
): { page: number; skip: number } {
  const clamped = Math.max(1, Math.min(page, countPages(total, page_size)))
  return { page: clamped, skip: (clamped - 1) * page_size }
}

/**
 * SQLite compiles a statement again for every new value of a parameter that stands alone behind LIMIT. Adding 0 to the parameter avoids
 * this.
 */
function limitClause(values: Value[], limit: number, skip: number): string {
  return `LIMIT ?${values.push(limit)} + 0 OFFSET ?${values.push(skip)}`
}

/**
 * Returns SQL for the matching rows in the order of lists, read from the index alone. The SQL depends on which filters are given, and not
 * on their values.
 */
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
