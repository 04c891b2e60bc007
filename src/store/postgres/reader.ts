import { headSize } from '../counting.ts'
import type { InvoicePage, InvoiceQuery, ReadStore, Snapshot, StoredInvoice, StoredToken } from '../store.ts'
import { openReadPool, read } from './pool.ts'
import { checkSchema } from './schema-version.ts'

/** Every request is one round trip: a prepared call of one function, which takes the customer. */
const calls = {
  first: 'SELECT * FROM fatura.first_page($1)',
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
    async listInvoices(query) {
      const { customer_id, page, page_size, words } = query
      if (isDefault(query)) return readPage((await call<PageRow>('first', customer_id))[0], 1)
      const { status, ix_status, issued_from, issued_before } = query
      const filters = [customer_id, page, page_size, status, ix_status, issued_from, issued_before]
      const [row] = await (words === undefined
        ? call<PageRow>('list', ...filters)
        : call<PageRow>(
            'search',
            ...filters,
            words.map(word => word[0]),
            words.map(word => word[1]),
          ))
      return readPage(row, row?.page ?? 1)
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

/** Page 1 as it is kept: of all invoices, and of the size that is meant when none is given. */
function isDefault(query: InvoiceQuery): boolean {
  return (
    query.page === 1 &&
    query.page_size === headSize &&
    query.words === undefined &&
    query.status === undefined &&
    query.ix_status === undefined &&
    query.issued_from === undefined &&
    query.issued_before === undefined
  )
}

function readPage(row: PageRow | undefined, page: number): InvoicePage {
  return {
    total: row?.total ?? 0,
    page,
    summaries: Buffer.from(row?.summaries ?? ''),
    version: row?.version ?? 0,
    synced_at: row?.synced_at ?? null,
  }
}

type SnapshotRow = Omit<Snapshot, 'version'> & { version: number | null }
type PageRow = { [Key in keyof InvoicePage]?: InvoicePage[Key] | null }
