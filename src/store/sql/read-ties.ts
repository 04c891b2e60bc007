/** Reads invoices with their documents and links, for the connector and for the operator's commands. */
import type { InvoiceKey } from '../../domain/invoice.ts'
import type { DocumentReads, JournalEntry, LinkedInvoice } from '../document-store.ts'
import { type Db, queryColumn } from './db.ts'
import { findClaimants } from './named-invoices.ts'
import { findDocuments, readBody, taxIdOf } from './read-documents.ts'

export function tiedReads(db: Db) {
  return {
    async readLinked(after, limit, customerId) {
      const page =
        customerId === null
          ? 'WHERE (i.customer_id, i.id) > ($1, $2) ORDER BY i.customer_id, i.id LIMIT $3'
          : 'WHERE i.customer_id = $1 AND i.id > $2 ORDER BY i.id LIMIT $3'
      const values = [customerId ?? after?.customer_id ?? '', after?.id ?? '', limit]
      return (await db.query<LinkedRow>(linked(page), values)).map(readLinked)
    },
    async findLinkedById(invoiceId) {
      return (await db.query<LinkedRow>(linked('WHERE i.id = $1'), [invoiceId])).map(readLinked)
    },
    findDocuments: wanted => findDocuments(db, wanted),
    findClaimants: wanted => findClaimants(db, wanted),
    async findTied({ documents, invoices }) {
      const among = (column: string) => `SELECT ${column} FROM fatura.links WHERE ${db.isAmong(column, '$1')}`
      return {
        documents: await queryColumn(db, `${among('claimed_id')} UNION ${among('ix_id')}`, [documents]),
        invoices: await queryColumn(db, among('invoice_id'), [invoices]),
      }
    },
    readJournal: ({ customer_id, id }) =>
      db.query<JournalEntry>(
        `SELECT customer_id, invoice_id AS id, cause, type, happened_at, at, outcome, detail FROM fatura.journal
         WHERE customer_id = $1 AND invoice_id = $2 ORDER BY at DESC, cause`,
        [customer_id, id],
      ),
    async findTombstone(invoiceId) {
      const [row] = await db.query<InvoiceKey & { observed_stamp: number }>(
        'SELECT customer_id, id, observed_stamp FROM fatura.tombstones WHERE id = $1',
        [invoiceId],
      )
      return row ?? null
    },
  } satisfies Partial<DocumentReads>
}

interface LinkedRow extends Omit<LinkedInvoice, 'claim' | 'document' | 'client_tax_id' | 'payment'> {
  claim: string | null
  payment: string
  document_id: number | null
  body: string | null
  misses: number
  seen_at: number
  issued_to: string | null
  client_read_at: number | null
  tax_id: string | null
}

/**
 * Citus joins only tables whose rows lie on the same node. The rows of each table are therefore found separately and joined afterwards.
 * `page` selects the invoices.
 */
const linked = (page: string) => `
  WITH page AS MATERIALIZED (
    SELECT i.customer_id, i.id, i.summary, i.payment, i.observed_stamp, l.claim, coalesce(l.ix_id, l.claimed_id) AS document_id
    FROM fatura.invoices i LEFT JOIN fatura.links l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
    ${page}),
  tied AS MATERIALIZED (
    SELECT id, body, misses, observed_stamp, client_id, client_tax_id FROM fatura.documents
    WHERE id IN (SELECT document_id FROM page)),
  clients AS MATERIALIZED (
    SELECT id, observed_stamp, tax_id FROM fatura.document_clients WHERE id IN (SELECT client_id FROM tied))
  SELECT p.customer_id, p.id, p.summary, p.payment, p.observed_stamp, p.claim, d.id AS document_id, d.body, d.misses,
    d.observed_stamp AS seen_at, d.client_tax_id AS issued_to, c.observed_stamp AS client_read_at, c.tax_id
  FROM page p LEFT JOIN tied d ON d.id = p.document_id LEFT JOIN clients c ON c.id = d.client_id
  ORDER BY p.customer_id, p.id`

function readLinked(row: LinkedRow): LinkedInvoice {
  const { claim, payment, document_id: id, body, misses, seen_at, ...rest } = row
  const { issued_to, client_read_at, tax_id, ...invoice } = rest
  const document = readBody(body)
  // A client that was asked for but not read yet has the stamp 0.
  const client_tax_id = taxIdOf(document, issued_to, client_read_at ? tax_id : undefined)
  const known = { document, misses, observed_stamp: seen_at, client_tax_id: client_tax_id ?? null }
  return {
    ...invoice,
    claim: claim === null ? null : JSON.parse(claim),
    payment: JSON.parse(payment),
    document: id === null ? null : { id, ...known, relations: null },
    client_tax_id,
  }
}
