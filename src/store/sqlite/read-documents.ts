/** What the connector and the operator's commands read of documents, links and the journal. */

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { InvoiceKey } from '../../invoice.ts'
import {
  type ClaimedDocument,
  type DocumentKey,
  type DocumentReads,
  type DocumentRow,
  type JournalEntry,
  type LinkedRow,
  readDocumentRow,
  readLinkedRow,
} from '../document-store.ts'

import { documentColumns, selectDocuments } from './write-documents.ts'

const keyColumns = "id, json_extract(body, '$.type') AS type"

const linkedColumns = `
  i.customer_id, i.id, i.summary, i.observed_at, l.claim,
  d.id AS document_id, d.body, d.misses, d.observed_at AS document_observed_at, c.observed_at AS client_observed_at, c.tax_id`
const linkedTables = `
  invoices i
  LEFT JOIN links l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
  LEFT JOIN documents d ON d.id = coalesce(l.ix_id, l.claimed_id)
  LEFT JOIN document_clients c ON c.id = d.client_id`

/** `attempt` runs a statement, and says what a failure means. */
export function documentReads(db: DatabaseSync, attempt: <T>(work: () => T) => T): DocumentReads {
  const all = <Row>(statement: StatementSync, ...values: (string | number | null)[]) =>
    attempt(() => statement.all(...values)) as unknown as Row[]

  const readOpen = db.prepare(`
    SELECT ${keyColumns} FROM documents INDEXED BY documents_open
    WHERE status IN ('draft', 'final', 'sent') AND misses < 2 AND observed_at < ?1 AND id > ?2 ORDER BY id LIMIT ?3`)
  const readSpan = db.prepare(`
    SELECT ${keyColumns} FROM documents
    WHERE date >= ?1 AND date <= ?2 AND status <> 'deleted' AND misses < 2 AND observed_at < ?3 AND id > ?4
    ORDER BY id LIMIT ?5`)
  const readClaimed = db.prepare(`
    SELECT wanted.id, coalesce(json_extract(body, '$.type'), max(wanted.type)) AS type, misses,
      coalesce(observed_at, 0) AS observed_at FROM (
      SELECT * FROM (
        SELECT claimed_id AS id, json_extract(claim, '$.ix_type') AS type FROM links
        WHERE claimed_id > ?1 ORDER BY claimed_id LIMIT ?2)
      UNION
      SELECT * FROM (SELECT ix_id, NULL FROM links WHERE ix_id > ?1 ORDER BY ix_id LIMIT ?2)
    ) wanted LEFT JOIN documents d ON d.id = wanted.id
    GROUP BY wanted.id ORDER BY wanted.id LIMIT ?2`)
  const readClients = db.prepare(
    'SELECT id FROM document_clients WHERE observed_at < ?1 AND id > ?2 ORDER BY id LIMIT ?3',
  )
  const findDocuments = db.prepare(selectDocuments)
  const readInForce = db.prepare(`
    SELECT body FROM documents
    WHERE id > ?1 AND status NOT IN ('draft', 'canceled', 'deleted') AND misses < 2
      AND (?2 IS NULL OR date BETWEEN ?2 AND ?3) ORDER BY id LIMIT ?4`)
  const findTied = db.prepare(`
    SELECT claimed_id AS id FROM links WHERE claimed_id IN (SELECT value FROM json_each(?1))
    UNION
    SELECT ix_id FROM links WHERE ix_id IN (SELECT value FROM json_each(?1))`)
  const findInvoices = db.prepare(
    'SELECT invoice_id AS id FROM links WHERE invoice_id IN (SELECT value FROM json_each(?1))',
  )
  const readCreating = db.prepare(`
    SELECT customer_id, invoice_id AS id FROM links
    WHERE state = 'creating' AND (customer_id, invoice_id) > (?1, ?2) ORDER BY customer_id, invoice_id LIMIT ?3`)
  const readFirstIssued = db.prepare('SELECT min(issued_at) AS first FROM invoices')
  const readLinked = db.prepare(`
    SELECT ${linkedColumns} FROM ${linkedTables}
    WHERE (i.customer_id, i.id) > (?1, ?2) ORDER BY i.customer_id, i.id LIMIT ?3`)
  const readLinkedOf = db.prepare(`
    SELECT ${linkedColumns} FROM ${linkedTables}
    WHERE i.customer_id = ?1 AND i.id > ?2 ORDER BY i.id LIMIT ?3`)
  const findLinkedById = db.prepare(`SELECT ${linkedColumns} FROM ${linkedTables} WHERE i.id = ?1`)
  const findReferenced = db.prepare(
    `SELECT ${documentColumns} FROM documents WHERE reference = ?1 ORDER BY id`,
  )
  const readJournal = db.prepare(`
    SELECT customer_id, invoice_id AS id, cause, type, happened_at, at, outcome, detail FROM journal
    WHERE customer_id = ?1 AND invoice_id = ?2 ORDER BY at DESC, cause`)
  const findTombstone = db.prepare('SELECT customer_id, id, observed_at FROM tombstones WHERE id = ?1')

  return {
    async readDocuments(which, observedBefore, after, limit) {
      return which === 'open'
        ? all<DocumentKey>(readOpen, observedBefore, after, limit)
        : all<DocumentKey>(readSpan, which.from, which.to, observedBefore, after, limit)
    },
    async readClaimed(after, limit) {
      return all<ClaimedDocument>(readClaimed, after, limit)
    },
    async readClients(readBefore, after, limit) {
      return all<{ id: number }>(readClients, readBefore, after, limit).map(({ id }) => id)
    },
    async readCreating(after, limit) {
      return all<InvoiceKey>(readCreating, after?.customer_id ?? '', after?.id ?? '', limit)
    },
    async readFirstIssued() {
      return all<{ first: number | null }>(readFirstIssued)[0]?.first ?? null
    },
    async readLinked(after, limit, customerId) {
      const rows =
        customerId === null
          ? all<LinkedRow>(readLinked, after?.customer_id ?? '', after?.id ?? '', limit)
          : all<LinkedRow>(readLinkedOf, customerId, after?.id ?? '', limit)
      return rows.map(readLinkedRow)
    },
    async findLinkedById(invoiceId) {
      return all<LinkedRow>(findLinkedById, invoiceId).map(readLinkedRow)
    },
    async findDocuments({ ids, references }) {
      const rows = all<DocumentRow>(findDocuments, JSON.stringify(ids), JSON.stringify(references))
      return rows.map(readDocumentRow)
    },
    async readInForce(after, limit, days) {
      const rows = all<{ body: string }>(readInForce, after, days?.from ?? null, days?.to ?? null, limit)
      return rows.map(({ body }) => JSON.parse(body))
    },
    async findTied({ documents, invoices }) {
      const tied = all<{ id: number }>(findTied, JSON.stringify(documents))
      const known = all<{ id: string }>(findInvoices, JSON.stringify(invoices))
      return { documents: tied.map(({ id }) => id), invoices: known.map(({ id }) => id) }
    },
    async findReferenced(reference) {
      return all<DocumentRow>(findReferenced, reference).map(readDocumentRow)
    },
    async readJournal({ customer_id, id }) {
      return all<JournalEntry>(readJournal, customer_id, id)
    },
    async findTombstone(invoiceId) {
      return all<InvoiceKey & { observed_at: number }>(findTombstone, invoiceId)[0] ?? null
    },
  }
}
