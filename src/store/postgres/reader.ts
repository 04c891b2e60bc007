import { checkVersion } from '../migrations.ts'
import {
  type CreditRow,
  isForHead,
  type OpenSumRow,
  type SumRow,
  toCredits,
  toOpenSum,
  toSum,
} from '../read-model/counting.ts'
import { rowFilterNames } from '../read-model/filters.ts'
import type { SearchWord } from '../read-model/search.ts'
import { changeReads, feedStatements } from '../shared/changes.ts'
import { places } from '../shared/db.ts'
import type {
  Freshness,
  InvoicePage,
  InvoiceQuery,
  KeyAccess,
  ReadStore,
  StoredInvoice,
  TokenAccess,
} from '../store.ts'
import { hasCitus } from './distribute.ts'
import { rememberFreshness } from './freshness.ts'
import { openPipelines } from './pipelined-connections.ts'
import { checkCrowd, openReadPools, read, twiceIfBroken } from './pool.ts'
import { checkSchema, schema } from './schema-version.ts'

function filterValues(query: InvoiceQuery): unknown[] {
  return [query.customer_id, query.page, query.page_size, ...rowFilterNames.map(name => query[name])]
}

/** Every request is one round trip: a prepared call of one function, which takes the customer. */
const calls = {
  first: 'SELECT fatura.first_page($1) AS page',
  list: `SELECT fatura.list_invoices(${places(3 + rowFilterNames.length)}) AS page`,
  search: `SELECT fatura.search_invoices(${places(7 + rowFilterNames.length)}) AS page`,
  sums: 'SELECT * FROM fatura.read_sums($1)',
  open: 'SELECT * FROM fatura.read_open($1, $2)',
  snapshot: 'SELECT fatura.read_version($1) AS version',
  freshness: 'SELECT * FROM fatura.read_freshness()',
  invoice: 'SELECT * FROM fatura.find_invoice($1, $2)',
  token: 'SELECT * FROM fatura.read_token($1)',
  key: 'SELECT * FROM fatura.read_key($1)',
  covers: 'SELECT fatura.covers_customer($1, $2) AS covers',
  version: 'SELECT fatura.schema_version() AS version',
  ...feedStatements.postgres,
} as const

export async function openPostgresReader(url: string): Promise<ReadStore> {
  const pools = openReadPools(url)
  const [askByKey, askOthers] = [openPipelines(pools.by_key), openPipelines(pools.others, checkCrowd)]
  /** Reads a row by its key. */
  const ask = async <Row extends object>(name: keyof typeof calls, ...values: string[]) =>
    (await twiceIfBroken(() => askByKey<Row>({ name, text: calls[name], values })))[0]
  /** Reads what may take some milliseconds. */
  const call = <Row extends object>(name: keyof typeof calls, ...values: unknown[]) =>
    twiceIfBroken(() => askOthers<Row>({ name, text: calls[name], values }))
  /** Reads what may take seconds. */
  const search = <Row extends object>(...values: unknown[]) =>
    read<Row>(pools.searches, { name: 'search', text: calls.search, values })
  const freshness = rememberFreshness(async () => (await ask<Freshness>('freshness')) as Freshness)
  const end = async () => {
    for (const pool of Object.values(pools)) await pool.end()
  }

  let isCitus: boolean
  try {
    const askSchema = <Row extends object>(sql: string) => read<Row>(pools.others, { text: sql })
    await checkSchema(askSchema)
    isCitus = await hasCitus(askSchema)
  } catch (error) {
    await end()
    throw error
  }

  return {
    async listInvoices(query) {
      const { customer_id, words } = query
      const fresh = await freshness()
      if (isForHead(query)) return readPage(await ask('first', customer_id), fresh)
      const [row] = await (words === undefined
        ? call<PageRow>('list', ...filterValues(query))
        : search<PageRow>(...filterValues(query), ...listTexts(words)))
      return readPage(row, fresh)
    },
    async readSums(customerId) {
      const fresh = await freshness()
      const [row] = await call<SumsRow>('sums', customerId)
      return {
        sums: (JSON.parse(row?.sums ?? '[]') as SumRow[]).map(toSum),
        credited: toCredits(JSON.parse(row?.credited ?? '[]') as CreditRow[]),
        open: readOpenSums(row?.open_sums),
        version: row?.version ?? 0,
        ...fresh,
      }
    },
    async readOpen(customerId, day) {
      const fresh = await freshness()
      const [row] = await call<OpenRow>('open', customerId, day)
      const found = JSON.parse(row?.invoices ?? '[]') as [string, string, string | null][]
      const invoices = found.map(([summary, payment, document]) => ({ summary, payment, document }))
      return { sums: readOpenSums(row?.sums), invoices, version: row?.version ?? 0, ...fresh }
    },
    async readSnapshot(customerId) {
      const fresh = await freshness()
      const row = await ask<{ version: number | null }>('snapshot', customerId)
      return { version: row?.version ?? 0, ...fresh }
    },
    readFreshness: freshness,
    async findInvoice(customerId, invoiceId) {
      const { synced_at } = await freshness()
      const row = await ask<Omit<StoredInvoice, 'synced_at'>>('invoice', customerId, invoiceId)
      return row === undefined ? null : { ...row, synced_at }
    },
    findToken: async id => (await ask<TokenAccess>('token', id)) ?? null,
    findKey: async kid => (await ask<KeyAccess>('key', kid)) ?? null,
    coversCustomer: async (id, customerId) =>
      (await ask<{ covers: boolean }>('covers', id, customerId))?.covers === true,
    ...changeReads(call, isCitus),
    async readConnections() {
      const { totalCount, idleCount, waitingCount } = pools.searches
      const reads: Record<string, number> = {
        by_key: askByKey.underway(),
        others: askOthers.underway(),
        searches: totalCount - idleCount + waitingCount,
      }
      return Object.entries(pools).map(([kind, pool]) => {
        return { kind, open: pool.totalCount, idle: pool.idleCount, reads: reads[kind] ?? 0 }
      })
    },
    ping: async () => checkVersion((await call<{ version: number }>('version'))[0]?.version, schema),
    close: end,
  }
}

/** A line of total, version and number of the page, then the summaries. */
function readPage(row: PageRow | undefined, fresh: Freshness): InvoicePage {
  const { page: text } = row as PageRow
  const end = text.indexOf('\n')
  const [total, version, page = 1] = text.slice(0, end).split(' ')
  return {
    total: Number(total),
    page: Number(page),
    summaries: text.slice(end + 1),
    version: Number(version),
    ...fresh,
  }
}

function readOpenSums(text: string | null | undefined) {
  return (JSON.parse(text ?? '[]') as OpenSumRow[]).map(toOpenSum)
}

type SumsRow = {
  sums: string | null
  credited: string | null
  open_sums: string | null
  version: number | null
}
type OpenRow = { sums: string | null; invoices: string | null; version: number | null }
type PageRow = { page: string }

/** The texts that each word is found by: two in the text, and two in the ids; null where it has fewer. */
function listTexts(words: readonly SearchWord[]): (Buffer | null)[][] {
  const list = (place: number, name: keyof SearchWord) =>
    words.map(word => (word[name][place] === undefined ? null : Buffer.from(word[name][place])))
  return [list(0, 'parts'), list(1, 'parts'), list(0, 'beginnings'), list(1, 'beginnings')]
}
