import type { DatabaseSync } from 'node:sqlite'
import { type InvoiceRecord, writeLines, writeSummary } from '../../invoice.ts'
import { searchText } from '../search.ts'
import type { StoredRecord, Stream, WriteStore, WriteTransaction } from '../store.ts'
import { openReadWrite, translate } from './database.ts'
import { checkSchema } from './migrations.ts'
import { readToken, type TokenRow, tokenColumns } from './tokens.ts'

export function openSqliteWriter(path: string): WriteStore {
  const db = openReadWrite(path, { create: false })
  try {
    checkSchema(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  const exec = (sql: string): void => translate(path, () => db.exec(sql))
  const invoices = writeInvoices(db)

  const readInvoices = db.prepare(`
    SELECT invoices.customer_id, id, summary, lines FROM invoices
    LEFT JOIN invoice_lines ON invoice_lines.customer_id = invoices.customer_id AND invoice_id = id
    WHERE (invoices.customer_id, id) > (?1, ?2) ORDER BY invoices.customer_id, id LIMIT ?3`)
  const listStreams = db.prepare('SELECT name, succeeded_at FROM streams ORDER BY name')
  const saveToken = db.prepare(`
    INSERT INTO tokens (${tokenColumns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at`)
  const listTokens = db.prepare(`SELECT ${tokenColumns} FROM tokens ORDER BY created_at DESC, id`)
  const revokeToken = db.prepare(
    `UPDATE tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1 RETURNING ${tokenColumns}`,
  )

  return {
    async transaction(work) {
      exec('BEGIN IMMEDIATE')
      try {
        const result = await work({
          saveInvoices: async records => translate(path, () => invoices.save(records)),
          deleteInvoice: async (customerId, invoiceId) =>
            translate(path, () => invoices.remove(customerId, invoiceId)),
          saveSuccess: async (stream, at) => translate(path, () => invoices.saveSuccess(stream, at)),
        } satisfies WriteTransaction)
        exec('COMMIT')
        return result
      } catch (error) {
        // SQLite has rolled back by itself after some failures, a full disk among them.
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    },
    async readInvoices(after, limit) {
      const { customer_id, id } = after ?? { customer_id: '', id: '' }
      return translate(path, () => readInvoices.all(customer_id, id, limit)) as unknown as StoredRecord[]
    },
    async listStreams() {
      return translate(path, () => listStreams.all()) as unknown as Stream[]
    },
    async saveToken(token) {
      const customers = token.customers === null ? null : JSON.stringify(token.customers)
      const { id, name, hash, created_at, expires_at, revoked_at } = token
      translate(path, () => saveToken.run(id, name, hash, customers, created_at, expires_at, revoked_at))
    },
    async listTokens() {
      return (translate(path, () => listTokens.all()) as unknown as TokenRow[]).map(readToken)
    },
    async revokeToken(id, at) {
      const row = translate(path, () => revokeToken.get(id, at)) as unknown as TokenRow | undefined
      return row === undefined ? null : readToken(row)
    },
    async close() {
      db.close()
    },
  }
}

function writeInvoices(db: DatabaseSync) {
  const saveInvoice = db.prepare(`
    INSERT INTO invoices (customer_id, id, issued_at, status, ix_status, search, summary)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (customer_id, id) DO UPDATE SET
      issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
      search = excluded.search, summary = excluded.summary
    WHERE summary <> excluded.summary OR search <> excluded.search`)
  const saveLines = db.prepare(`
    INSERT INTO invoice_lines (customer_id, invoice_id, lines) VALUES (?1, ?2, ?3)
    ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines WHERE lines <> excluded.lines`)
  const deleteInvoice = db.prepare('DELETE FROM invoices WHERE customer_id = ?1 AND id = ?2')
  const deleteLines = db.prepare('DELETE FROM invoice_lines WHERE customer_id = ?1 AND invoice_id = ?2')
  // The clock keeps a version unique even across a store restored from a backup; the sum keeps it rising.
  const raiseVersion = db.prepare(`
    INSERT INTO customers (customer_id, version) VALUES (?1, ?2)
    ON CONFLICT (customer_id) DO UPDATE SET version = max(version + 1, excluded.version)`)
  const saveSuccess = db.prepare(`
    INSERT INTO streams (name, succeeded_at) VALUES (?1, ?2)
    ON CONFLICT (name) DO UPDATE SET succeeded_at = excluded.succeeded_at`)

  function saveOne({ invoice, lines }: InvoiceRecord): boolean {
    const { customer_id, id } = invoice
    const saved = saveInvoice.run(
      customer_id,
      id,
      Date.parse(invoice.issued_at),
      invoice.status,
      invoice.ix_status,
      searchText(invoice),
      writeSummary(invoice),
    )
    const savedLines =
      lines === null ? deleteLines.run(customer_id, id) : saveLines.run(customer_id, id, writeLines(lines))
    return saved.changes !== 0 || savedLines.changes !== 0
  }

  return {
    save(records: readonly InvoiceRecord[]): number {
      let changed = 0
      const customers = new Set<string>()
      for (const record of records) {
        if (!saveOne(record)) continue
        changed++
        customers.add(record.invoice.customer_id)
      }
      for (const customerId of customers) raiseVersion.run(customerId, Date.now())
      return changed
    },
    remove(customerId: string, invoiceId: string): boolean {
      const { changes } = deleteInvoice.run(customerId, invoiceId)
      deleteLines.run(customerId, invoiceId)
      if (changes !== 0) raiseVersion.run(customerId, Date.now())
      return changes !== 0
    },
    saveSuccess(stream: string, at: number): void {
      saveSuccess.run(stream, at)
    },
  }
}
