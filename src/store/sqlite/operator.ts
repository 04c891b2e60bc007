import type { DatabaseSync } from 'node:sqlite'
import type { Db } from '../sql/db.ts'
import { batchSizeOf, operatorReads, walkStatements } from '../sql/operator-reads.ts'
import { check, recount } from '../sql/recount.ts'
import type { InvoiceWalk, OperatorStore, WalkedInvoice } from '../store.ts'
import { closeUnless, openReadOnly, type StoreFile } from './database.ts'
import { translate } from './failures.ts'
import { checkSchema } from './migrations.ts'
import { createDb, writeForSqlite } from './shared-db.ts'

export async function openSqliteOperator(path: string): Promise<OperatorStore> {
  const db = closeUnless(openReadOnly(path), checkSchema)
  return readsOf(db, createDb(db))
}

export function readsOf(db: StoreFile, shared: Db): OperatorStore {
  return {
    ...operatorReads(shared),
    walkInvoices: walk => walkInvoices(db.path, walk),
    checkCounts: onProgress => recount(shared, some => check(shared, some), null, onProgress),
    async close() {
      db.close()
    },
  }
}

/**
 * Limits of a read transaction: the time without a request for the next batch, and the total time. As long as it is open, SQLite cannot
 * write its log back to the database file.
 */
const longestPauseMs = 5_000
const longestReadMs = 5 * 60_000

/**
 * Reads invoices over a connection of its own, in one snapshot. A slow receiver, such as a full pipe, gets the remaining rows from a copy
 * in a temporary table.
 */
async function* walkInvoices(path: string, walk: InvoiceWalk): AsyncGenerator<WalkedInvoice[]> {
  const size = batchSizeOf(walk)
  const db = openReadOnly(path)
  let rows = readAll(db, walk)
  let failure: unknown = null
  let timer: NodeJS.Timeout | undefined
  const copy = () => {
    try {
      rows = copyRest(db, rows)
    } catch (error) {
      failure = error
    }
  }
  const copyAt = performance.now() + longestReadMs
  try {
    // A small cache is enough, because each page is read once. The temporary table needs query_only = OFF. The database file itself is open
    // for reading only.
    translate(path, () => db.exec('PRAGMA query_only = OFF; PRAGMA cache_size = -4096; BEGIN'))
    for (;;) {
      const batch = translate(path, () => {
        if (failure !== null) throw failure
        return takeSome(rows, size)
      })
      if (batch.length === 0) return
      if (db.isTransaction) timer = setTimeout(copy, Math.min(longestPauseMs, copyAt - performance.now()))
      yield batch
      clearTimeout(timer)
    }
  } finally {
    clearTimeout(timer)
    db.close()
  }
}

type Rows = IterableIterator<WalkedInvoice>

function* readAll(db: DatabaseSync, walk: InvoiceWalk): Rows {
  for (const { sql, values } of walkStatements(walk, 'sqlite'))
    yield* db.prepare(writeForSqlite(sql)).iterate(...values) as unknown as Rows
}

function copyRest(db: DatabaseSync, rows: Rows): Rows {
  db.exec('CREATE TEMP TABLE rest (summary, lines, document, payment)')
  const keep = db.prepare('INSERT INTO temp.rest VALUES (?, ?, ?, ?)')
  for (const { summary, lines, document, payment } of rows) keep.run(summary, lines, document, payment)
  db.exec('COMMIT')
  return db
    .prepare('SELECT summary, lines, document, payment FROM temp.rest ORDER BY rowid')
    .iterate() as unknown as Rows
}

function takeSome(rows: Rows, size: number): WalkedInvoice[] {
  const batch: WalkedInvoice[] = []
  while (batch.length < size) {
    const { value, done } = rows.next()
    if (done === true) break
    batch.push(value)
  }
  return batch
}
