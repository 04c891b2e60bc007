import { leaseWrites } from '../shared/connector-state.ts'
import { credentialWrites } from '../shared/credentials.ts'
import { endpointCommands } from '../shared/endpoints.ts'
import { repairCustomer } from '../shared/recount.ts'
import { transactionWrites } from '../shared/transaction-writes.ts'
import type { WriteStore } from '../store.ts'
import { readsOf, recountAll } from './operator.ts'
import { openWritePool } from './pool.ts'
import { createDb } from './shared-db.ts'
import { transact } from './transact.ts'
import { engineWrites } from './write-invoices.ts'

export async function openPostgresWriter(url: string, lockPatience?: number): Promise<WriteStore> {
  const pool = openWritePool(url, lockPatience)
  const reads = await readsOf(pool)
  const db = createDb(pool)
  return {
    ...reads,
    ...leaseWrites(db),
    ...credentialWrites(db),
    saveToken: token => transact(pool, writing => credentialWrites(writing.db).saveToken(token)),
    saveKey: key => transact(pool, writing => credentialWrites(writing.db).saveKey(key)),
    ...endpointCommands(db),
    transaction: work =>
      transact(pool, ({ db, counting, shared }) =>
        work(transactionWrites(engineWrites(db, counting), counting, shared, db)),
      ),
    repairCounts: onProgress =>
      recountAll(
        pool,
        customerId => transact(pool, ({ db, counting }) => repairCustomer(db, counting, customerId)),
        onProgress,
      ),
  }
}
