/** The five tools, and the reads that each is made of. Their schemas are in tool-schemas.ts. */
import { ApiError } from '../errors.ts'
import {
  type CustomerSummary,
  clampPage,
  clampPageSize,
  countPages,
  documentKinds,
  downloadPath,
  findNoPdf,
  type InvoiceDetail,
  type InvoiceList,
  lineFields,
} from '../invoice.ts'
import type { ReadStore } from '../store/store.ts'
import { type Answer, notice, type Rows, showRecord } from './answer.ts'
import type { ReadAnswer } from './read-api.ts'
import type { Arguments } from './read-arguments.ts'
import { schemas, type ToolName, type ToolSchemas } from './tool-schemas.ts'

interface ToolContext {
  /** Reads a route of the API, as the bearer of the token. */
  read(path: string): Promise<ReadAnswer>
  store: Pick<ReadStore, 'readFreshness'>
  explain(invoiceId: string): Promise<object[]>
  publicUrl: string
}

const documentFields = 'ix_sync_state ix_id ix_status'
const shownFields = `id number issued_at status total_cents currency ${documentFields} display_name`.split(
  ' ',
)
const moreFields = 'customer_id subtotal_cents discount_cents tax_cents tax_percent'.split(' ')
const sumFields = 'currency status month count total_cents'.split(' ')

type Run = (given: Arguments, context: ToolContext) => Promise<Answer>

export interface Tool extends ToolSchemas {
  name: string
  run: Run
}

const runs: Record<ToolName, Run> = {
  async invoices_search({ customer_id, ...query }, { read }) {
    const texts = new URLSearchParams(query as Record<string, string>)
    const { json, synced_at } = await read(`/api/v1/client/${customer_id}/invoices?${texts}`)
    const { invoices, ...list } = json as InvoiceList
    const rows = invoices.map(invoice => showRecord(invoice, shownFields))
    return { synced_at, rows: { name: 'invoices', rows, ...list } }
  },

  async invoice_get({ customer_id, invoice_id, ...wanted }, { read, publicUrl }) {
    const { json, synced_at } = await read(`/api/v1/client/${customer_id}/invoice/${invoice_id}`)
    const invoice = json as InvoiceDetail
    const { lines_source } = invoice
    const downloads: Record<string, string | null> = {}
    for (const kind of documentKinds) {
      const path = downloadPath(invoice.customer_id, invoice.id, kind)
      downloads[kind] = findNoPdf(kind, invoice) === null ? publicUrl + path : null
    }
    const facts = { invoice: showRecord(invoice, [...shownFields, ...moreFields]), lines_source, downloads }
    const lines = invoice.lines.map(line => showRecord(line, lineFields))
    return { synced_at, facts, links: downloads, rows: pageOf('lines', lines, wanted) }
  },

  async invoices_summary({ customer_id, ...wanted }, { read }) {
    const { json, synced_at } = await read(`/api/v1/client/${customer_id}/summary`)
    const { currencies } = json as CustomerSummary
    const sums = currencies.flatMap(({ currency, statuses, months }) => [
      ...statuses.map(sum => ({ currency, month: null, ...sum })),
      ...months.map(sum => ({ currency, ...sum })),
    ])
    // Those of all months first.
    sums.sort((a, b) => (b.month ?? '9').localeCompare(a.month ?? '9'))
    const rows = sums.map(sum => showRecord(sum, sumFields))
    return { synced_at, rows: pageOf('sums', rows, wanted) }
  },

  async invoice_explain({ invoice_id, ...wanted }, { explain, store }) {
    const rows = await explain(String(invoice_id))
    if (rows.length === 0) throw new ApiError('invoice_not_found', 'The store has no such invoice.')
    return { synced_at: await readFreshness(store), rows: pageOf('explanations', rows, wanted) }
  },

  async freshness(_given, { store }) {
    const synced_at = await readFreshness(store)
    const ageMs = synced_at === null ? null : Date.now() - Date.parse(synced_at)
    return { synced_at, facts: { age_seconds: ageMs && Math.max(0, Math.round(ageMs / 1000)) } }
  },
}

export const tools = Object.entries(runs).map(
  ([name, run]): Tool => ({ name, run, ...schemas[name as ToolName] }),
)

export const instructions = `Reads a customer's invoices: the state of each at the payment platform (status) and of its certified document (ix_status, ix_sync_state). Nothing can be changed. The records follow both systems up to synced_at. Amounts are decimals with their currency, beside the smallest unit (_cents). ${notice}`

function pageOf(name: string, all: readonly object[], wanted: Arguments): Rows {
  const page_size = clampPageSize(wanted.page_size as number | undefined)
  const last = Math.max(1, countPages(all.length, page_size))
  const page = Math.min(clampPage(wanted.page as number | undefined), last)
  const rows = all.slice((page - 1) * page_size, page * page_size)
  return { name, rows, page, page_size, total: all.length }
}

async function readFreshness(store: ToolContext['store']): Promise<string | null> {
  const syncedAt = await store.readFreshness()
  return syncedAt === null ? null : new Date(syncedAt).toISOString()
}
