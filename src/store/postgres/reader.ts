import type { StoredEntry } from '../../domain/account.ts'
import { checkVersion } from '../migrations.ts'
import { changeReads, feedStatements } from '../sql/changes.ts'
import {
  type CreditRow,
  firstDay,
  isFiltered,
  lastDay,
  type OpenSumRow,
  type PeriodRow,
  type SumRow,
  toCredits,
  toOpenSum,
  toPeriod,
  toSum,
  toSums,
} from '../sql/counters.ts'
import { parameterList } from '../sql/db.ts'
import { rowFilterNames } from '../sql/filters.ts'
import { type SearchWord, searchedAtOnce } from '../sql/search.ts'
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
import { type FreshnessRow, rememberFreshness } from './freshness.ts'
import { openPipelines } from './pipelined-connections.ts'
import { checkCrowd, openReadPools, type ReadPools, read, twiceIfBroken } from './pool.ts'
import { checkSchema, schema } from './schema.ts'

/** Every request is one round trip: a prepared call of one function. Functions that read invoices take the customer. */
const texts = {
  list: `SELECT fatura.list_invoices(${parameterList(4 + rowFilterNames.length)}) AS page`,
  search: `SELECT fatura.search_invoices(${parameterList(9 + rowFilterNames.length)}) AS page`,
  sums: 'SELECT * FROM fatura.read_sums($1)',
  open: 'SELECT * FROM fatura.read_open($1, $2)',
  account: 'SELECT * FROM fatura.read_account($1, $2, $3, $4, $5)',
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
  const end = async () => {
    for (const pool of Object.values(pools)) await pool.end()
  }
  try {
    const ask = <Row extends object>(sql: string) => read<Row>(pools.others, { text: sql })
    await checkSchema(ask)
    return createReader(pools, await hasCitus(ask), end)
  } catch (error) {
    await end()
    throw error
  }
}

function createReader(pools: ReadPools, isCitus: boolean, close: () => Promise<void>): ReadStore {
  const calls = openCalls(pools)
  const freshness = rememberFreshness(
    async () => (await calls.byKey<FreshnessRow>('freshness')) as FreshnessRow,
  )
  return {
    listInvoices: (query, inTurn = search => search()) => listInvoices(calls, freshness, query, inTurn),
    ...sumReads(calls, freshness),
    async readSnapshot(customerId) {
      const fresh = await freshness()
      const row = await calls.byKey<{ version: number | null }>('snapshot', customerId)
      return { version: row?.version ?? 0, ...fresh }
    },
    readFreshness: freshness,
    async findInvoice(customerId, invoiceId) {
      const { synced_at } = await freshness()
      const row = await calls.byKey<Omit<StoredInvoice, 'synced_at'>>('invoice', customerId, invoiceId)
      return row === undefined ? null : { ...row, synced_at }
    },
    findToken: async id => (await calls.byKey<TokenAccess>('token', id)) ?? null,
    findKey: async kid => (await calls.byKey<KeyAccess>('key', kid)) ?? null,
    coversCustomer: async (id, customerId) =>
      (await calls.byKey<{ covers: boolean }>('covers', id, customerId))?.covers === true,
    ...changeReads(calls.other, isCitus),
    readConnections: async () => calls.connections(),
    ping: async () => checkVersion((await calls.other<{ version: number }>('version'))[0]?.version, schema),
    close,
  }
}

type Calls = ReturnType<typeof openCalls>

function openCalls(pools: ReadPools) {
  const [askByKey, askOthers] = [openPipelines(pools.by_key), openPipelines(pools.others, checkCrowd)]
  return {
    byKey: async <Row extends object>(name: keyof typeof texts, ...values: unknown[]) =>
      (await twiceIfBroken(() => askByKey<Row>({ name, text: texts[name], values })))[0],
    /** Runs a read that may take some milliseconds. */
    other: <Row extends object>(name: keyof typeof texts, ...values: unknown[]) =>
      twiceIfBroken(() => askOthers<Row>({ name, text: texts[name], values })),
    /** Runs a search, which may take seconds. */
    search: <Row extends object>(...values: unknown[]) =>
      read<Row>(pools.searches, { name: 'search', text: texts.search, values }),
    connections() {
      const { totalCount, idleCount, waitingCount } = pools.searches
      const reads = {
        by_key: askByKey.underway(),
        others: askOthers.underway(),
        searches: totalCount - idleCount + waitingCount,
      }
      return (Object.keys(pools) as (keyof ReadPools)[]).map(kind => {
        return { kind, open: pools[kind].totalCount, idle: pools[kind].idleCount, reads: reads[kind] }
      })
    },
  }
}

async function listInvoices(
  calls: Calls,
  freshness: () => Promise<Freshness>,
  ...[query, inTurn]: Required<Parameters<ReadStore['listInvoices']>>
): Promise<InvoicePage> {
  const fresh = await freshness()
  const values = filterValues(query)
  if (query.words === undefined) {
    // The newest page takes the same short time for every customer, so it does not wait behind slower reads.
    const isNewest = query.page === 1 && !isFiltered(query)
    const row = isNewest ? await calls.byKey('list', ...values) : (await calls.other('list', ...values))[0]
    return readPage(row, fresh)
  }
  values.push(...listTexts(query.words))
  const [found] = await calls.other<PageRow>('search', ...values, searchedAtOnce)
  if (found?.page !== null) return readPage(found, fresh)
  return inTurn(async () => readPage((await calls.search<PageRow>(...values, null))[0], fresh))
}

function filterValues(query: InvoiceQuery): unknown[] {
  const { customer_id, page, page_size, expand = [] } = query
  const shown = expand.length === 0 ? null : expand
  return [customer_id, page, page_size, shown, ...rowFilterNames.map(name => query[name])]
}

function sumReads(calls: Calls, freshness: () => Promise<Freshness>) {
  return {
    async readSums(customerId) {
      const fresh = await freshness()
      const [row] = await calls.other<SumsRow>('sums', customerId)
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
      const [row] = await calls.other<OpenRow>('open', customerId, day)
      const found = JSON.parse(row?.invoices ?? '[]') as [string, string, string | null][]
      const invoices = found.map(([summary, payment, document]) => ({ summary, payment, document }))
      return { sums: readOpenSums(row?.sums), invoices, version: row?.version ?? 0, ...fresh }
    },
    async readAccount({ customer_id, from = firstDay, to = lastDay, page, page_size }) {
      const fresh = await freshness()
      const [row] = await calls.other<AccountRow>('account', customer_id, from, to, page, page_size)
      const read = (name: 'opening' | 'period' | 'earlier' | 'entries') => JSON.parse(row?.[name] ?? '[]')
      return {
        opening: toSums(read('opening') as CreditRow[]),
        period: (read('period') as PeriodRow[]).map(toPeriod),
        earlier: toSums(read('earlier') as CreditRow[]),
        entries: read('entries') as StoredEntry[],
        page: row?.page ?? 1,
        version: row?.version ?? 0,
        ...fresh,
      }
    },
  } satisfies Partial<ReadStore>
}

/** Reads a page from its text. The first line has total, version and page number. The summaries follow. */
function readPage(row: Partial<PageRow> | undefined, fresh: Freshness): InvoicePage {
  const text = row?.page as string
  const end = text.indexOf('\n')
  const [total, version, page] = text.slice(0, end).split(' ')
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
type AccountRow = Record<'opening' | 'period' | 'earlier' | 'entries', string | null> &
  Record<'page' | 'version', number | null>
/** Row with the text of a page. The text is null when a search would go through too many invoices. */
type PageRow = { page: string | null }

/**
 * Returns the texts of all words as four lists: first parts, second parts, first beginnings and second beginnings. Null stands for a text
 * that a word does not have.
 */
function listTexts(words: readonly SearchWord[]): (Buffer | null)[][] {
  const list = (index: number, name: keyof SearchWord) =>
    words.map(word => (word[name][index] === undefined ? null : Buffer.from(word[name][index])))
  return [list(0, 'parts'), list(1, 'parts'), list(0, 'beginnings'), list(1, 'beginnings')]
}
