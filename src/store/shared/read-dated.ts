/** The documents of a span of days, with the invoices that are tied to them. */
import { missesToBelieve } from '../../document.ts'
import type { DatedDocument, DocumentReads } from '../document-store.ts'
import type { Db } from './db.ts'

/** Each table's rows are found alone: documents lie neither with clients nor with invoices on Citus. */
export async function readDated(
  db: Db,
  ...[{ from, to }, after, limit]: Parameters<DocumentReads['readDated']>
): Promise<DatedDocument[]> {
  const rows = await db.query<{ id: number; client_id: number | null; body: string; misses: number }>(
    `SELECT id, client_id, body, misses FROM fatura.documents
     WHERE date <= $1 AND (date, id) > ($2, $3) AND body IS NOT NULL ORDER BY date, id LIMIT $4`,
    ...[to, after?.date ?? from, after?.id ?? 0, limit],
  )
  if (rows.length === 0) return []
  const clients = await db.query<{ id: number; tax_id: string | null }>(
    `SELECT id, tax_id FROM fatura.document_clients WHERE ${db.isAmong('id', '$1')}`,
    rows.flatMap(({ client_id }) => client_id ?? []),
  )
  const tied = await db.query<{ id: number; summary: string }>(
    `SELECT l.ix_id AS id, i.summary FROM fatura.links l
     JOIN fatura.invoices i ON i.customer_id = l.customer_id AND i.id = l.invoice_id
     WHERE ${db.isAmong('l.ix_id', '$1')} ORDER BY l.ix_id, i.customer_id, i.id`,
    rows.map(({ id }) => id),
  )
  const taxIds = new Map(clients.map(({ id, tax_id }) => [id, tax_id]))
  const invoices = Map.groupBy(tied, ({ id }) => id)
  return rows.map(({ id, client_id, body, misses }) => ({
    document: JSON.parse(body),
    isGone: misses >= missesToBelieve,
    client_tax_id: taxIds.get(client_id ?? -1) ?? null,
    invoices: (invoices.get(id) ?? []).map(({ summary }) => JSON.parse(summary)),
  }))
}
