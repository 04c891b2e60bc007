import { isForHead } from '../counting.ts'
import type { InvoicePage, ReadStore, StoredToken } from '../store.ts'
import { openReadPool, read, twiceIfBroken } from './pool.ts'
import { checkSchema } from './schema-version.ts'
import { callForTexts, type Texts } from './text-call.ts'

/** Every request is one round trip: a prepared call of one function, which takes the customer. */
const calls = {
  first: 'SELECT fatura.first_page($1)',
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
  /** The one row that reading by a key gives; nothing where there is none. */
  const ask = async (name: keyof typeof calls, ...values: string[]): Promise<Texts> => {
    const [row] = await twiceIfBroken(() => callForTexts(pool, name, calls[name], values))
    return row ?? []
  }

  try {
    await checkSchema(() => call('version'))
  } catch (error) {
    await pool.end()
    throw error
  }

  return {
    async listInvoices(query) {
      const { customer_id, page, page_size, words } = query
      if (isForHead(query)) {
        const [text] = await ask('first', customer_id)
        return readFirstPage(text as string)
      }
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
      const { summaries, version, ...rest } = row as PageRow
      return { ...rest, summaries: Buffer.from(summaries ?? ''), version: version ?? 0 }
    },
    async readSnapshot(customerId) {
      const [version, synced_at] = await ask('snapshot', customerId)
      return { version: Number(version ?? 0), synced_at: readMoment(synced_at) }
    },
    async findInvoice(customerId, invoiceId) {
      const [summary, lines, synced_at] = await ask('invoice', customerId, invoiceId)
      if (summary == null) return null
      return { summary, lines: lines ?? null, synced_at: readMoment(synced_at) }
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

function readFirstPage(text: string): InvoicePage {
  const end = text.indexOf('\n')
  const [total, version, synced_at] = text.slice(0, end).split(' ')
  return {
    total: Number(total),
    page: 1,
    summaries: Buffer.from(text.slice(end + 1)),
    version: Number(version),
    synced_at: synced_at === '' ? null : Number(synced_at),
  }
}

/** Null, and nothing at all, stay what they are: not known. */
function readMoment(text: string | null | undefined): number | null {
  return text == null ? null : Number(text)
}

type PageRow = Omit<InvoicePage, 'summaries' | 'version'> & {
  summaries: string | null
  version: number | null
}
