import type { InvoiceKey } from '../../invoice.ts'
import type { ConnectorWrites } from '../connector-store.ts'
import type { ContentsWrites } from '../contents.ts'
import type { DocumentWrites } from '../document-store.ts'
import { connectorReads, connectorWrites } from '../shared/connector-state.ts'
import { contentsReads, contentsWrites } from '../shared/contents.ts'
import {
  lastStamp,
  observationStamp,
  type StoredRecord,
  type StoredToken,
  type Stream,
  type WriteStore,
  type WriteTransaction,
} from '../store.ts'
import { openWritePool } from './pool.ts'
import { documentReads } from './read-documents.ts'
import { recount } from './recount.ts'
import { checkSchema } from './schema-version.ts'
import { createDb } from './shared-db.ts'
import { explain, transact, type Writing } from './transact.ts'
import { documentWrites } from './write-documents.ts'
import { deleteInvoice, findKnown, removeInvoice, saveInvoices } from './write-invoices.ts'

const tokenColumns = 'id, name, hash, customers, created_at, expires_at, revoked_at'

export async function openPostgresWriter(url: string, lockPatience?: number): Promise<WriteStore> {
  const pool = openWritePool(url, lockPatience)
  const query = async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> => {
    return (await explain(pool.query<Row>(text, values))).rows
  }
  try {
    await checkSchema(query)
  } catch (error) {
    await pool.end()
    throw error
  }

  const shared = createDb((sql, values) => pool.query(sql, values))
  return {
    transaction: work => transact(pool, writing => work(writesOf(writing))),
    checkCounts: onProgress => recount(pool, false, onProgress),
    repairCounts: onProgress => recount(pool, true, onProgress),
    ...documentReads(query),
    ...connectorReads(shared),
    ...contentsReads(shared),
    async readInvoices(after, limit) {
      return query<StoredRecord>(
        `SELECT i.customer_id, i.id, i.summary, l.lines
         FROM fatura.invoices i
         LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
         WHERE (i.customer_id, i.id) > ($1, $2) ORDER BY i.customer_id, i.id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit],
      )
    },
    async readUnsettled(after, limit, observedBefore) {
      return query<InvoiceKey>(
        `SELECT customer_id, id FROM fatura.invoices
         WHERE status IN ('draft', 'open', 'uncollectible') AND (customer_id, id) > ($1, $2) AND observed_at < $4
         ORDER BY customer_id, id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit, observedBefore],
      )
    },
    async readLastObserved() {
      const [row] = await query<{ last_at: number }>('SELECT last_at FROM fatura.observation')
      return row?.last_at ?? 0
    },
    async listStreams() {
      return query<Stream>(
        'SELECT name, cursor, succeeded_at, failed_at, error FROM fatura.streams ORDER BY name',
      )
    },
    async saveToken({ id, name, hash, customers, created_at, expires_at, revoked_at }) {
      await query(
        `INSERT INTO fatura.tokens (${tokenColumns}) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at`,
        [id, name, hash, customers, created_at, expires_at, revoked_at],
      )
    },
    async listTokens() {
      return query<StoredToken>(`SELECT ${tokenColumns} FROM fatura.tokens ORDER BY created_at DESC, id`)
    },
    async revokeToken(id, at) {
      const [token] = await query<StoredToken>(
        `UPDATE fatura.tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING ${tokenColumns}`,
        [id, at],
      )
      return token ?? null
    },
    async close() {
      await pool.end()
    },
  }
}

function writesOf({ client, counting, shared }: Writing): WriteTransaction {
  const db = createDb((sql, values) => client.query(sql, values))
  const writes: Omit<WriteTransaction, keyof ConnectorWrites | keyof ContentsWrites> = {
    ...explainAll(documentWrites(client, counting, shared)),
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
    saveStream: async stream => shared.saveStream(stream),
    saveSuccess: async (name, at) =>
      shared.saveStream({ name, cursor: null, succeeded_at: at, failed_at: null, error: null }),
  }
  return { ...writes, ...connectorWrites(db), ...contentsWrites(db, writes) }
}

/** The same functions, each of whose failures is explained. */
function explainAll(writes: DocumentWrites): DocumentWrites {
  const explained = Object.entries(writes).map(([name, write]) => [
    name,
    (...given: unknown[]) => explain((write as (...given: unknown[]) => Promise<unknown>)(...given)),
  ])
  return Object.fromEntries(explained)
}
