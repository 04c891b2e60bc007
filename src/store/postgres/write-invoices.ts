/** Rows in bulk: one statement a table and batch, its values as arrays. */
import type { PoolClient } from 'pg'
import { type InvoiceRecord, writeLines, writeSummary } from '../../invoice.ts'
import { searchText } from '../search.ts'

interface Key {
  customer_id: string
  id: string
}

/** Says how many records differed from what was stored. */
export async function saveInvoices(client: PoolClient, records: readonly InvoiceRecord[]): Promise<number> {
  const batch = inKeyOrder(records)
  if (batch.length === 0) return 0
  const known = batch.filter(({ lines }) => lines !== null)
  const unknown = batch.filter(({ lines }) => lines === null)
  const changed = [
    ...(await saveRows(client, batch)),
    ...(await saveLines(client, known)),
    ...(await deleteLines(client, unknown)),
  ]
  await raiseVersions(
    client,
    changed.map(({ customer_id }) => customer_id),
  )
  return new Set(changed.map(({ customer_id, id }) => `${customer_id} ${id}`)).size
}

/** Each key once, the last one given; and always in one order, so that two writers cannot deadlock. */
function inKeyOrder(records: readonly InvoiceRecord[]): InvoiceRecord[] {
  const byKey = new Map(records.map(record => [`${record.invoice.customer_id} ${record.invoice.id}`, record]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record)
}

async function saveRows(client: PoolClient, records: readonly InvoiceRecord[]): Promise<Key[]> {
  const invoices = records.map(({ invoice }) => invoice)
  const { rows } = await client.query<Key>({
    name: 'save-invoices',
    text: `
      INSERT INTO fatura.invoices AS stored (customer_id, id, issued_at, status, ix_status, search, summary)
      SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[])
      ON CONFLICT (customer_id, id) DO UPDATE SET
        issued_at = excluded.issued_at, status = excluded.status, ix_status = excluded.ix_status,
        search = excluded.search, summary = excluded.summary
      WHERE stored.summary <> excluded.summary OR stored.search <> excluded.search
      RETURNING customer_id, id`,
    values: [
      invoices.map(({ customer_id }) => customer_id),
      invoices.map(({ id }) => id),
      invoices.map(({ issued_at }) => Date.parse(issued_at)),
      invoices.map(({ status }) => status),
      invoices.map(({ ix_status }) => ix_status),
      invoices.map(searchText),
      invoices.map(writeSummary),
    ],
  })
  return rows
}

async function saveLines(client: PoolClient, records: readonly InvoiceRecord[]): Promise<Key[]> {
  if (records.length === 0) return []
  const { rows } = await client.query<Key>({
    name: 'save-lines',
    text: `
      INSERT INTO fatura.invoice_lines AS stored (customer_id, invoice_id, lines)
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
      ON CONFLICT (customer_id, invoice_id) DO UPDATE SET lines = excluded.lines
      WHERE stored.lines <> excluded.lines
      RETURNING customer_id, invoice_id AS id`,
    values: [
      records.map(({ invoice }) => invoice.customer_id),
      records.map(({ invoice }) => invoice.id),
      records.map(({ lines }) => writeLines(lines ?? [])),
    ],
  })
  return rows
}

async function deleteLines(client: PoolClient, records: readonly InvoiceRecord[]): Promise<Key[]> {
  if (records.length === 0) return []
  const { rows } = await client.query<Key>({
    name: 'delete-lines',
    text: `
      DELETE FROM fatura.invoice_lines AS stored
      USING unnest($1::text[], $2::text[]) AS gone (customer_id, id)
      WHERE stored.customer_id = gone.customer_id AND stored.invoice_id = gone.id
      RETURNING stored.customer_id, stored.invoice_id AS id`,
    values: [records.map(({ invoice }) => invoice.customer_id), records.map(({ invoice }) => invoice.id)],
  })
  return rows
}

/** The clock keeps a version unique even across a store restored from a backup; the sum keeps it rising. */
async function raiseVersions(client: PoolClient, customerIds: readonly string[]): Promise<void> {
  if (customerIds.length === 0) return
  await client.query({
    name: 'raise-versions',
    text: `
      INSERT INTO fatura.customers AS stored (customer_id, version)
      SELECT customer_id, $2 FROM unnest($1::text[]) AS changed (customer_id) ORDER BY customer_id
      ON CONFLICT (customer_id) DO UPDATE SET version = greatest(stored.version + 1, excluded.version)`,
    values: [[...new Set(customerIds)], Date.now()],
  })
}

/** Says whether there was such an invoice. */
export async function deleteInvoice(
  client: PoolClient,
  customerId: string,
  invoiceId: string,
): Promise<boolean> {
  const key = [customerId, invoiceId]
  const { rowCount } = await client.query(
    'DELETE FROM fatura.invoices WHERE customer_id = $1 AND id = $2',
    key,
  )
  await client.query('DELETE FROM fatura.invoice_lines WHERE customer_id = $1 AND invoice_id = $2', key)
  if (rowCount !== 0) await raiseVersions(client, [customerId])
  return rowCount !== 0
}
