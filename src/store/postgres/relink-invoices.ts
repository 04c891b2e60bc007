/** Documents and names of invoices, written in bulk within a transaction. */
import type { PoolClient } from 'pg'
import type { Invoice } from '../../invoice.ts'
import { serializeSummary } from '../../invoice-json.ts'
import { relink } from '../shared/links.ts'
import type { Counting } from './counts.ts'
import { searchColumns } from './search-columns.ts'
import { createDb } from './shared-db.ts'
import { ofCustomers } from './spread.ts'

export async function relinkInvoices(
  client: PoolClient,
  counting: Counting,
  invoices: readonly Invoice[],
): Promise<void> {
  if (invoices.length === 0) return
  await counting.lock(invoices.map(({ customer_id }) => customer_id))
  const searches = invoices.map(searchColumns)
  const bytes = (text: string | null) => (text === null ? null : Buffer.from(text))
  const { rows } = await client.query<{ customer_id: string; issued_at: number }>({
    name: 'relink-invoices',
    text: `
      UPDATE fatura.invoices AS stored SET ix_status = given.ix_status, search_text = given.search_text,
        long_text = given.long_text, search_ids = given.search_ids, summary = given.summary
      FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[])
        AS given (customer_id, id, ix_status, search_text, long_text, search_ids, summary)
      WHERE stored.customer_id = given.customer_id AND stored.id = given.id
        ${ofCustomers(client, 'stored.customer_id', '$1')}
      RETURNING stored.customer_id, stored.issued_at`,
    values: [
      invoices.map(({ customer_id }) => customer_id),
      invoices.map(({ id }) => id),
      invoices.map(({ ix_status }) => ix_status),
      searches.map(({ search_text }) => bytes(search_text)),
      searches.map(({ long_text }) => bytes(long_text)),
      searches.map(({ search_ids }) => bytes(search_ids)),
      invoices.map(serializeSummary),
    ],
  })
  for (const { customer_id, issued_at } of rows) counting.note(customer_id, issued_at)
  await relink(createDb(client, true), invoices)
}
