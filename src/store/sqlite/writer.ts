import { connectorReads, connectorWrites } from '../shared/connector-state.ts'
import { contentsReads, contentsWrites } from '../shared/contents.ts'
import { documentReads } from '../shared/read-documents.ts'
import { invoiceReads } from '../shared/read-invoices.ts'
import {
  type FreshnessStatements,
  gatherSharedRows,
  type SharedRows,
  sharedReads,
} from '../shared/shared-rows.ts'
import { tokens } from '../shared/tokens.ts'
import { documentWrites } from '../shared/write-documents.ts'
import {
  type LockWait,
  lastStamp,
  type OnRecounted,
  observationStamp,
  type WriteStore,
  type WriteTransaction,
} from '../store.ts'
import { keepCounts } from './counts.ts'
import { openReadWrite } from './database.ts'
import { translate } from './failures.ts'
import { checkSchema } from './migrations.ts'
import { recounts } from './recount.ts'
import { createDb } from './shared-db.ts'
import { beginWriting } from './wait-for-lock.ts'
import { writeInvoices } from './write-invoices.ts'

const freshness: FreshnessStatements = {
  hold: [],
  save: 'UPDATE fatura.freshness SET synced_at = (SELECT synced_at FROM fatura.current_freshness)',
}

export async function openSqliteWriter(path: string, wait: LockWait = {}): Promise<WriteStore> {
  const db = await openReadWrite(path, { create: false, ...wait })
  try {
    checkSchema(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  const exec = (sql: string): void => translate(path, () => db.exec(sql))
  const shared = createDb(db, path)
  const counts = keepCounts(db)
  const invoices = writeInvoices(db, shared, counts, work => translate(path, work))

  function writesOf(rows: SharedRows): WriteTransaction {
    const writes = {
      saveInvoices(records, observedAt = observationStamp()) {
        rows.raiseObserved(lastStamp(observedAt))
        return invoices.save(records, observedAt)
      },
      deleteInvoice(customerId, invoiceId, observedAt = observationStamp()) {
        rows.raiseObserved(observedAt)
        return invoices.delete(customerId, invoiceId, observedAt)
      },
      async removeInvoice(customerId, invoiceId) {
        await invoices.remove(customerId, invoiceId)
      },
      findKnown: invoices.findKnown,
      relinkInvoices: invoices.relink,
      saveStream: rows.saveStream,
      saveSuccess: rows.saveSuccess,
    } satisfies Partial<WriteTransaction>
    return {
      ...writes,
      ...documentWrites(shared, rows),
      ...connectorWrites(shared),
      ...contentsWrites(shared, writes),
    }
  }

  async function runTransaction<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T> {
    await beginWriting(db, path, wait)
    try {
      counts.begin()
      const rows = gatherSharedRows()
      const result = await work(writesOf(rows))
      translate(path, counts.flush)
      for (const { sql, values } of rows.statements(freshness)) await shared.query(sql, ...values)
      exec('COMMIT')
      return result
    } catch (error) {
      // SQLite has rolled back by itself after some failures, a full disk among them.
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  const recounting = recounts(db)

  /** Customer by customer, each at one moment. Only to repair one is it locked, and then looked at again. */
  async function recount(repair: boolean, onProgress?: OnRecounted): Promise<number> {
    const all = onProgress === undefined ? null : recounting.estimate()
    let [wrong, invoices] = [0, 0]
    for (const customerId of recounting.customers()) {
      const found = await inTurn(() => readOnce(() => recounting.check(customerId)))
      wrong +=
        repair && found.wrong > 0 ? await transact(async () => repairCustomer(customerId)) : found.wrong
      invoices += found.invoices
      onProgress?.(invoices, all)
    }
    return wrong
  }

  function repairCustomer(customerId: string): number {
    return translate(path, () => {
      const { wrong } = recounting.check(customerId)
      if (wrong > 0) counts.recount(customerId)
      return wrong
    })
  }

  /** Several statements, all from one snapshot; no other writer waits for it. */
  async function readOnce<T>(read: () => T): Promise<T> {
    exec('BEGIN')
    try {
      return translate(path, read)
    } finally {
      db.exec('ROLLBACK')
    }
  }

  // A connection has one transaction at a time: the next one waits for the last.
  let last: Promise<unknown> = Promise.resolve()
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
  const transact = <T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T> =>
    inTurn(() => runTransaction(work))
  const [connector, token] = [connectorReads(shared), tokens(shared)]

  return {
    transaction: transact,
    checkCounts: onProgress => recount(false, onProgress),
    repairCounts: onProgress => recount(true, onProgress),
    ...documentReads(shared),
    ...connector,
    takeLease: (seen, holder) => transact(() => connector.takeLease(seen, holder)),
    renewLease: epoch => transact(() => connector.renewLease(epoch)),
    releaseLease: epoch => transact(() => connector.releaseLease(epoch)),
    ...contentsReads(shared),
    ...invoiceReads(shared),
    ...sharedReads(shared),
    ...token,
    saveToken: given => transact(() => token.saveToken(given)),
    revokeToken: (id, at) => transact(() => token.revokeToken(id, at)),
    async close() {
      db.close()
    },
  }
}
