import type { InvoiceKey } from '../../invoice.ts'
import type { ConnectorWrites } from '../connector-store.ts'
import type { ContentsWrites } from '../contents.ts'
import { connectorReads, connectorWrites } from '../shared/connector-state.ts'
import { contentsReads, contentsWrites } from '../shared/contents.ts'
import {
  type LockWait,
  type OnRecounted,
  observationStamp,
  type StoredRecord,
  type Stream,
  type WriteStore,
  type WriteTransaction,
} from '../store.ts'
import { keepCounts } from './counts.ts'
import { openReadWrite } from './database.ts'
import { translate } from './failures.ts'
import { checkSchema } from './migrations.ts'
import { documentReads } from './read-documents.ts'
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

  const readInvoices = db.prepare(`
    SELECT invoices.customer_id, id, summary, lines FROM invoices
    LEFT JOIN invoice_lines ON invoice_lines.customer_id = invoices.customer_id AND invoice_id = id
    WHERE (invoices.customer_id, id) > (?1, ?2) ORDER BY invoices.customer_id, id LIMIT ?3`)
  const readUnsettled = db.prepare(`
    SELECT customer_id, id FROM invoices INDEXED BY invoices_unsettled
    WHERE status IN ('draft', 'open', 'uncollectible') AND (customer_id, id) > (?1, ?2) AND observed_at < ?4
    ORDER BY customer_id, id LIMIT ?3`)
  const readLastObserved = db.prepare('SELECT last_at FROM observation')
  const listStreams = db.prepare(
    'SELECT name, cursor, succeeded_at, failed_at, error FROM streams ORDER BY name',
  )
  const saveToken = db.prepare(`
    INSERT INTO tokens (${tokenColumns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at`)
  const listTokens = db.prepare(`SELECT ${tokenColumns} FROM tokens ORDER BY created_at DESC, id`)
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
  const connector = connectorReads(shared)

  return {
    transaction: transact,
    checkCounts: onProgress => recount(false, onProgress),
    repairCounts: onProgress => recount(true, onProgress),
    ...documentReads(db, work => translate(path, work)),
    ...connector,
    takeLease: (seen, holder) => transact(() => connector.takeLease(seen, holder)),
    renewLease: epoch => transact(() => connector.renewLease(epoch)),
    releaseLease: epoch => transact(() => connector.releaseLease(epoch)),
    ...contentsReads(shared),
    async readUnsettled(after, limit, observedBefore) {
      const { customer_id, id } = after ?? { customer_id: '', id: '' }
      const rows = translate(path, () => readUnsettled.all(customer_id, id, limit, observedBefore))
      return rows as unknown as InvoiceKey[]
    },
    async readLastObserved() {
      return Number(translate(path, () => readLastObserved.get())?.last_at)
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
      await transact(() =>
        within(() => void saveToken.run(id, name, hash, customers, created_at, expires_at, revoked_at)),
      )
    },
    async listTokens() {
      return (translate(path, () => listTokens.all()) as unknown as TokenRow[]).map(readToken)
    },
    async revokeToken(id, at) {
      const row = (await transact(() => within(() => revokeToken.get(id, at)))) as unknown as
        | TokenRow
        | undefined
      return row === undefined ? null : readToken(row)
    },
    async close() {
      db.close()
    },
  }
}
