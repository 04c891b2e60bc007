/**
 * Thousands of requests made from the OpenAPI document: none is answered 5xx, every answer is one that the document
 * describes, and no row comes that the naive model does not allow.
 */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { AccountStatement } from '../../src/domain/account.ts'
import type { CustomerBalance } from '../../src/domain/balance.ts'
import { isCalendarDay } from '../../src/domain/calendar.ts'
import { type Expansion, expansions } from '../../src/domain/expanded.ts'
import { type Invoice, invoiceStatuses, isCustomerId, isInvoiceId } from '../../src/domain/invoice.ts'
import type { ListQuery } from '../../src/domain/list-query.ts'
import { taxesOf } from '../../src/domain/taxes.ts'
import { createKeyId } from '../../src/http/access/link-form.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import type { ListedInvoice } from '../../src/sdk/client.ts'
import { createLinkToken, type LinkKey } from '../../src/sdk/link.ts'
import { campaign } from '../support/checks/campaign.ts'
import { findFaults } from '../support/checks/fits-schema.ts'
import { expectedPage, expectedSummary, type Question } from '../support/checks/model.ts'
import {
  type GeneratedRequest,
  generateRequests,
  type Parameter,
} from '../support/clients/generate-requests.ts'
import { engines } from '../support/databases/engines.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Answer, type Service, startService } from '../support/worlds/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document, read as it comes
const document: any = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
const customerRoute = '/api/v1/client/{customerId}'
const oneInvoice = 'in_a0'
const publicUrl = 'https://billing.example.com'
const requests = campaign(700, 12_000)

const records = ['cus_ana', 'cus_rui'].flatMap(customer_id =>
  Array.from({ length: 60 }, (_, i) =>
    makeRecord(
      {
        id: `in_${customer_id.charAt(4)}${i}`,
        customer_id,
        customer_name: customer_id === 'cus_ana' ? 'Ana Lima' : 'Rui Ração',
        issued_at: `2026-03-${String(1 + (i % 28)).padStart(2, '0')}T09:30:00.000Z`,
        status: invoiceStatuses[i % 5] ?? 'paid',
        ...(i % 3 === 0 && { ...withDocument, ix_id: 4_711 + i }),
      },
      i % 2 === 0 ? [makeLine()] : null,
    ),
  ),
)
for (const record of records)
  if (record.invoice.ix_id !== null)
    record.document = {
      ...exampleDocument,
      id: record.invoice.ix_id,
      // The model's search knows the invoice alone.
      ...{ number: null, atcud: null, related: [] },
    }
const invoices = records.map(({ invoice }) => invoice)
const pdf = (text: string) => ({ body: Readable.from([`%PDF- ${text}`]), size: null })
const sources = {
  payments: {
    fetchLines: async () => null,
    openPdf: async (id: string) => pdf(id),
    findPaymentPage: async (id: string) => `https://pay.example/${id}`,
  },
  documents: {
    openPdf: async (id: number) => pdf(String(id)),
    openQr: async (id: number) => ({ ...pdf(String(id)), type: 'image/png' }),
  },
}

/** Of these, downloads take long: a customer is served five a second. */
const weightOf = (route: string) =>
  /download|payments|qr/.test(route) ? 1 : route.endsWith('invoices') ? 50 : 8
const routes = Object.keys(document.paths).map(route => ({
  route,
  parameters: (document.paths[route].get.parameters ?? []) as Parameter[],
  weight: weightOf(route),
}))

/** Headers of any HTTP answer, and those that every answer of this service has. */
const defaultHeaders = new Set([
  ...['date', 'connection', 'keep-alive', 'content-type', 'content-length', 'transfer-encoding'],
  ...['cache-control', 'x-content-type-options', 'content-security-policy', 'referrer-policy'],
  'cross-origin-resource-policy',
])

/** Asserts that the answer is as the document describes this status of the route. */
function assertDescribed({ route, method }: GeneratedRequest, { status, headers, json }: Answer): void {
  const described = document.paths[route].get.responses[status]
  assert.ok(described !== undefined, `status ${status} is not in the document`)
  const named = Object.keys(described.headers ?? {})
  for (const name of Object.keys(headers))
    assert.ok(
      defaultHeaders.has(name) || named.includes(name),
      `header ${name} of ${status} is not in the document`,
    )
  if (status === 304) return
  const [type = ''] = Object.keys(described.content)
  assert.equal(headers['content-type'], type)
  if (method === 'HEAD' || type !== 'application/json') return
  assert.deepEqual(findFaults(described.content[type].schema, json, document.components), [])
}

/** The meaning of a query by the contract, read plainly; `refused` for a 400, `unsure` for very many words. */
function readQuestion(query: string, names = Object.keys(rules)): Question | 'refused' | 'unsure' {
  const given = new Map<string, string>()
  for (const pair of query.split('&')) {
    const [written = '', ...rest] = pair.split('=')
    const name = decode(written) ?? ''
    const value = decode(rest.join('='))
    const [known = ''] = /^[^[]*/.exec(name) ?? []
    if (!names.includes(known)) continue
    if (known !== name || given.has(known) || value === null) return 'refused'
    given.set(known, value)
  }
  const asked = [...given].filter(([, value]) => value !== '')
  if (asked.some(([name, value]) => value.includes('\0') || !everyRule[name]?.(value))) return 'refused'
  const { page, page_size, expand, ...rest } = Object.fromEntries(asked)
  if ((rest.q?.trim().split(/\s+/).length ?? 0) > 10) return 'unsure'
  return {
    ...rest,
    ...(expand !== undefined && { expand }),
    ...(page !== undefined && { page: Number(page) }),
    ...(page_size !== undefined && Number(page_size) >= 1 && { page_size: Number(page_size) }),
  }
}

const isWhole = (text: string) => /^-?\d+$/.test(text)
const rules: Record<string, (text: string) => boolean> = {
  page: isWhole,
  page_size: isWhole,
  status: text => invoiceStatuses.some(status => status === text),
  ix_status: () => true,
  date_from: isCalendarDay,
  date_to: isCalendarDay,
  q: text => [...text.trim()].length <= 200,
  expand: text => text.split(',').every(each => expansions.some(one => one === each)),
} satisfies Record<keyof ListQuery, (text: string) => boolean>
const everyRule: typeof rules = { ...rules, from: isCalendarDay, to: isCalendarDay }

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

interface Asked {
  customer: string
  invoice: string | null
  /** Whether the ids have the form of ids, so that the route is reached. */
  hasIds: boolean
  question: ReturnType<typeof readQuestion>
}

/** The parameters that a route reads, beside those of the feeds. */
function namesOf(route: string): string[] | undefined {
  if (isDetail(route)) return ['expand']
  return route.endsWith('/statement') ? ['from', 'to', 'page', 'page_size'] : undefined
}

const isDetail = (route: string) => route.endsWith('{invoiceId}')

function readAsked({ route, segments, query }: GeneratedRequest): Asked {
  const customer = decode(segments.customerId ?? '') ?? ''
  const invoice = segments.invoiceId === undefined ? null : (decode(segments.invoiceId) ?? '')
  const document = segments.documentId === undefined ? '1' : (decode(segments.documentId) ?? '')
  const isDocument = /^[1-9][0-9]{0,14}$/.test(document)
  const hasIds = isCustomerId(customer) && (invoice === null || isInvoiceId(invoice)) && isDocument
  const question = readQuestion(query, namesOf(route))
  return { customer, invoice, hasIds, question }
}

const findInvoice = ({ customer, invoice }: Asked) =>
  invoices.find(({ id, customer_id }) => id === invoice && customer_id === customer)

/** The statuses that the contract leaves for a request. */
function allowedStatuses(
  { route, segments, query, bearer, headers }: GeneratedRequest,
  asked: Asked,
): number[] {
  const { customer, hasIds, question } = asked
  const isFeed = route.endsWith('/changes')
  if (!route.startsWith(customerRoute) && !isFeed) return [200, 404]
  const written = Object.values(segments)
  if (written.some(segment => decode(segment) === null)) return [400]
  // Of these, the router makes another path or an empty parameter.
  if (written.some(segment => ['', '.', '..'].includes(segment))) return [400, 401, 403, 404]
  if (query.includes('access_token=')) return [400]
  if (['revoked', 'malformed', 'none'].includes(bearer)) return [401]
  const isForAll = bearer === 'all'
  if (!isForAll && isCustomerId(customer) && customer !== 'cus_ana') return [403]
  if (isFeed && !route.startsWith(customerRoute)) return isForAll ? [200, 400, 410] : [403]
  // Of an id of the wrong form, either may be said to who sees one invoice alone.
  if (!hasIds) return bearer === 'one' ? [400, 403] : [400]
  if (bearer === 'one' && asked.invoice !== oneInvoice) return [403]
  if (isFeed) return [200, 400, 410]
  const found = headers['if-none-match'] === '*' ? 304 : 200
  if (route.endsWith('/invoices'))
    return question === 'refused' ? [400] : question === 'unsure' ? [400, found] : [found]
  if (/\/(summary|balance)$/.test(route)) return [found]
  if (route.endsWith('/statement')) return question === 'refused' ? [400] : [found]
  if (isDetail(route) && question === 'refused') return [400]
  if (findInvoice(asked) === undefined) return [404]
  if (route.endsWith('/page')) return [findInvoice(asked)?.status === 'open' ? 200 : 409]
  if (route.endsWith('/qr')) return [findInvoice(asked)?.ix_id ? 200 : 404]
  if (route.endsWith('/document')) return [findInvoice(asked)?.ix_id ? found : 404]
  return route.includes('download') ? [200, 404, 409] : [found]
}

const detailFields = ['id', 'customer_id', 'number', 'total_cents', 'status', 'ix_id', 'issued_at'] as const

/** A 200 holds what the model holds, and nothing else. */
function checkBody({ route }: GeneratedRequest, { text, json }: Answer, asked: Asked): void {
  const { customer, question } = asked
  const invoice = findInvoice(asked)
  if (route.endsWith('/invoices')) {
    if (typeof question === 'object') {
      const { expand = '', ...rest } = question as Question & { expand?: string }
      const wanted = expectedPage(invoices, customer, rest)
      const added = expansions.filter(name => expand.includes(name))
      assert.deepEqual(json, { ...wanted, invoices: wanted.invoices.map(each => expandAs(each, added)) })
    } else for (const row of json.invoices) assert.equal(row.customer_id, customer)
  } else if (route.endsWith('/summary')) assert.equal(text, expectedSummary(invoices, customer))
  else if (route.endsWith('/balance')) checkBalance(json, customer)
  else if (route.endsWith('/statement')) checkStatement(json, customer)
  else if (route === `${customerRoute}/changes`)
    for (const change of json.changes) assert.equal(change.customer_id, customer)
  else if (route.endsWith('/page')) assert.deepEqual(json, { url: `https://pay.example/${invoice?.id}` })
  else if (route.endsWith('/document')) assert.equal(json.id, invoice?.ix_id)
  else if (route.endsWith('/qr')) assert.equal(text, `%PDF- ${invoice?.ix_id}`)
  else if (route.includes('download'))
    assert.equal(text, `%PDF- ${route.includes('/ix/') ? invoice?.ix_id : invoice?.id}`)
  else if (route.startsWith(customerRoute))
    for (const name of detailFields) assert.equal(json[name], invoice?.[name], name)
}

/** None has a due day or a payment, and each that has a document has the same. */
function expandAs(invoice: Invoice, added: readonly Expansion[]): ListedInvoice {
  const { number, type, atcud, date, due_date, status } = { ...exampleDocument, number: null, atcud: null }
  const pdf = `/api/v1/client/${invoice.customer_id}/invoice/${invoice.id}/ix/download`
  const document = invoice.ix_id === null ? null : { number, type, atcud, date, due_date, status, pdf }
  const isOpen = invoice.status === 'open'
  const payment = {
    due_date: null,
    paid_cents: invoice.status === 'paid' ? invoice.total_cents : 0,
    remaining_cents: isOpen ? invoice.total_cents : 0,
    ...{ overdue: false, payable: isOpen, credited_cents: 0 },
  }
  return {
    ...invoice,
    ...(added.includes('document') && { document }),
    ...(added.includes('payment') && { payment }),
    ...(added.includes('taxes') && { taxes: taxesOf(invoice, null, document && exampleDocument) }),
  }
}

/** Every open invoice of the model is in it, for none of them has a due day or a payment. */
function checkBalance(balance: CustomerBalance, customer: string): void {
  const open = invoices.filter(({ customer_id, status }) => customer_id === customer && status === 'open')
  const total = open.reduce((sum, { total_cents }) => sum + total_cents, 0)
  assert.deepEqual(
    balance.invoices.map(({ id }) => id),
    open.map(({ id }) => id).sort(),
  )
  assert.equal(balance.currencies[0]?.remaining_cents ?? 0, total)
}

/** Each invoice of the model that is no draft is in its sums. */
function checkStatement({ currencies: [sum], total, entries, from, to }: AccountStatement, customer: string) {
  const ids = invoices.filter(each => each.customer_id === customer && each.status !== 'draft')
  for (const { invoice_id } of entries) assert.ok(ids.some(({ id }) => id === invoice_id))
  if (from === null && to === null) assert.ok(total >= ids.length && Number(sum?.closing_cents ?? 0) >= 0)
}

function judge(request: GeneratedRequest, answer: Answer): void {
  const { status, text } = answer
  assert.ok(status < 500, `${status}: ${text}`)
  const asked = readAsked(request)
  const allowed = allowedStatuses(request, asked)
  assert.ok(allowed.includes(status), `${status} instead of ${allowed}: ${text.slice(0, 300)}`)
  // An odd id may make another path, which is no operation of the document.
  const isElsewhere = status === 404 && !asked.hasIds && request.route.startsWith(customerRoute)
  if (!isElsewhere) assertDescribed(request, answer)
  if (status === 200 && request.method === 'GET') checkBody(request, answer, asked)
}

/** Headers that Node's client sends unchanged: the rest is for raw sockets, in other suites. */
const isSendable = (path: string) => /^[!-~]*$/.test(path)

/** The same for every engine. */
const made = fc.sample(generateRequests(routes), { numRuns: requests, seed: 2026 })

for (const engine of engines)
  describe(`generated requests on ${engine.name}`, () => {
    test(`${requests} requests get no 5xx, no answer outside of openapi.json and no wrong row`, async t => {
      const service = await startService(t, engine, {
        records,
        ...sources,
        publicUrl,
        rateLimit: { requests: 1_000_000, seconds: 3_600 },
      })
      const tokens = await makeTokens(service)
      const seen = new Map<number, number>()
      const queue = made.values()
      const work = async () => {
        for (const request of queue) {
          const { route, segments, query, method, headers, bearer } = request
          const path = route.replace(/\{(\w+)\}/g, (_, name) => segments[name] ?? '')
          const url = query === '' ? path : `${path}?${query}`
          if (!isSendable(url)) continue
          const answer = await service.get(url, { method, headers, token: tokens[bearer] })
          seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1)
          try {
            judge(request, answer)
          } catch (error) {
            const { message } = error as Error
            throw new Error(`${method} ${url} ${JSON.stringify(headers)} ${bearer}: ${message}`, {
              cause: error,
            })
          }
        }
      }
      await Promise.all(Array.from({ length: 8 }, work))
      t.diagnostic(`${engine.name}: ${JSON.stringify(Object.fromEntries(seen))}`)
      for (const status of [200, 304, 400, 401, 403, 404])
        assert.ok(
          Number(seen.get(status)) > requests / 200,
          `enough of ${status}: ${JSON.stringify([...seen])}`,
        )
    })
  })

async function makeTokens(service: Service): Promise<Record<GeneratedRequest['bearer'], string | null>> {
  const { kty, crv, x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const key = { kty, crv, kid: createKeyId(), x, d } as LinkKey
  const stored = { kid: key.kid, name: 'test', x, customers: null, created_at: Date.now(), revoked_at: null }
  await service.store.saveKey(stored)
  const link = { key, publicUrl, customer: 'cus_ana', ttlSeconds: 86_400 }
  return {
    link: (await createLinkToken(link)).token,
    one: (await createLinkToken({ ...link, invoice: oneInvoice })).token,
    all: await service.createToken(),
    ana: await service.createToken({ customers: ['cus_ana'] }),
    revoked: await service.createToken({ revoked_at: Date.now() - 1_000 }),
    malformed: 'fat_wrong',
    none: null,
  }
}
