/** The statements that write, prepared once; they run within a transaction of the writer's. */
import type { DatabaseSync } from 'node:sqlite'
import type { Invoice, InvoiceKey, InvoiceRecord } from '../../invoice.ts'
import { serializeLines, serializeSummary } from '../../invoice-json.ts'
import { searchText } from '../read-model/search.ts'
import { type KnownInvoice, lastStamp, type Stream, stampOf } from '../store.ts'
import type { keepCounts } from './counts.ts'
import type { writeDocuments } from './write-documents.ts'

export function writeInvoices(
  db: DatabaseSync,
  links: ReturnType<typeof writeDocuments>,
  counts: ReturnType<typeof keepCounts>,
) {
  const insertInvoice = db.prepare(`
    INSERT INTO invoices (customer_id, id, issued_at, status, ix_status, party_id, own_text, summary, observed_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (customer_id, id) DO UPDATE SET
      issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
      party_id = excluded.party_id, own_text = excluded.own_text, summary = excluded.summary,
      observed_at = excluded.observed_at`)
  const touchInvoice = db.prepare('UPDATE invoices SET observed_at = ?3 WHERE customer_id = ?1 AND id = ?2')
  const findInvoice = db.prepare(`
    SELECT summary, party_id, own_text, issued_at, observed_at FROM invoices WHERE customer_id = ?1 AND id = ?2`)
  const findTombstone = db.prepare('SELECT observed_at FROM tombstones WHERE customer_id = ?1 AND id = ?2')
  const saveTombstone = db.prepare(`
    INSERT INTO tombstones (customer_id, id, observed_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (customer_id, id) DO UPDATE SET observed_at = max(observed_at, excluded.observed_at)`)
  const saveLines = db.prepare(`
    INSERT INTO invoice_lines (customer_id, invoice_id, lines) VALUES (?1, ?2, ?3)
    ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines WHERE lines <> excluded.lines`)
  const deleteInvoice = db.prepare(
    'DELETE FROM invoices WHERE customer_id = ?1 AND id = ?2 RETURNING issued_at, party_id',
  )
  const deleteLines = db.prepare('DELETE FROM invoice_lines WHERE customer_id = ?1 AND invoice_id = ?2')
  const raiseObserved = db.prepare('UPDATE observation SET last_at = max(last_at, ?1)')
  const saveStream = db.prepare(`
    INSERT INTO streams (name, cursor, succeeded_at, failed_at, error) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, succeeded_at = excluded.succeeded_at,
      failed_at = excluded.failed_at, error = excluded.error`)
  const saveFreshness = db.prepare(
    'UPDATE freshness SET synced_at = (SELECT synced_at FROM current_freshness)',
  )

  /** Says whether anything but the moment of its observation changed. */
  function saveOne({ invoice, lines, claim }: InvoiceRecord, observedAt: number): boolean {
    const { customer_id, id } = invoice
    const stored = findInvoice.get(customer_id, id)
    if (stored !== undefined && Number(stored.observed_at) > observedAt) return false
    const [search, summary, issued] = [
      searchText(invoice),
      serializeSummary(invoice),
      Date.parse(invoice.issued_at),
    ]
    const isChanged =
      stored?.summary !== summary || stored.party_id !== search.party_id || stored.own_text !== search.own
    if (isChanged) {
      links.saveParty(customer_id, search)
      insertInvoice.run(
        customer_id,
        id,
        issued,
        invoice.status,
        invoice.ix_status,
        search.party_id,
        search.own,
        summary,
        observedAt,
      )
      if (stored !== undefined && stored.party_id !== search.party_id)
        links.leaveParty(customer_id, Number(stored.party_id))
    } else touchInvoice.run(customer_id, id, observedAt)
    const { changes } =
      lines === null
        ? deleteLines.run(customer_id, id)
        : saveLines.run(customer_id, id, serializeLines(lines))
    if (claim !== undefined) links.saveLink(invoice, claim)
    if (!isChanged && changes === 0) return false
    counts.note(customer_id, issued, Number(stored?.issued_at ?? issued))
    return true
  }

  /** Says whether there was such an invoice. */
  function remove(customerId: string, invoiceId: string): boolean {
    const gone = deleteInvoice.get(customerId, invoiceId)
    deleteLines.run(customerId, invoiceId)
    links.deleteLink(customerId, invoiceId)
    if (gone === undefined) return false
    links.leaveParty(customerId, Number(gone.party_id))
    counts.note(customerId, Number(gone.issued_at))
    return true
  }

  return {
    save(records: readonly InvoiceRecord[], observedAt: number | readonly number[]): number {
      let changed = 0
      for (const [index, record] of records.entries())
        if (saveOne(record, stampOf(observedAt, index))) changed++
      raiseObserved.run(lastStamp(observedAt))
      return changed
    },
    remove,
    delete(customerId: string, invoiceId: string, observedAt: number): boolean {
      saveTombstone.run(customerId, invoiceId, observedAt)
      raiseObserved.run(observedAt)
      return remove(customerId, invoiceId)
    },
    findKnown(keys: readonly InvoiceKey[]): KnownInvoice[] {
      return keys.flatMap(({ customer_id, id }): KnownInvoice[] => {
        const stored = findInvoice.get(customer_id, id) as
          | { summary: string; observed_at: number }
          | undefined
        const claim = links.findClaim(customer_id, id)
        if (stored !== undefined)
          return [{ customer_id, id, summary: stored.summary, observed_at: stored.observed_at, claim }]
        const gone = findTombstone.get(customer_id, id) as { observed_at: number } | undefined
        return gone === undefined
          ? []
          : [{ customer_id, id, summary: null, observed_at: gone.observed_at, claim }]
      })
    },
    relink(invoices: readonly Invoice[]): void {
      for (const invoice of invoices) counts.note(invoice.customer_id, links.relink(invoice))
    },
    raiseObserved(observedAt: number): void {
      raiseObserved.run(observedAt)
    },
    saveStream({ name, cursor, succeeded_at, failed_at, error }: Stream): void {
      saveStream.run(name, cursor, succeeded_at, failed_at, error)
      saveFreshness.run()
    },
  }
}
