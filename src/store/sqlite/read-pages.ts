/** Pages of lists and searches: several statements, all from one snapshot of the connection. */
import type { DatabaseSync } from 'node:sqlite'
import {
  isCountable,
  isFiltered,
  type SumRow,
  sumsOfCounters,
  sumsOfInvoices,
  toSum,
} from '../read-model/counting.ts'
import type { CustomerSums, InvoicePage, InvoiceQuery, Snapshot } from '../store.ts'
import { clampPage, cutOut, matchingRows } from './matching-rows.ts'
import { seekByCounters } from './seek-by-counters.ts'
import { prepareOnce } from './shared-db.ts'

export const joinSummaries = "coalesce(group_concat(summary, ','), '')"

function sumsOf(columns: string, table: string): string {
  return `SELECT ${columns} FROM ${table} WHERE customer_id = ?1 GROUP BY 1, 2, 3`
}

type Found = Pick<InvoicePage, 'total' | 'page' | 'summaries'>

interface Standing extends Snapshot {
  total: number
  counted: number | null
}

export function readPages(db: DatabaseSync) {
  const prepare = prepareOnce(db)
  const begin = db.prepare('BEGIN')
  const end = db.prepare('ROLLBACK')
  const standing = db.prepare(`
    SELECT coalesce(total, 0) AS total, coalesce(version, 0) AS version, counted, synced_at
    FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  const summariesAt = db.prepare(
    `SELECT ${joinSummaries} AS summaries FROM json_each(?1) CROSS JOIN invoices ON invoices.rowid = value`,
  )
  const seek = seekByCounters(prepare)
  const sumCounters = db.prepare(sumsOf(sumsOfCounters, 'counts'))
  const sumInvoices = db.prepare(sumsOf(sumsOfInvoices('sqlite'), 'invoices INDEXED BY invoices_in_order'))
  const sumCredits = db.prepare(`
    SELECT currency, sum(credited_cents) FROM invoices INDEXED BY invoices_credited
    WHERE customer_id = ?1 AND status = 'open' AND credited_cents <> 0 GROUP BY currency`)
  for (const statement of [sumCounters, sumInvoices, sumCredits]) statement.setReturnArrays(true)

  function readStanding(customerId: string): Standing {
    return standing.get(customerId) as unknown as Standing
  }

  function readSummaries(places: readonly number[]): string {
    return summariesAt.get(JSON.stringify(places))?.summaries as string
  }

  /** One pass over the index. */
  function find(query: InvoiceQuery): Found {
    const { from, order, values } = matchingRows(query)
    const matches = `SELECT json_group_array(place) AS places FROM (SELECT rowid AS place ${from} ${order})`
    const places = JSON.parse(String(prepare(matches).get(...values)?.places)) as number[]
    const { page, skip } = clampPage(query, places.length)
    return {
      total: places.length,
      page,
      summaries: readSummaries(places.slice(skip, skip + query.page_size)),
    }
  }

  /** Total and page by one statement, or two for a page beyond the last. Null where the customer's counters know them. */
  function readAtOnce(query: InvoiceQuery): InvoicePage | null {
    const { from, order, values } = matchingRows(query)
    const unlessCounted = (sql: string) =>
      isCountable(query) ? `CASE WHEN counted = 1 THEN NULL ELSE ${sql} END` : sql
    const total = isFiltered(query) ? `(SELECT count(*) ${from})` : 'coalesce(total, 0)'
    const cut = cutOut(values, query.page_size, 0)
    const statement = prepare(`
      SELECT ${unlessCounted(total)} AS total, coalesce(version, 0) AS version, synced_at,
        ${unlessCounted(`(SELECT ${joinSummaries} FROM (SELECT summary ${from} ${order} ${cut}))`)} AS summaries
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

  function listByCounters(query: InvoiceQuery): Found {
    const { places, ...found } = seek(query)
    return { ...found, summaries: readSummaries(places) }
  }

  return {
    readSnapshot(customerId: string): Snapshot {
      const { version, synced_at } = readStanding(customerId)
      return { version, synced_at }
    },

    readSums(customerId: string): CustomerSums {
      begin.run()
      try {
        const { version, counted, synced_at } = readStanding(customerId)
        const rows = (counted === 1 ? sumCounters : sumInvoices).all(customerId) as unknown as SumRow[]
        const credited = new Map(sumCredits.all(customerId) as unknown as [string, number][])
        return { sums: rows.map(toSum), credited, version, synced_at }
      } finally {
        end.run()
      }
    },

    /** Null for a search among more invoices than these. */
    readPage(query: InvoiceQuery, searchedAtMost = Number.POSITIVE_INFINITY): InvoicePage | null {
      const isSearch = query.words !== undefined
      const page = isSearch ? null : readAtOnce(query)
      if (page !== null) return page
      begin.run()
      try {
        const { total, version, counted, synced_at } = readStanding(query.customer_id)
        if (isSearch && total > searchedAtMost) return null
        // The counters may have gone since.
        if (!isSearch && counted !== 1) return readAtOnce(query)
        return { ...(isSearch ? find(query) : listByCounters(query)), version, synced_at }
      } finally {
        end.run()
      }
    },
  }
}
