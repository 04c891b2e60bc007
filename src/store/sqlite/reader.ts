import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { countPages } from '../../invoice.ts'
import { isForHead } from '../counting.ts'
import type { InvoicePage, InvoiceQuery, ReadStore, Snapshot, StoredInvoice } from '../store.ts'
import { attemptRead, openReadOnly } from './database.ts'
import { listCounted } from './list-counted.ts'
import { listStatement } from './list-statement.ts'
import { checkSchema } from './migrations.ts'
import { readToken, type TokenRow, tokenColumns } from './tokens.ts'

/** Filters come in a few dozen combinations; only a search of many words makes more. */
const preparedAtMost = 256

export function openSqliteReader(path: string): ReadStore {
  const db = openReadOnly(path)
  try {
    checkSchema(db, path)
  } catch (error) {
    db.close()
    throw error
  }

  const prepareList = prepareOnce(db)
  const readCounted = listCounted(db, prepareList)
  const begin = db.prepare('BEGIN')
  const end = db.prepare('ROLLBACK')
  const firstPage = db.prepare(`
    SELECT total, head AS summaries, version, synced_at FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  const snapshot = db.prepare(`
    SELECT (SELECT version FROM customers WHERE customer_id = ?1) AS version,
           (SELECT synced_at FROM freshness) AS synced_at`)
  const readStanding = db.prepare(`
    SELECT version, counted, synced_at FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  const invoice = db.prepare(`
    SELECT summary, lines, (SELECT synced_at FROM freshness) AS synced_at
    FROM invoices
    LEFT JOIN invoice_lines ON invoice_lines.customer_id = ?1 AND invoice_id = ?2
    WHERE invoices.customer_id = ?1 AND id = ?2`)
  const token = db.prepare(`SELECT ${tokenColumns} FROM tokens WHERE id = ?1`)
  const ping = db.prepare('SELECT count(*) FROM streams')

  function listInvoices(query: InvoiceQuery): InvoicePage {
    if (isForHead(query)) return pageOf(firstPage.get(query.customer_id) as unknown as PageRow, 1)
    return listByStatement(query) ?? listInSnapshot(query)
  }

  /** One statement, so of one snapshot; null when the customer has counters, by which it is to be read. */
  function listByStatement(query: InvoiceQuery): InvoicePage | null {
    const { sql, values } = listStatement(query)
    const row = prepareList(sql).get(...values) as unknown as PageRow
    if (row.summaries === null && row.counted === 1) return null
    return pageOf(row, Math.max(1, Math.min(query.page, countPages(row.total ?? 0, query.page_size))))
  }

  /** Several statements, all from one snapshot: also whether there are counters, which may have gone in the meantime. */
  function listInSnapshot(query: InvoiceQuery): InvoicePage {
    begin.run()
    try {
      const { version, counted, synced_at } = readStanding.get(query.customer_id) as unknown as StandingRow
      if (counted !== 1) return listByStatement(query) as InvoicePage
      const { total, page, summaries } = readCounted(query)
      return { total, page, summaries: summaries ?? nothing, version: version ?? 0, synced_at }
    } finally {
      end.run()
    }
  }

  return {
    async listInvoices(query) {
      return attemptRead(() => listInvoices(query))
    },
    async readSnapshot(customerId) {
      const row = attemptRead(() => snapshot.get(customerId)) as unknown as SnapshotRow
      return { version: row.version ?? 0, synced_at: row.synced_at }
    },
    async findInvoice(customerId, invoiceId) {
      const row = attemptRead(() => invoice.get(customerId, invoiceId))
      return (row as unknown as StoredInvoice | undefined) ?? null
    },
    async findToken(id) {
      const row = attemptRead(() => token.get(id)) as unknown as TokenRow | undefined
      return row === undefined ? null : readToken(row)
    },
    async ping() {
      attemptRead(() => ping.get())
    },
    async close() {
      db.close()
    },
  }
}

type SnapshotRow = Omit<Snapshot, 'version'> & { version: number | null }
type StandingRow = SnapshotRow & { counted: number | null }
type PageRow = StandingRow & { total: number | null; summaries: Uint8Array | null }

const nothing = new Uint8Array()

function pageOf({ total, summaries, version, synced_at }: PageRow, page: number): InvoicePage {
  return { total: total ?? 0, page, summaries: summaries ?? nothing, version: version ?? 0, synced_at }
}

function prepareOnce(db: DatabaseSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>()
  return sql => {
    let statement = prepared.get(sql)
    if (statement === undefined) {
      if (prepared.size >= preparedAtMost) prepared.clear()
      statement = db.prepare(sql)
      prepared.set(sql, statement)
    }
    return statement
  }
}
