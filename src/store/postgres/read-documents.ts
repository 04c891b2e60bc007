/** What the connector and the operator's commands read of documents, links and the journal. */
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

import { documentColumns, findDocuments } from './write-documents.ts'

const linked = `
  SELECT i.customer_id, i.id, i.summary, i.observed_at, l.claim, d.id AS document_id, d.body, d.misses,
    d.observed_at AS document_observed_at, c.observed_at AS client_observed_at, c.tax_id
  FROM fatura.invoices i
  LEFT JOIN fatura.links l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
  LEFT JOIN fatura.documents d ON d.id = coalesce(l.ix_id, l.claimed_id)
  LEFT JOIN fatura.document_clients c ON c.id = d.client_id`

type Query = <Row extends object>(text: string, values?: unknown[]) => Promise<Row[]>

export function documentReads(query: Query): DocumentReads {
  return {
    async readDocuments(which, observedBefore, after, limit) {
      return which === 'open'
        ? query<DocumentKey>(
            `SELECT id, body::json ->> 'type' AS type FROM fatura.documents
             WHERE status IN ('draft', 'final', 'sent') AND misses < 2 AND id > $1
               AND observed_at < $2 ORDER BY id LIMIT $3`,
            [after, observedBefore, limit],
          )
        : query<DocumentKey>(
            `SELECT id, body::json ->> 'type' AS type FROM fatura.documents
             WHERE date >= $1 AND date <= $2 AND status <> 'deleted' AND misses < 2 AND id > $3
               AND observed_at < $4 ORDER BY id LIMIT $5`,
            [which.from, which.to, after, observedBefore, limit],
          )
    },
    async readClaimed(after, limit) {
      return query<ClaimedDocument>(
        `SELECT wanted.id, coalesce(min(d.body::json ->> 'type'), max(wanted.type)) AS type, min(d.misses) AS misses,
           coalesce(min(d.observed_at), 0) AS observed_at FROM (
           (SELECT claimed_id AS id, claim::json ->> 'ix_type' AS type FROM fatura.links
            WHERE claimed_id > $1 ORDER BY claimed_id LIMIT $2)
           UNION
           (SELECT ix_id, NULL FROM fatura.links WHERE ix_id > $1 ORDER BY ix_id LIMIT $2)
         ) wanted LEFT JOIN fatura.documents d ON d.id = wanted.id
         GROUP BY wanted.id ORDER BY wanted.id LIMIT $2`,
        [after, limit],
      )
    },
    async readClients(readBefore, after, limit) {
      const rows = await query<{ id: number }>(
        'SELECT id FROM fatura.document_clients WHERE observed_at < $1 AND id > $2 ORDER BY id LIMIT $3',
        [readBefore, after, limit],
      )
      return rows.map(({ id }) => id)
    },
    async readCreating(after, limit) {
      return query<InvoiceKey>(
        `SELECT customer_id, invoice_id AS id FROM fatura.links
         WHERE state = 'creating' AND (customer_id, invoice_id) > ($1, $2) ORDER BY customer_id, invoice_id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit],
      )
    },
    async readFirstIssued() {
      const [row] = await query<{ first: number | null }>(
        'SELECT min(issued_at) AS first FROM fatura.invoices',
      )
      return row?.first ?? null
    },
    async readLinked(after, limit, customerId) {
      const rows =
        customerId === null
          ? await query<LinkedRow>(
              `${linked} WHERE (i.customer_id, i.id) > ($1, $2) ORDER BY i.customer_id, i.id LIMIT $3`,
              [after?.customer_id ?? '', after?.id ?? '', limit],
            )
          : await query<LinkedRow>(
              `${linked} WHERE i.customer_id = $1 AND i.id > $2 ORDER BY i.id LIMIT $3`,
              [customerId, after?.id ?? '', limit],
            )
      return rows.map(readLinkedRow)
    },
    async findLinkedById(invoiceId) {
      return (await query<LinkedRow>(`${linked} WHERE i.id = $1`, [invoiceId])).map(readLinkedRow)
    },
    async findDocuments({ ids, references }) {
      return (await query<DocumentRow>(findDocuments, [ids, references])).map(readDocumentRow)
    },
    async readInForce(after, limit, days) {
      const rows = await query<{ body: string }>(
        `SELECT body FROM fatura.documents
         WHERE id > $1 AND status NOT IN ('draft', 'canceled', 'deleted') AND misses < 2
           AND ($2::text IS NULL OR date BETWEEN $2 AND $3) ORDER BY id LIMIT $4`,
        [after, days?.from ?? null, days?.to ?? null, limit],
      )
      return rows.map(({ body }) => JSON.parse(body))
    },
    async findTied({ documents, invoices }) {
      const tied = await query<{ id: number }>(
        `SELECT claimed_id AS id FROM fatura.links WHERE claimed_id = ANY ($1)
         UNION
         SELECT ix_id FROM fatura.links WHERE ix_id = ANY ($1)`,
        [documents],
      )
      const known = await query<{ id: string }>(
        'SELECT invoice_id AS id FROM fatura.links WHERE invoice_id = ANY ($1)',
        [invoices],
      )
      return { documents: tied.map(({ id }) => id), invoices: known.map(({ id }) => id) }
    },
    async findReferenced(reference) {
      const rows = await query<DocumentRow>(
        `SELECT ${documentColumns} FROM fatura.documents WHERE reference = $1 ORDER BY id`,
        [reference],
      )
      return rows.map(readDocumentRow)
    },
    async readJournal({ customer_id, id }) {
      return query<JournalEntry>(
        `SELECT customer_id, invoice_id AS id, cause, type, happened_at, at, outcome, detail FROM fatura.journal
         WHERE customer_id = $1 AND invoice_id = $2 ORDER BY at DESC, cause`,
        [customer_id, id],
      )
    },
    async findTombstone(invoiceId) {
      const [row] = await query<InvoiceKey & { observed_at: number }>(
        'SELECT customer_id, id, observed_at FROM fatura.tombstones WHERE id = $1',
        [invoiceId],
      )
      return row ?? null
    },
  }
}
