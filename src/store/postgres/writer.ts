import { changeWrites } from '../shared/changes.ts'
import { connectorWrites, leaseWrites } from '../shared/connector-state.ts'
import { contentsWrites } from '../shared/contents.ts'
import { credentialWrites } from '../shared/credentials.ts'
import { endpointCommands, endpointWrites } from '../shared/endpoints.ts'
import { check } from '../shared/recount.ts'
import { documentWrites } from '../shared/write-documents.ts'
import { lastStamp, observationStamp, type WriteStore, type WriteTransaction } from '../store.ts'
import { recountCustomer } from './counts.ts'
import { readsOf, recountAll } from './operator.ts'
import { openWritePool } from './pool.ts'
import { createDb } from './shared-db.ts'
import { explain, transact, type Writing } from './transact.ts'
import { deleteInvoice, findKnown, relinkInvoices, removeInvoice, saveInvoices } from './write-invoices.ts'

export async function openPostgresWriter(url: string, lockPatience?: number): Promise<WriteStore> {
  const pool = openWritePool(url, lockPatience)
  const reads = await readsOf(pool)
  const db = createDb(pool)
  return {
    ...reads,
    ...leaseWrites(db),
    ...credentialWrites(db),
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

function writesOf({ client, counting, shared }: Writing): WriteTransaction {
  const db = createDb(client, true)
  const invoices = {
    saveInvoices(records, observedAt = observationStamp()) {
      shared.raiseObserved(lastStamp(observedAt))
      return explain(saveInvoices(client, counting, records, observedAt))
    },
    deleteInvoice(customerId, invoiceId, observedAt = observationStamp()) {
      shared.raiseObserved(observedAt)
      return explain(deleteInvoice(client, counting, customerId, invoiceId, observedAt))
    },
    async removeInvoice(customerId, invoiceId) {
      await explain(removeInvoice(client, counting, customerId, invoiceId))
    },
    findKnown: keys => explain(findKnown(client, keys)),
    relinkInvoices: given => explain(relinkInvoices(client, counting, given)),
    saveStream: shared.saveStream,
    saveSuccess: shared.saveSuccess,
  } satisfies Partial<WriteTransaction>
  return {
    ...invoices,
    ...documentWrites(db, shared),
    ...connectorWrites(db),
    ...changeWrites(db),
    ...endpointWrites(db),
    // How long its statements are depends on what is copied: none is worth keeping.
    ...contentsWrites(createDb(client), invoices),
  }
}
