import type { ConnectorWrites } from '../connector-store.ts'
import type { ContentsWrites } from '../contents.ts'
import { connectorWrites, leaseWrites } from '../shared/connector-state.ts'
import { contentsWrites } from '../shared/contents.ts'
import { type LockWait, observationStamp, type WriteStore, type WriteTransaction } from '../store.ts'
import { keepCounts } from './counts.ts'
import { openReadWrite } from './database.ts'
import { translate } from './failures.ts'
import { checkSchema } from './migrations.ts'
import { createTurns, eachCustomer, operatorReads } from './operator.ts'
import { recounts } from './recount.ts'
import { createDb } from './shared-db.ts'
import { readToken, type TokenRow, tokenColumns } from './tokens.ts'
import { beginWriting } from './wait-for-lock.ts'
import { writeDocuments } from './write-documents.ts'
import { writeInvoices } from './write-invoices.ts'

export async function openSqliteWriter(path: string, wait: LockWait = {}): Promise<WriteStore> {
  const db = await openReadWrite(path, { create: false, ...wait })
  try {
    checkSchema(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  const exec = (sql: string): void => translate(path, () => db.exec(sql))
  const documents = writeDocuments(db)
  const counts = keepCounts(db)
  const invoices = writeInvoices(db, documents, counts)

  const saveToken = db.prepare(`
    INSERT INTO tokens (${tokenColumns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at`)
  const revokeToken = db.prepare(
    `UPDATE tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1 RETURNING ${tokenColumns}`,
  )

  const shared = createDb(db, path)
  const within = <T>(work: () => T): Promise<T> => new Promise(resolve => resolve(translate(path, work)))
  const writes: Omit<WriteTransaction, keyof ConnectorWrites | keyof ContentsWrites> = {
    saveInvoices: (records, observedAt = observationStamp()) =>
      within(() => invoices.save(records, observedAt)),
    deleteInvoice: (customerId, invoiceId, observedAt = observationStamp()) =>
      within(() => invoices.delete(customerId, invoiceId, observedAt)),
    removeInvoice: (customerId, invoiceId) => within(() => void invoices.remove(customerId, invoiceId)),
    findKnown: keys => within(() => invoices.findKnown(keys)),
    saveDocuments: (given, observedAt) =>
      within(() => {
        documents.saveDocuments(given, observedAt)
        invoices.raiseObserved(observedAt)
      }),
    missDocument: (id, observedAt, unlessSince = observedAt) =>
      within(() => {
        documents.missDocument(id, observedAt, unlessSince)
        invoices.raiseObserved(observedAt)
      }),
    saveClient: (id, taxId, observedAt) => within(() => documents.saveClient(id, taxId, observedAt)),
    findDocuments: ({ ids, references }) => within(() => documents.findDocuments(ids, references)),
    findLinked: wanted => within(() => documents.findLinked(wanted.documents, wanted.invoices)),
    relinkInvoices: given => within(() => invoices.relink(given)),
    saveEntries: entries => within(() => documents.saveEntries(entries)),
    saveStream: stream => within(() => invoices.saveStream(stream)),
    saveSuccess: (name, at) =>
      within(() =>
        invoices.saveStream({ name, cursor: null, succeeded_at: at, failed_at: null, error: null }),
      ),
  }
  const tx: WriteTransaction = { ...writes, ...connectorWrites(shared), ...contentsWrites(shared, writes) }

  async function runTransaction<T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T> {
    await beginWriting(db, path, wait)
    try {
      counts.begin()
      const result = await work(tx)
      translate(path, counts.flush)
      exec('COMMIT')
      return result
    } catch (error) {
      // SQLite has rolled back by itself after some failures, a full disk among them.
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  /** Only to repair a customer is it locked, and then looked at again. */
  function repairCustomer(customerId: string): Promise<number> {
    return transact(async () =>
      translate(path, () => {
        const { wrong } = recounting.check(customerId)
        if (wrong > 0) counts.recount(customerId)
        return wrong
      }),
    )
  }

  const inTurn = createTurns()
  const recounting = recounts(db)
  const transact = <T>(work: (tx: WriteTransaction) => Promise<T>): Promise<T> =>
    inTurn(() => runTransaction(work))
  const leases = leaseWrites(shared)

  return {
    ...operatorReads(db, path, inTurn),
    transaction: transact,
    repairCounts: onProgress => eachCustomer(db, path, inTurn)(repairCustomer, onProgress),
    takeLease: (seen, holder) => transact(() => leases.takeLease(seen, holder)),
    renewLease: epoch => transact(() => leases.renewLease(epoch)),
    releaseLease: epoch => transact(() => leases.releaseLease(epoch)),
    async saveToken(token) {
      const customers = token.customers === null ? null : JSON.stringify(token.customers)
      const { id, name, hash, created_at, expires_at, revoked_at } = token
      await transact(() =>
        within(() => void saveToken.run(id, name, hash, customers, created_at, expires_at, revoked_at)),
      )
    },
    async revokeToken(id, at) {
      const row = (await transact(() => within(() => revokeToken.get(id, at)))) as unknown as
        | TokenRow
        | undefined
      return row === undefined ? null : readToken(row)
    },
  }
}
