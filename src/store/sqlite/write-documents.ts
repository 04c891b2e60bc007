/** The statements that write documents, links and the journal, prepared once; they run within a transaction. */
import type { DatabaseSync } from 'node:sqlite'
import type { Claim, Document } from '../../document.ts'
import type { Invoice, InvoiceKey } from '../../invoice.ts'
import { serializeSummary } from '../../invoice-json.ts'
import {
  type DocumentRow,
  type JournalEntry,
  type KnownDocument,
  readDocumentRow,
} from '../document-store.ts'
import { type SearchText, searchText } from '../read-model/search.ts'

const entriesKept = 50

export const documentColumns = 'id, body, misses, observed_at'

/** By their ids and their references. */
export const selectDocuments = `
  SELECT ${documentColumns} FROM documents WHERE id IN (SELECT value FROM json_each(?1))
  UNION
  SELECT ${documentColumns} FROM documents WHERE reference IN (SELECT value FROM json_each(?2))
  ORDER BY id`

export function writeDocuments(db: DatabaseSync) {
  const saveDocument = db.prepare(`
    INSERT INTO documents (id, status, reference, date, client_id, body, misses, observed_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, reference = excluded.reference, date = excluded.date,
      client_id = excluded.client_id, body = excluded.body, misses = 0, observed_at = excluded.observed_at
    WHERE observed_at <= excluded.observed_at`)
  const missDocument = db.prepare(`
    INSERT INTO documents (id, misses, observed_at) VALUES (?1, 1, ?2)
    ON CONFLICT (id) DO UPDATE SET misses = misses + 1, observed_at = excluded.observed_at
    WHERE observed_at <= excluded.observed_at AND (misses = 0 OR observed_at <= ?3)`)
  const saveClient = db.prepare(`
    INSERT INTO document_clients (id, tax_id, observed_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (id) DO UPDATE SET tax_id = excluded.tax_id, observed_at = excluded.observed_at`)
  const wantClient = db.prepare(`
    INSERT INTO document_clients (id, observed_at) SELECT client_id, 0 FROM documents
    WHERE id = ?1 AND client_id IS NOT NULL ON CONFLICT DO NOTHING`)
  const findDocuments = db.prepare(selectDocuments)
  const findLinked = db.prepare(`
    SELECT customer_id, invoice_id AS id FROM links WHERE claimed_id IN (SELECT value FROM json_each(?1))
    UNION
    SELECT customer_id, invoice_id FROM links WHERE ix_id IN (SELECT value FROM json_each(?1))
    UNION
    SELECT customer_id, invoice_id FROM links WHERE invoice_id IN (SELECT value FROM json_each(?2))`)
  const saveLink = db.prepare(`
    INSERT INTO links (customer_id, invoice_id, state, claimed_id, ix_id, claim) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (customer_id, invoice_id) DO UPDATE SET state = excluded.state, claimed_id = excluded.claimed_id,
      ix_id = excluded.ix_id, claim = excluded.claim
    WHERE claim <> excluded.claim OR ix_id IS NOT excluded.ix_id`)
  const deleteLink = db.prepare('DELETE FROM links WHERE customer_id = ?1 AND invoice_id = ?2')
  const findClaim = db.prepare('SELECT claim FROM links WHERE customer_id = ?1 AND invoice_id = ?2')
  const relinkInvoice = db.prepare(`
    UPDATE invoices SET ix_status = ?3, party_id = ?4, own_text = ?5, summary = ?6
    WHERE customer_id = ?1 AND id = ?2 RETURNING issued_at`)
  const saveParty = db.prepare(
    'INSERT INTO parties (customer_id, party_id, text) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING',
  )
  const dropParty = db.prepare(`
    DELETE FROM parties WHERE customer_id = ?1 AND party_id = ?2 AND NOT EXISTS (
      SELECT 1 FROM invoices INDEXED BY invoices_by_party WHERE customer_id = ?1 AND party_id = ?2)`)
  const findParty = db.prepare('SELECT party_id FROM invoices WHERE customer_id = ?1 AND id = ?2')
  const relink = db.prepare('UPDATE links SET ix_id = ?3 WHERE customer_id = ?1 AND invoice_id = ?2')
  const saveEntry = db.prepare(`
    INSERT INTO journal (customer_id, invoice_id, cause, type, happened_at, at, outcome, detail)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING`)
  const trimEntries = db.prepare(`
    DELETE FROM journal WHERE customer_id = ?1 AND invoice_id = ?2 AND at < (
      SELECT at FROM journal WHERE customer_id = ?1 AND invoice_id = ?2 ORDER BY at DESC LIMIT 1 OFFSET ${entriesKept - 1})`)

  return {
    saveDocuments(documents: readonly Document[], observedAt: number): void {
      for (const document of documents) {
        const { id, status, reference, date, client_id } = document
        saveDocument.run(id, status, reference, date, client_id, JSON.stringify(document), observedAt)
      }
    },
    missDocument(id: number, observedAt: number, unlessSince: number): void {
      missDocument.run(id, observedAt, unlessSince)
    },
    saveClient(id: number, taxId: string | null, observedAt: number): void {
      saveClient.run(id, taxId, observedAt)
    },
    findDocuments(ids: readonly number[], references: readonly string[]): KnownDocument[] {
      const rows = findDocuments.all(JSON.stringify(ids), JSON.stringify(references))
      return (rows as unknown as DocumentRow[]).map(readDocumentRow)
    },
    findLinked(documents: readonly number[], invoices: readonly string[]): InvoiceKey[] {
      const rows = findLinked.all(JSON.stringify(documents), JSON.stringify(invoices))
      return rows as unknown as InvoiceKey[]
    },
    saveLink({ customer_id, id, ix_id }: Invoice, claim: Claim): void {
      saveLink.run(customer_id, id, claim.state, claim.ix_id, ix_id, JSON.stringify(claim))
      if (ix_id !== null) wantClient.run(ix_id)
    },
    deleteLink(customerId: string, invoiceId: string): void {
      deleteLink.run(customerId, invoiceId)
    },
    findClaim(customerId: string, invoiceId: string): Claim | null {
      const row = findClaim.get(customerId, invoiceId) as { claim: string } | undefined
      return row === undefined ? null : JSON.parse(row.claim)
    },
    saveParty(customerId: string, { party_id, party }: SearchText): void {
      saveParty.run(customerId, party_id, party)
    },
    /** An invoice of this party went, or is made out to another: if it was the last one, the party goes too. */
    leaveParty(customerId: string, partyId: number): void {
      dropParty.run(customerId, partyId)
    },
    /** Says when the invoice was issued. */
    relink(invoice: Invoice): number {
      const { customer_id, id, ix_id, ix_status } = invoice
      const search = searchText(invoice)
      const left = Number(findParty.get(customer_id, id)?.party_id)
      saveParty.run(customer_id, search.party_id, search.party)
      const row = relinkInvoice.get(
        customer_id,
        id,
        ix_status,
        search.party_id,
        search.own,
        serializeSummary(invoice),
      )
      if (left !== search.party_id) dropParty.run(customer_id, left)
      relink.run(customer_id, id, ix_id)
      if (ix_id !== null) wantClient.run(ix_id)
      return Number(row?.issued_at)
    },
    saveEntries(entries: readonly JournalEntry[]): void {
      for (const { customer_id, id, cause, type, happened_at, at, outcome, detail } of entries) {
        saveEntry.run(customer_id, id, cause, type, happened_at, at, outcome, detail)
        trimEntries.run(customer_id, id)
      }
    },
  }
}
