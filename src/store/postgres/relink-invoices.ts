/** Documents and names of invoices, written in bulk within a transaction. */
import type { PoolClient } from 'pg'
import { documentColumns } from '../../document-json.ts'
import type { InvoiceKey } from '../../invoice.ts'
import { serializeSummary } from '../../invoice-json.ts'
import type { Relinked } from '../document-store.ts'
import type { Countable } from '../read-model/counting.ts'
import { relink } from '../shared/links.ts'
import type { Counting } from './counts.ts'
import { searchColumns } from './search-columns.ts'
import { createDb } from './shared-db.ts'
import { ofCustomers } from './spread.ts'

export async function relinkInvoices(
  client: PoolClient,
  counting: Counting,
  given: readonly Relinked[],
): Promise<void> {
  if (given.length === 0) return
  const invoices = given.map(({ invoice }) => invoice)
  const documents = given.map(({ document }) => documentColumns(document))
  await counting.lock(invoices.map(({ customer_id }) => customer_id))
  const searches = given.map(({ invoice, document }) => searchColumns(invoice, document))
  const bytes = (text: string | null) => (text === null ? null : Buffer.from(text))
  const stored = await readStored(client, invoices)
  const { rows } = await client.query<{ customer_id: string; id: string }>({
    name: 'relink-invoices',
    text: `
      UPDATE fatura.invoices AS stored SET ix_status = given.ix_status, search_text = given.search_text,
        long_text = given.long_text, search_ids = given.search_ids, summary = given.summary,
        document = given.document, credited_cents = given.credited_cents
      FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[],
          $8::text[], $9::bigint[])
        AS given (customer_id, id, ix_status, search_text, long_text, search_ids, summary, document, credited_cents)
      WHERE stored.customer_id = given.customer_id AND stored.id = given.id
        ${ofCustomers(client, 'stored.customer_id', '$1')}
      RETURNING stored.customer_id, stored.id`,
    values: [
      invoices.map(({ customer_id }) => customer_id),
      invoices.map(({ id }) => id),
      invoices.map(({ ix_status }) => ix_status),
      searches.map(({ search_text }) => bytes(search_text)),
      searches.map(({ long_text }) => bytes(long_text)),
      searches.map(({ search_ids }) => bytes(search_ids)),
      invoices.map(serializeSummary),
      documents.map(({ document }) => document),
      documents.map(({ credited_cents }) => credited_cents),
    ],
  })
  const statuses = new Map(invoices.map(invoice => [keyOf(invoice), invoice.ix_status]))
  for (const row of rows) {
    const before = stored.get(keyOf(row))
    if (before !== undefined)
      counting.note(row, before, { ...before, ix_status: statuses.get(keyOf(row)) ?? null }, true)
  }
  await relink(createDb(client, true), invoices)
}

function keyOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

/** The stored parts of invoices that counters know. */
async function readStored(client: PoolClient, keys: readonly InvoiceKey[]): Promise<Map<string, Countable>> {
  const { rows } = await client.query<InvoiceKey & Countable>({
    name: 'read-countable',
    text: `
      SELECT customer_id, id, issued_at, status, ix_status, currency, total_cents FROM fatura.invoices
      WHERE customer_id = ANY ($1) AND id = ANY ($2)`,
    values: [[...new Set(keys.map(({ customer_id }) => customer_id))], keys.map(({ id }) => id)],
  })
  return new Map(rows.map(row => [keyOf(row), row]))
}
