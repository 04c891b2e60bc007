import type { ConnectorWrites } from '../connector-store.ts'
import type { ContentsWrites } from '../contents.ts'
import type { DocumentWrites } from '../document-store.ts'
import { connectorWrites, leaseWrites } from '../shared/connector-state.ts'
import { contentsWrites } from '../shared/contents.ts'
import {
  lastStamp,
  observationStamp,
  type StoredToken,
  type WriteStore,
  type WriteTransaction,
} from '../store.ts'
import { operatorReads, tokenColumns } from './operator.ts'
import { openWritePool } from './pool.ts'
import { recount } from './recount.ts'
import { createDb } from './shared-db.ts'
import { explain, transact, type Writing } from './transact.ts'
import { documentWrites } from './write-documents.ts'
import { deleteInvoice, findKnown, removeInvoice, saveInvoices } from './write-invoices.ts'

export async function openPostgresWriter(url: string, lockPatience?: number): Promise<WriteStore> {
  const pool = openWritePool(url, lockPatience)
  const reads = await operatorReads(pool)
  const query = async <Row extends object>(text: string, values: unknown[]): Promise<Row[]> => {
    return (await explain(pool.query<Row>(text, values))).rows
  }

  const shared = createDb((sql, values) => pool.query(sql, values))
  return {
    ...reads,
    ...leaseWrites(shared),
    transaction: work => transact(pool, writing => work(writesOf(writing))),
    repairCounts: onProgress => recount(pool, true, onProgress),
    async saveToken({ id, name, hash, customers, created_at, expires_at, revoked_at }) {
      await query(
        `INSERT INTO fatura.tokens (${tokenColumns}) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at`,
        [id, name, hash, customers, created_at, expires_at, revoked_at],
      )
    },
    async revokeToken(id, at) {
      const [token] = await query<StoredToken>(
        `UPDATE fatura.tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING ${tokenColumns}`,
        [id, at],
      )
      return token ?? null
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
