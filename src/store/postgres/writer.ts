import type { PoolClient } from 'pg'
import { leaseWrites } from '../shared/connector-state.ts'
import { credentialWrites } from '../shared/credentials.ts'
import { endpointCommands } from '../shared/endpoints.ts'
import { check } from '../shared/recount.ts'
import { type EngineWrites, transactionWrites } from '../shared/transaction-writes.ts'
import type { WriteStore, WriteTransaction } from '../store.ts'
import { recountCustomer } from './counts.ts'
import { readsOf, recountAll } from './operator.ts'
import { openWritePool } from './pool.ts'
import { createDb } from './shared-db.ts'
import { explain, transact, type Writing } from './transact.ts'
import { findKnown, relinkInvoices, saveInvoices } from './write-invoices.ts'

export async function openPostgresWriter(url: string, lockPatience?: number): Promise<WriteStore> {
  const pool = openWritePool(url, lockPatience)
  const reads = await readsOf(pool)
  const db = createDb(pool)
  return {
    ...reads,
    ...leaseWrites(db),
    ...credentialWrites(db),
    saveToken: token => transact(pool, ({ client }) => credentialsOf(client).saveToken(token)),
    saveKey: key => transact(pool, ({ client }) => credentialsOf(client).saveKey(key)),
    ...endpointCommands(db),
    transaction: work => transact(pool, writing => work(writesOf(writing))),
    repairCounts: onProgress => recountAll(pool, repairCustomer, onProgress),
  }

  /** A fault of a moment ago may be gone by now; if it is not, the customer is counted again. */
  function repairCustomer(customerId: string): Promise<number> {
    return transact(pool, async ({ client, counting }) => {
      await explain(counting.lock([customerId]))
      const { wrong } = await check(createDb(client), [customerId])
      if (wrong.length > 0) await explain(recountCustomer(client, customerId))
      return wrong.length
    })
  }
}

const credentialsOf = (client: PoolClient) => credentialWrites(createDb(client))

function writesOf({ client, counting, shared }: Writing): WriteTransaction {
  const engine: EngineWrites = {
    saveInvoices: (records, observedAt) => explain(saveInvoices(client, counting, records, observedAt)),
    findKnown: keys => explain(findKnown(client, keys)),
    relinkInvoices: given => explain(relinkInvoices(client, counting, given)),
    lock: customerId => explain(counting.lock([customerId])),
    noteGone: (customer_id, id, gone) => counting.note({ customer_id, id }, gone, null),
  }
  return transactionWrites(engine, shared, createDb(client, true), createDb(client))
}
