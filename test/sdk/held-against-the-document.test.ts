/** The client and openapi.json, both ways: paths, parameters, fields and error codes. And the client's size. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { listParameters } from '../../src/domain/list-query.ts'
import {
  type AccountStatement,
  type AgingBucket,
  type Change,
  type ChangeList,
  type ConvertedTotal,
  type CurrencyBalance,
  type CustomerBalance,
  type CustomerSummary,
  createClient,
  type DocumentAbout,
  type DocumentBrief,
  type ErrorCode,
  type Expansion,
  type Invoice,
  type InvoiceDetail,
  type InvoiceDocument,
  type InvoiceFilters,
  type InvoiceList,
  type Line,
  type ListedInvoice,
  type OpenInvoice,
  type PaymentBrief,
  type StatementEntry,
  type StatementSum,
  type StatusSum,
} from '../../src/sdk/client.ts'

const root = new URL('../..', import.meta.url).pathname
// biome-ignore lint/suspicious/noExplicitAny: a JSON document, read as it comes
const document: any = JSON.parse(await readFile(`${root}openapi.json`, 'utf8'))

/** The compiler refuses a name that is missing here, and one too many; the test compares the names with the document. */
type Names<T> = Record<keyof T, true>

const summaryFields: Names<Invoice> = {
  id: true,
  number: true,
  display_name: true,
  customer_name: true,
  customer_id: true,
  customer_email: true,
  company_name: true,
  customer_tax_id: true,
  issued_at: true,
  ix_created_at: true,
  subtotal_cents: true,
  discount_cents: true,
  tax_cents: true,
  tax_percent: true,
  total_cents: true,
  currency: true,
  status: true,
  ix_sync_state: true,
  ix_id: true,
  ix_status: true,
}

const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...sharedFields } =
  summaryFields
const detailFields: Names<Omit<InvoiceDetail, Expansion>> = {
  ...sharedFields,
  lines: true,
  lines_source: true,
  downloads: true,
}

const lineFields: Names<Line> = {
  id: true,
  description: true,
  quantity: true,
  subtotal_cents: true,
  discount_cents: true,
  discount_percent: true,
  unit_amount_cents: true,
  amount_cents: true,
  currency: true,
}

const expanded: Names<Required<Pick<ListedInvoice, Expansion>>> = {
  document: true,
  payment: true,
  taxes: true,
}
const documentBrief: Names<DocumentBrief> = {
  number: true,
  type: true,
  atcud: true,
  date: true,
  due_date: true,
  status: true,
  pdf: true,
}
const paymentBrief: Names<PaymentBrief> = {
  due_date: true,
  paid_cents: true,
  remaining_cents: true,
  overdue: true,
  payable: true,
  credited_cents: true,
}

const listFields: Names<InvoiceList> = {
  invoices: true,
  page: true,
  page_size: true,
  total: true,
  total_pages: true,
  source: true,
}

const summary: Names<CustomerSummary> = { currencies: true }
const currency: Names<CustomerSummary['currencies'][number]> = {
  currency: true,
  remaining_cents: true,
  credited_cents: true,
  statuses: true,
  months: true,
}
const statusSum: Names<StatusSum> = { status: true, count: true, total_cents: true }

const balance: Names<CustomerBalance> = { day: true, currencies: true, invoices: true, more: true }
const currencyBalance: Names<CurrencyBalance> = {
  currency: true,
  remaining_cents: true,
  count: true,
  overdue_cents: true,
  overdue_count: true,
  overdue_since: true,
  aging: true,
  credit_cents: true,
  credit_count: true,
}
const aging: Names<Record<AgingBucket, number>> = {
  not_overdue_cents: true,
  overdue_1_30_cents: true,
  overdue_31_60_cents: true,
  overdue_61_90_cents: true,
  overdue_over_90_cents: true,
}
const openInvoice: Names<OpenInvoice> = {
  id: true,
  number: true,
  issued_at: true,
  currency: true,
  total_cents: true,
  document_number: true,
  paid_cents: true,
  remaining_cents: true,
  credit_cents: true,
  due_date: true,
  days_overdue: true,
  can_be_paid: true,
}

const statement: Names<AccountStatement> = {
  from: true,
  to: true,
  currencies: true,
  entries: true,
  page: true,
  page_size: true,
  total: true,
  total_pages: true,
}
const statementSum: Names<StatementSum> = {
  currency: true,
  opening_cents: true,
  debit_cents: true,
  credit_cents: true,
  closing_cents: true,
}
const statementEntry: Names<StatementEntry> = {
  day: true,
  type: true,
  proof: true,
  number: true,
  invoice_id: true,
  invoice_number: true,
  currency: true,
  debit_cents: true,
  credit_cents: true,
  balance_cents: true,
}

const documentFields: Names<InvoiceDocument> = {
  id: true,
  type: true,
  status: true,
  number: true,
  series: true,
  atcud: true,
  date: true,
  due_date: true,
  before_tax_cents: true,
  tax_cents: true,
  gross_cents: true,
  retention_percent: true,
  retention_cents: true,
  total_cents: true,
  currency: true,
  in_invoice_currency: true,
  taxes: true,
  exemption_code: true,
  buyer_name: true,
  buyer_tax_id: true,
  multibanco: true,
  qr_path: true,
  related: true,
}

const relatedFields: Names<DocumentAbout> = {
  id: true,
  type: true,
  number: true,
  date: true,
  gross_cents: true,
  total_cents: true,
  in_invoice_currency: true,
  status: true,
}
const documentTax: Names<NonNullable<InvoiceDocument['taxes']>[number]> = {
  rate_percent: true,
  base_cents: true,
  tax_cents: true,
}

const changeFields: Names<Change> = {
  cursor: true,
  customer_id: true,
  invoice_id: true,
  kind: true,
  version: true,
  at: true,
}

const downloads: Names<InvoiceDetail['downloads']> = { ix: true, payments: true }

const errorCodes: Record<ErrorCode, true> = {
  invalid_request: true,
  invalid_parameter: true,
  missing_token: true,
  invalid_token: true,
  insufficient_scope: true,
  route_not_found: true,
  invoice_not_found: true,
  document_not_found: true,
  method_not_allowed: true,
  request_timeout: true,
  document_not_issued: true,
  not_payable: true,
  cursor_expired: true,
  payload_too_large: true,
  uri_too_long: true,
  rate_limited: true,
  headers_too_large: true,
  internal: true,
  upstream_failed: true,
  unavailable: true,
  overloaded: true,
  document_not_ready: true,
  upstream_timeout: true,
}

test('the client’s types have the fields and error codes of openapi.json', () => {
  const { schemas } = document.components
  for (const [schema, fields] of Object.entries({
    InvoiceSummary: summaryFields,
    InvoiceDetail: detailFields,
    DocumentBrief: documentBrief,
    PaymentBrief: paymentBrief,
    InvoiceList: listFields,
    LineItem: lineFields,
    Downloads: downloads,
    InvoiceDocument: documentFields,
    RelatedDocument: relatedFields,
    DocumentTax: documentTax,
    ConvertedTotal: { currency: true, total_cents: true, rate: true } satisfies Names<ConvertedTotal>,
    Change: changeFields,
    ChangeList: { changes: true, next: true } satisfies Names<ChangeList>,
    CustomerSummary: summary,
    CurrencySummary: currency,
    StatusSum: statusSum,
    CustomerBalance: balance,
    CurrencyBalance: currencyBalance,
    Aging: aging,
    AccountStatement: statement,
    StatementSum: statementSum,
    StatementEntry: statementEntry,
    OpenInvoice: openInvoice,
    MonthSum: { month: true, ...statusSum },
  })) {
    const isExpandable = schema === 'InvoiceSummary' || schema === 'InvoiceDetail'
    const all = isExpandable ? { ...fields, ...expanded } : fields
    assert.deepEqual(Object.keys(schemas[schema].properties).sort(), Object.keys(all).sort(), schema)
    assert.deepEqual(schemas[schema].required.toSorted(), Object.keys(fields).sort(), schema)
  }
  assert.deepEqual(schemas.ErrorCode.enum.toSorted(), Object.keys(errorCodes).sort())
})

test('a field of the client’s types may be null exactly where openapi.json says so', () => {
  const nullable = (schema: string) =>
    Object.entries<{ type?: string | string[] }>(document.components.schemas[schema].properties)
      .filter(([, { type }]) => Array.isArray(type) && type.includes('null'))
      .map(([name]) => name)
      .sort()
  type Nullable<T> = { [K in keyof T as null extends T[K] ? K : never]: true }
  const summary: Nullable<Invoice> = {
    number: true,
    customer_name: true,
    customer_email: true,
    company_name: true,
    customer_tax_id: true,
    ix_created_at: true,
    tax_percent: true,
    ix_id: true,
    ix_status: true,
  }
  const line: Nullable<Line> = { description: true, quantity: true, unit_amount_cents: true }
  const paths: Nullable<InvoiceDetail['downloads']> = { ix: true }
  assert.deepEqual(nullable('InvoiceSummary'), Object.keys(summary).sort())
  assert.deepEqual(nullable('LineItem'), Object.keys(line).sort())
  assert.deepEqual(nullable('Downloads'), Object.keys(paths).sort())
  const open: Nullable<OpenInvoice> = { number: true, document_number: true, due_date: true }
  const owed: Nullable<CurrencyBalance> = { overdue_since: true }
  const brief: Nullable<DocumentBrief> = { number: true, atcud: true, date: true, due_date: true, pdf: true }
  assert.deepEqual(nullable('DocumentBrief'), Object.keys(brief).sort())
  const payment: Nullable<PaymentBrief> = { due_date: true }
  assert.deepEqual(nullable('PaymentBrief'), Object.keys(payment).sort())
  const entry: Nullable<StatementEntry> = { number: true, invoice_number: true }
  const period: Nullable<AccountStatement> = { from: true, to: true }
  assert.deepEqual(nullable('StatementEntry'), Object.keys(entry).sort())
  assert.deepEqual(nullable('AccountStatement'), Object.keys(period).sort())
  assert.deepEqual(nullable('OpenInvoice'), Object.keys(open).sort())
  assert.deepEqual(nullable('CurrencyBalance'), Object.keys(owed).sort())
})

interface Operation {
  tags: string[]
  parameters: { name: string; in: string; schema: { type: string } }[]
}

/** The client's requests, with the document's own words as values: each is found again in the URL. */
async function record(): Promise<Map<string, Set<string>>> {
  const asked = new Map<string, Set<string>>()
  const client = createClient({
    baseUrl: 'http://fatura.example',
    token: 'fat_x',
    retries: 0,
    fetch: async (url, init) => {
      const { pathname, searchParams } = new URL(String(url))
      const path = decodeURIComponent(pathname)
      const sent = asked.get(path) ?? new Set()
      asked.set(path, sent)
      for (const name of searchParams.keys()) sent.add(name)
      for (const name of new Headers(init?.headers).keys()) sent.add(name)
      const headers = { 'content-type': new Headers(init?.headers).get('accept') ?? '', etag: '"1"' }
      return new Response('{"invoices":[],"total":0,"total_pages":0}', { headers })
    },
  })
  const [customer, invoice] = ['{customerId}', '{invoiceId}']
  const filters: Required<InvoiceFilters> = {
    status: 'paid',
    ix_status: 'settled',
    date_from: '2026-01-01',
    date_to: '2026-12-31',
    q: 'ana',
  }
  const expand: Expansion[] = ['document', 'payment']
  for (let time = 0; time < 2; time++) {
    await client.invoices.list(customer, { ...filters, page: 2, page_size: 7, expand })
    await client.invoice.get(customer, invoice, { expand })
    await client.summary(customer)
    await client.balance(customer)
    await client.statement(customer, { from: '2026-01-01', to: '2026-12-31', page: 2, page_size: 7 })
  }
  for await (const _ of client.invoices.all(customer, { ...filters, expand })) assert.fail()
  await client.document.get(customer, invoice)
  await client.document.get(customer, invoice)
  await client.document.qr(customer, invoice)
  await client.paymentPage(customer, invoice)
  for (const whose of [customer, null]) await client.listChanges({ customer: whose, after: '0', limit: 7 })
  const related = '{documentId}' as unknown as number
  for (const kind of ['ix', 'payments', { related }] as const)
    await client.downloadPdf(customer, invoice, kind)
  return asked
}

test('the client asks every operation on invoices with all its parameters, and no other', async () => {
  const asked = await record()
  const operations = Object.entries<{ get: Operation }>(document.paths).filter(([, { get }]) =>
    get.tags.includes('invoices'),
  )
  assert.deepEqual([...asked.keys()].sort(), operations.map(([path]) => path).sort())
  for (const [path, { get }] of operations) {
    const described = get.parameters.filter(parameter => parameter.in !== 'path').map(({ name }) => name)
    const sent = [...(asked.get(path) ?? [])].filter(name => name !== 'accept' && name !== 'authorization')
    assert.deepEqual(sent.sort(), described.sort(), path)
  }
  const list = document.paths['/api/v1/client/{customerId}/invoices'].get as Operation
  const query = list.parameters.filter(parameter => parameter.in === 'query').map(({ name }) => name)
  assert.deepEqual(listParameters.toSorted(), query.sort())
})

test('the bundled client is at most 4 KB compressed and has no dependencies', async () => {
  const { outputFiles } = await build({
    entryPoints: [`${root}src/sdk/client.ts`],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
    logLevel: 'silent',
  })
  const [file] = outputFiles
  assert.ok(file !== undefined)
  assert.doesNotMatch(file.text, /\b(import|require|process|Buffer)\b/)
  const size = gzipSync(file.contents, { level: 9 }).length
  assert.ok(size <= 4096, `${size} bytes`)
})
