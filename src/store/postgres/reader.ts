import type { InvoicePage, ReadStore, Snapshot, StoredInvoice, StoredToken } from '../store.ts'
import { openReadPool, read } from './pool.ts'
import { checkSchema } from './schema-version.ts'

/** Every request is one round trip: a prepared call of one function, which takes the customer. */
const calls = {
  list: 'SELECT * FROM fatura.list_invoices($1, $2, $3, $4, $5, $6, $7)',
  search: 'SELECT * FROM fatura.search_invoices($1, $2, $3, $4, $5, $6, $7, $8, $9)',
  snapshot: 'SELECT * FROM fatura.read_snapshot($1)',
  invoice: 'SELECT * FROM fatura.find_invoice($1, $2)',
  token: 'SELECT * FROM fatura.find_token($1)',
  version: 'SELECT fatura.schema_version() AS version',
} as const

export async function openPostgresReader(url: string, sharedBy = 1): Promise<ReadStore> {
  const pool = openReadPool(url, sharedBy)
  const call = <Row extends object>(name: keyof typeof calls, ...values: unknown[]) =>
    read<Row>(pool, { name, text: calls[name], values })

  try {
    await checkSchema(() => call('version'))
  } catch (error) {
    await pool.end()
    throw error
  }

  return {
    async listInvoices({
      customer_id,
      page,
      page_size,
      status,
      ix_status,
      issued_from,
      issued_before,
      words,
    }) {
      const filters = [customer_id, page, page_size, status, ix_status, issued_from, issued_before]
      const [row] = await (words === undefined
        ? call<PageRow>('list', ...filters)
        : call<PageRow>(
            'search',
            ...filters,
            words.map(word => word[0]),
            words.map(word => word[1]),
          ))
      const { summaries, version, ...rest } = row as PageRow
      return { ...rest, summaries: Buffer.from(summaries ?? ''), version: version ?? 0 }
    },
    async readSnapshot(customerId) {
      const [row] = await call<SnapshotRow>('snapshot', customerId)
      return { version: row?.version ?? 0, synced_at: row?.synced_at ?? null }
    },
    async findInvoice(customerId, invoiceId) {
      const [row] = await call<StoredInvoice>('invoice', customerId, invoiceId)
      return row ?? null
    },
    async findToken(id) {
      const [row] = await call<StoredToken>('token', id)
      return row ?? null
    },
    async ping() {
      await call('version')
    },
    async close() {
      await pool.end()
    },
  }
}

type SnapshotRow = Omit<Snapshot, 'version'> & { version: number | null }
type PageRow = Omit<InvoicePage, 'summaries' | 'version'> & {
  summaries: string | null
  version: number | null
}
