/**
 * The seven tools with their input, their output and their reads. The properties of an input are the API's own
 * parameters.
 */
import type { Tool as ListedTool } from '@modelcontextprotocol/server'
import type { AccountStatement } from '../../domain/account.ts'
import { agingBuckets, type CustomerBalance } from '../../domain/balance.ts'
import { ApiError } from '../../domain/errors.ts'
import {
  type CustomerSummary,
  documentKinds,
  downloadPath,
  findNoPdf,
  type InvoiceDetail,
  type InvoiceList,
  lineFields,
} from '../../domain/invoice.ts'
import { clampPage, clampPageSize, countPages } from '../../domain/list-query.ts'
import type { ReadStore } from '../../store/store.ts'
import { getInvoiceSchema, getStatementSchema, listInvoicesSchema } from '../openapi/schemas.ts'
import { readTexts, resolveReference } from '../parameters.ts'
import { type Answer, notice, type Rows, showRecord } from './answer.ts'
import {
  amounts,
  counted,
  customerText,
  entryFields,
  expanded,
  fresh,
  integer,
  moreFields,
  openFields,
  optionalInteger,
  optionalText,
  owedFields,
  record,
  rows,
  showExpanded,
  shownFields,
  statementSumFields,
  states,
  sumFields,
  text,
  type,
} from './results.ts'

export interface ReadAnswer {
  /** Parsed JSON, in which an integer beyond 2^53 is a bigint. */
  // biome-ignore lint/suspicious/noExplicitAny: each tool knows the shape of the answer that it reads
  json: any
  synced_at: string | null
}

interface ToolContext {
  /** Reads a route of the API with the rights of the request's token. */
  read(path: string): Promise<ReadAnswer>
  store: Pick<ReadStore, 'readFreshness'>
  explain(invoiceId: string): Promise<object[]>
  publicUrl: string
}

type Arguments = Record<string, string | number | readonly string[]>

export interface Tool {
  name: string
  title: string
  description: string
  /** Properties that are IDs are required. All others may be left out. */
  input: Readonly<Record<string, object>>
  output: object
  /** True for a tool that needs a token for all customers. */
  isForOperators?: true
  run(given: Arguments, context: ToolContext): Promise<Answer>
}

const { customerId: customer_id } = listInvoicesSchema.params.properties
const { invoiceId: invoice_id } = getInvoiceSchema.params.properties
const { page, page_size, expand } = listInvoicesSchema.querystring.properties

function writeQuery(query: Arguments): URLSearchParams {
  return new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
}

export const tools: readonly Tool[] = [
  {
    name: 'invoices_search',
    title: 'Search invoices',
    description: `Lists a customer's invoices, newest first. Unpaid invoices have the status open. ${notice}`,
    input: { customer_id, ...listInvoicesSchema.querystring.properties },
    output: record({
      ...counted,
      invoices: rows({ ...states, ...amounts('total'), ...customerText('display_name') }, expanded),
    }),
    async run({ customer_id, ...query }, { read }) {
      const { json, synced_at } = await read(`/api/v1/client/${customer_id}/invoices?${writeQuery(query)}`)
      const { invoices, ...list } = json as InvoiceList
      const rows = invoices.map(invoice => ({
        ...showRecord(invoice, shownFields),
        ...showExpanded(invoice),
      }))
      return { synced_at, rows: { name: 'invoices', rows, ...list } }
    },
  },
  {
    name: 'invoice_get',
    title: 'Get an invoice',
    description: `Returns an invoice, a page of its line items, and links to its PDFs. The links need the same token. ${notice}`,
    input: { customer_id, invoice_id, expand, page, page_size },
    output: record({
      ...counted,
      invoice: record(
        {
          ...{ ...states, customer_id: text, tax_percent: type('number', 'null') },
          ...{ ...amounts('subtotal', 'discount', 'tax', 'total'), ...customerText('display_name') },
        },
        expanded,
      ),
      ...{ lines_source: text, downloads: record({ ix: optionalText, payments: optionalText }) },
      lines: rows({
        ...{ id: text, quantity: optionalInteger, discount_percent: type('number'), currency: text },
        ...{ ...amounts('subtotal', 'discount', 'unit_amount', 'amount'), ...customerText('description') },
      }),
    }),
    async run({ customer_id, invoice_id, expand = [], ...wanted }, { read, publicUrl }) {
      const path = `/api/v1/client/${customer_id}/invoice/${invoice_id}`
      const { json, synced_at } = await read(`${path}?${writeQuery({ expand })}`)
      const invoice = json as InvoiceDetail
      const { lines_source } = invoice
      const downloads: Record<string, string | null> = {}
      for (const kind of documentKinds) {
        const path = downloadPath(invoice.customer_id, invoice.id, kind)
        downloads[kind] = findNoPdf(kind, invoice) === null ? publicUrl + path : null
      }
      const shown = showRecord(invoice, [...shownFields, ...moreFields])
      const facts = { invoice: { ...shown, ...showExpanded(invoice) }, lines_source, downloads }
      const lines = invoice.lines.map(line => showRecord(line, lineFields))
      return { synced_at, facts, links: downloads, rows: pageOf('lines', lines, wanted) }
    },
  },
  {
    name: 'invoices_summary',
    title: 'Sum up invoices',
    description:
      "Returns the number and sum of a customer's invoices by currency and status, then also by month, newest first. Rows of all months have month null. Use invoices_balance for the amount owed, because partial payments and credit do not change the sums of this tool.",
    input: { customer_id, page, page_size },
    output: record({
      ...counted,
      sums: rows({ currency: text, status: text, month: optionalText, count: integer, ...amounts('total') }),
    }),
    async run({ customer_id, ...wanted }, { read }) {
      const { json, synced_at } = await read(`/api/v1/client/${customer_id}/summary`)
      const { currencies } = json as CustomerSummary
      const sums = currencies.flatMap(({ currency, statuses, months }) => [
        ...statuses.map(sum => ({ currency, month: null, ...sum })),
        ...months.map(sum => ({ currency, ...sum })),
      ])
      // Sums over all months come first. Their `month` is null.
      sums.sort((a, b) => (b.month ?? '9').localeCompare(a.month ?? '9'))
      const rows = sums.map(sum => showRecord(sum, sumFields))
      return { synced_at, rows: pageOf('sums', rows, wanted) }
    },
  },
  {
    name: 'invoices_balance',
    title: 'Get what is owed',
    description:
      "Returns the amounts that a customer has to pay by currency, the overdue part by age, and the open invoices, the oldest due first. Credit in the customer's favour is a separate amount. Do not subtract it.",
    input: { customer_id, page, page_size },
    output: record({
      ...counted,
      ...{ day: text, more: integer },
      currencies: rows({
        ...{ currency: text, count: integer, overdue_count: integer, overdue_since: optionalText },
        ...amounts(
          'remaining',
          'overdue',
          'credit',
          ...agingBuckets.map(name => name.slice(0, -'_cents'.length)),
        ),
        credit_count: integer,
      }),
      invoices: rows({
        ...{ id: text, number: optionalText, document_number: optionalText, issued_at: text, currency: text },
        ...amounts('total', 'paid', 'remaining', 'credit'),
        ...{ due_date: optionalText, days_overdue: integer, can_be_paid: type('boolean') },
      }),
    }),
    async run({ customer_id, ...wanted }, { read }) {
      const { json, synced_at } = await read(`/api/v1/client/${customer_id}/balance`)
      const { day, more, ...balance } = json as CustomerBalance
      const currencies = balance.currencies.map(each => showRecord({ ...each, ...each.aging }, owedFields))
      const invoices = balance.invoices.map(invoice => showRecord(invoice, openFields))
      return { synced_at, facts: { day, more, currencies }, rows: pageOf('invoices', invoices, wanted) }
    },
  },
  {
    name: 'invoices_statement',
    title: 'Get a statement',
    description:
      "Returns the entries of a customer's account in a period, the earliest day first, with the running balance, and the sums of each currency. The field proof names the proof of an entry: a certified document, the payment platform, or only a sum.",
    input: { customer_id, ...getStatementSchema.querystring.properties },
    output: record({
      ...counted,
      ...{ from: optionalText, to: optionalText },
      currencies: rows({ currency: text, ...amounts('opening', 'debit', 'credit', 'closing') }),
      entries: rows({
        ...{ day: text, type: text, proof: text, number: optionalText, invoice_id: text },
        ...{ invoice_number: optionalText, currency: text, ...amounts('debit', 'credit', 'balance') },
      }),
    }),
    async run({ customer_id, ...query }, { read }) {
      const { json, synced_at } = await read(`/api/v1/client/${customer_id}/statement?${writeQuery(query)}`)
      const { from, to, currencies, entries, ...list } = json as AccountStatement
      const sums = currencies.map(sum => showRecord(sum, statementSumFields))
      const rows = entries.map(entry => showRecord(entry, entryFields))
      return { synced_at, facts: { from, to, currencies: sums }, rows: { name: 'entries', rows, ...list } }
    },
  },
  {
    name: 'invoice_explain',
    title: 'Explain an invoice',
    description: `For operators: returns the reason for the state of an invoice's document, its newest journal entries, and the next time at which the invoice and the document are read. ${notice}`,
    input: { invoice_id, page, page_size },
    output: record({
      ...counted,
      explanations: rows({
        ...{ customer_id: text, deleted: type('boolean'), set_aside: optionalText, journal: type('array') },
      }),
    }),
    isForOperators: true,
    async run({ invoice_id, ...wanted }, { explain, store }) {
      const rows = await explain(String(invoice_id))
      if (rows.length === 0) throw new ApiError('invoice_not_found', 'The store has no such invoice.')
      return { synced_at: await readFreshness(store), rows: pageOf('explanations', rows, wanted) }
    },
  },
  {
    name: 'freshness',
    title: 'Check freshness',
    description: 'Returns synced_at, the time up to which the records agree with both systems, and its age.',
    input: {},
    output: record({ ...fresh, age_seconds: optionalInteger }),
    async run(_given, { store }) {
      const synced_at = await readFreshness(store)
      const ageMs = synced_at === null ? null : Math.max(0, Date.now() - Date.parse(synced_at))
      return { synced_at, facts: { age_seconds: ageMs && Math.max(0, Math.round(ageMs / 1000)) } }
    },
  },
]

const hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** Resolves all references, because a tool's schema must stand alone. */
export function describeTool({ name, title, description, input, output }: Tool) {
  const properties = Object.entries(input).map(([key, schema]) => [key, resolveReference(schema)])
  const inputSchema = { type: 'object', required: requiredOf(input), additionalProperties: false }
  return {
    ...{ name, title, description, outputSchema: output, annotations: { title, ...hints } },
    inputSchema: { ...inputSchema, properties: Object.fromEntries(properties) },
  } as ListedTool
}

function requiredOf(input: Tool['input']): string[] {
  return Object.keys(input).filter(name => name.endsWith('_id'))
}

/** Reads a tool's arguments by the rules of the API's parameters. Throws an `ApiError` that shows what is allowed. */
export function readArguments(properties: Tool['input'], given: object): Arguments {
  const refuse = (message: string) => new ApiError('invalid_parameter', message)
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(properties, name))
      throw refuse(
        `This argument does not exist. Allowed arguments: ${Object.keys(properties).join(', ') || 'none'}.`,
      )
    const isList = Array.isArray(value) && (properties[name] as { type?: string }).type === 'array'
    if (typeof value === 'string' || typeof value === 'number' || isList) texts[name] = String(value)
    else if (value !== null) throw refuse(`${name} must be text or a number.`)
  }
  const value = readTexts({ properties }, texts) as Arguments
  for (const name of requiredOf(properties))
    if (value[name] === undefined) throw refuse(`${name} is required.`)
  return value
}

export const instructions = `Reads a customer's invoices. Each has its state at the payment platform (status) and the state of its certified document (ix_status, ix_sync_state). Nothing can be changed. The records agree with both systems up to synced_at. Each amount is given as a decimal with its currency and in the currency's smallest unit (_cents). ${notice}`

function pageOf(name: string, all: readonly object[], wanted: Arguments): Rows {
  const page_size = clampPageSize(wanted.page_size as number | undefined)
  const last = Math.max(1, countPages(all.length, page_size))
  const page = Math.min(clampPage(wanted.page as number | undefined), last)
  const rows = all.slice((page - 1) * page_size, page * page_size)
  return { name, rows, page, page_size, total: all.length }
}

async function readFreshness(store: ToolContext['store']): Promise<string | null> {
  const { synced_at } = await store.readFreshness()
  return synced_at === null ? null : new Date(synced_at).toISOString()
}
