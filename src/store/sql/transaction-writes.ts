/** Combines all writes of a transaction. Each engine implements only a few of them. */
import { observationStamp, type WriteTransaction } from '../store.ts'
import { changeWrites } from './changes.ts'
import { connectorWrites } from './connector-state.ts'
import { contentsWrites } from './contents.ts'
import type { Countable } from './counters.ts'
import type { Db } from './db.ts'
import type { InvoiceRow } from './invoice-row.ts'
import { saveDerivedLinks } from './links.ts'
import { gatherSharedRows, type SharedRows } from './shared-rows.ts'
import { webhookWrites } from './webhooks.ts'
import { type Counters, type CustomerWrites, keepCounts } from './write-counters.ts'
import { documentWrites } from './write-documents.ts'

export interface EngineWrites extends CustomerWrites, Pick<WriteTransaction, 'findKnown'> {
  saveInvoices(
    counters: Counters,
    ...given: Required<Parameters<WriteTransaction['saveInvoices']>>
  ): Promise<number>
  /** Replaces the columns that depend on documents. All rows must exist already. */
  updateDocuments(rows: readonly InvoiceRow[]): Promise<void>
}

export type Writing = ReturnType<typeof startWriting>

/** Starts the writes of one transaction. `finish` returns the statements that must be run last, before the commit. */
export function startWriting(db: Db, engine: EngineWrites) {
  const rows = gatherSharedRows()
  const counters = keepCounts(db, engine, rows)
  const invoices = invoiceWrites(db, engine, counters, rows)
  const tx: WriteTransaction = {
    ...invoices,
    ...documentWrites(db, rows),
    ...connectorWrites(db),
    ...changeWrites(db),
    ...webhookWrites(db),
    ...contentsWrites(db, invoices),
  }
  return {
    db,
    counters,
    tx,
    async finish() {
      await counters.flush()
      return rows.statements(db.engine)
    },
  }
}

function invoiceWrites(db: Db, engine: EngineWrites, counters: Counters, rows: SharedRows) {
  return {
    saveInvoices(records, observedAt = observationStamp(), answeredAt = observedAt) {
      for (const stamp of [observedAt, answeredAt].flat()) rows.raiseObserved(stamp)
      return engine.saveInvoices(counters, records, observedAt, answeredAt)
    },
    async deleteInvoice(customerId, invoiceId, observedAt = observationStamp(), answeredAt = observedAt) {
      rows.raiseObserved(answeredAt)
      const wasThere = await removeInvoice(db, counters, customerId, invoiceId)
      await db.query(saveTombstone, [customerId, invoiceId, observedAt, answeredAt])
      return wasThere
    },
    async removeInvoice(customerId, invoiceId) {
      await removeInvoice(db, counters, customerId, invoiceId)
    },
    findKnown: engine.findKnown,
    saveDerivedLinks: given => saveDerivedLinks(db, counters, given, engine.updateDocuments),
    saveStream: rows.saveStream,
    saveSuccess: rows.saveSuccess,
  } satisfies Partial<WriteTransaction>
}

const saveTombstone = `
  INSERT INTO fatura.tombstones AS stored (customer_id, id, observed_stamp, answered_stamp) VALUES ($1, $2, $3, $4)
  ON CONFLICT (customer_id, id) DO UPDATE SET observed_stamp = excluded.observed_stamp, answered_stamp = excluded.answered_stamp
  WHERE stored.observed_stamp < excluded.observed_stamp`

/** Removes an invoice with its lines, payments, account entries and link. Returns whether the invoice existed. */
async function removeInvoice(
  db: Db,
  counters: Counters,
  customerId: string,
  invoiceId: string,
): Promise<boolean> {
  await counters.lock([customerId])
  const [gone] = await db.query<Countable>(
    `DELETE FROM fatura.invoices WHERE customer_id = $1 AND id = $2
     RETURNING issued_at, status, ix_status, currency, total_cents`,
    [customerId, invoiceId],
  )
  for (const table of ['invoice_lines', 'invoice_payments', 'account_entries', 'links']) {
    const sql = `DELETE FROM fatura.${table} WHERE customer_id = $1 AND invoice_id = $2`
    await db.query(sql, [customerId, invoiceId])
  }
  if (gone !== undefined) counters.record({ customer_id: customerId, id: invoiceId }, gone, null)
  return gone !== undefined
}
