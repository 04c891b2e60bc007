import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { InvoicePage, ReadStore, Snapshot, StoredInvoice } from '../store.ts'
import { attemptRead, openReadOnly } from './database.ts'
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
  const snapshot = db.prepare(`
    SELECT (SELECT version FROM customers WHERE customer_id = ?1) AS version,
           (SELECT synced_at FROM freshness) AS synced_at`)
  const invoice = db.prepare(`
    SELECT summary, lines, (SELECT synced_at FROM freshness) AS synced_at
    FROM invoices
    LEFT JOIN invoice_lines ON invoice_lines.customer_id = ?1 AND invoice_id = ?2
    WHERE invoices.customer_id = ?1 AND id = ?2`)
  const token = db.prepare(`SELECT ${tokenColumns} FROM tokens WHERE id = ?1`)
  const ping = db.prepare('SELECT count(*) FROM streams')

  return {
    async listInvoices(query) {
      const { sql, values } = listStatement(query)
      const row = attemptRead(() => prepareList(sql).get(...values)) as unknown as PageRow
      return { ...row, summaries: row.summaries ?? '', version: row.version ?? 0 }
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
type PageRow = Omit<InvoicePage, 'summaries' | 'version'> & {
  summaries: string | null
  version: number | null
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
