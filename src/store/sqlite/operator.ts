import type { Db } from '../shared/db.ts'
import { operatorReads } from '../shared/operator-reads.ts'
import { check, recount } from '../shared/recount.ts'
import type { OperatorStore } from '../store.ts'
import { openReadOnly, type StoreFile } from './database.ts'
import { closeUnlessCurrent } from './migrations.ts'
import { createDb } from './shared-db.ts'
import { walkSqlite } from './walk-invoices.ts'

export async function openSqliteOperator(path: string): Promise<OperatorStore> {
  const db = closeUnlessCurrent(openReadOnly(path))
  return readsOf(db, createDb(db))
}

export function readsOf(db: StoreFile, shared: Db): OperatorStore {
  return {
    ...operatorReads(shared),
    walkInvoices: walk => walkSqlite(db.path, walk),
    checkCounts: onProgress => recount(shared, some => check(shared, some), null, onProgress),
    async close() {
      db.close()
    },
  }
}
