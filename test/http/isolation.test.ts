/** No token, path, method or header gets at another customer's data. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Invoice, qrPath } from '../../src/domain/invoice.ts'
import { createToken } from '../../src/http/access/token.ts'
import { exampleDocument } from '../../src/http/openapi/examples.ts'
import type { Pdf } from '../../src/sources/source.ts'
import { campaign } from '../support/checks/campaign.ts'
import { postMcp } from '../support/clients/mcp.ts'
import { sendRaw } from '../support/clients/raw-client.ts'
import { engines } from '../support/databases/engines.ts'
import {
  makeLinkSigner,
  makeSigningKey,
  type Provider,
  publicUrl,
  startProvider,
} from '../support/worlds/identity.ts'
import { makeLine, makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Answer, type Service, startService } from '../support/worlds/service.ts'

const customers = ['cus_ana', 'cus_bob', 'cus_carla'] as const

/** Everything a customer's records hold bears the customer's mark, so that a leak can be told by it. */
const records = customers.flatMap((customer_id, index) =>
  [1, 2].map(n => ({
    ...makeRecord(
      {
        ...withDocument,
        ix_id: index * 10 + n,
        id: `in_${customer_id}_${n}`,
        customer_id,
        number: `MARK-${customer_id}`,
        display_name: `MARK-${customer_id}`,
        customer_name: `MARK-${customer_id}`,
        // Their sum is in no other customer's summary.
        total_cents: 7_000 + index,
        status: 'open',
        customer_email: `MARK-${customer_id}@x.example`,
      },
      [makeLine({ description: `MARK-${customer_id}` })],
    ),
    document: {
      ...exampleDocument,
      id: index * 10 + n,
      atcud: `MARK-${customer_id}`,
      qr_path: qrPath(customer_id, `in_${customer_id}_${n}`),
    },
  })),
)
const ownerOf = (matches: (invoice: Invoice) => boolean) =>
  records.find(({ invoice }) => matches(invoice))?.invoice.customer_id
const markedPdf = (matches: (invoice: Invoice) => boolean): Pdf => ({
  body: Readable.from([`%PDF- MARK-${ownerOf(matches)}`]),
  size: null,
})
const sources = {
  payments: {
    fetchLines: async () => null,
    openPdf: async (id: string) => markedPdf(invoice => invoice.id === id),
    findPaymentPage: async (id: string) =>
      `https://pay.example/MARK-${ownerOf(invoice => invoice.id === id)}`,
  },
  documents: {
    openPdf: async (id: number) => markedPdf(invoice => invoice.ix_id === id),
    openQr: async (id: number) => ({ ...markedPdf(invoice => invoice.ix_id === id), type: 'image/png' }),
  },
}

const routes = [
  (c: string) => `/api/v1/client/${c}/invoices`,
  (c: string, i: string) => `/api/v1/client/${c}/invoices?q=${encodeURIComponent(i)}`,
  (c: string, i: string) =>
    `/api/v1/client/${c}/invoices?customer_id=cus_bob&customerId=cus_bob&q=MARK&id=${i}`,
  (c: string) => `/api/v1/client/${c}/summary`,
  (c: string) => `/api/v1/client/${c}/balance`,
  (c: string, i: string) => `/api/v1/client/${c}/invoice/${i}`,
  (c: string, i: string) => `/api/v1/client/${c}/invoice/${i}/document`,
  (c: string, i: string) => `/api/v1/client/${c}/invoice/${i}/document/qr`,
  (c: string, i: string) => `/api/v1/client/${c}/invoice/${i}/ix/download`,
  (c: string, i: string) => `/api/v1/client/${c}/invoice/${i}/payments/download`,
  (c: string, i: string) => `/api/v1/client/${c}/invoice/${i}/payments/page`,
] as const
const pathCustomers = [...customers, 'cus_nobody', 'cus_an', 'cus_ana%2Fcus_bob', "cus_ana'--"]
const invoiceIds = ['in_cus_ana_1', 'in_cus_bob_1', 'in_cus_carla_2', 'in_none', '*', "in_x'--"]
const methods = ['GET', 'HEAD', 'POST', 'OPTIONS']
const conditions: Record<string, string>[] = [
  {},
  { 'if-none-match': '*' },
  { 'if-modified-since': 'Sun, 15 Nov 2026 00:00:00 GMT' },
  { range: 'bytes=0-10' },
  {
    'x-http-method-override': 'GET',
    'x-original-url': '/api/v1/client/cus_bob/invoices',
    'x-forwarded-for': '127.0.0.1',
  },
]

/** One of so many combinations is asked, from all over the matrix: no number of values is a multiple of it. */
const stride = campaign(31, 1)
const mcpStride = campaign(11, 1)

interface Question {
  token: string | null
  /** The customers that the token may read. */
  scope: readonly string[]
  /** The only invoice that it may read, when it is bound to one. */
  invoice?: string
  customer: string
  path: string
  method: string
  headers: Record<string, string>
}

/** The last of those that are sent at once ends the connection. */
function writeRequest(
  { method, path, token, headers }: Question,
  index: number,
  { length }: readonly unknown[],
): string {
  const lines = Object.entries({
    host: 'localhost',
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...headers,
    ...(index === length - 1 && { connection: 'close' }),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

const held = (answer: Answer) =>
  customers.filter(
    (customer, index) =>
      answer.text.includes(`MARK-${customer}`) || answer.text.includes(`"total_cents":${14_000 + 2 * index}`),
  )
const comparable = ({ status, headers, text }: Answer) => {
  const { date, 'request-id': id, ratelimit, ...rest } = headers
  return { status, rest, text: text.replace(String(id), '') }
}

/** Tokens of every kind, and the customers that each may read. */
async function createTokens(
  service: Service,
  provider: Provider,
): Promise<Pick<Question, 'token' | 'scope' | 'invoice'>[]> {
  const [signer, narrow, revoked] = [makeLinkSigner(), makeLinkSigner(['cus_ana']), makeLinkSigner()]
  revoked.key.revoked_at = 1
  for (const { key } of [signer, narrow, revoked]) await service.store.saveKey(key)
  return [
    { token: null, scope: [] },
    { token: 'fat_nonsense', scope: [] },
    { token: createToken().token, scope: [] },
    { token: await service.createToken({ expires_at: 1 }), scope: [] },
    { token: await service.createToken({ revoked_at: 1 }), scope: [] },
    { token: await service.createToken({ customers: [] }), scope: [] },
    { token: await service.createToken({ customers: ['cus_ana'] }), scope: ['cus_ana'] },
    {
      token: await service.createToken({ customers: ['cus_bob', 'cus_carla'] }),
      scope: ['cus_bob', 'cus_carla'],
    },
    { token: await service.createToken({ customers: null }), scope: pathCustomers },
    { token: provider.token(), scope: ['cus_ana'] },
    {
      token: provider.token({ customer_id: ['cus_bob', 'cus_carla'], sub: 'cus_ana' }),
      scope: ['cus_bob', 'cus_carla'],
    },
    { token: provider.token({ customer_id: [], sub: 'cus_ana' }), scope: [] },
    { token: provider.token({}, {}, makeSigningKey('first')), scope: [] },
    { token: provider.token({ exp: 1 }), scope: [] },
    { token: signer.token({ sub: 'cus_carla', customer_id: 'cus_bob' }), scope: ['cus_carla'] },
    { token: signer.token({ invoice: 'in_cus_ana_1' }), scope: ['cus_ana'], invoice: 'in_cus_ana_1' },
    { token: signer.token({ invoice: 'in_cus_bob_1' }), scope: ['cus_ana'], invoice: 'in_cus_bob_1' },
    { token: narrow.token({ sub: 'cus_bob' }), scope: [] },
    { token: revoked.token(), scope: [] },
  ]
}

for (const engine of engines) {
  describe(`isolation between customers on ${engine.name}`, () => {
    test('holds for every token, customer, invoice, route, method and condition', async t => {
      const provider = await startProvider(t)
      const service = await startService(t, engine, {
        ...{ records, ...sources, provider: provider.options, publicUrl },
      })
      const tokens = await createTokens(service, provider)
      let answered = 0
      const check = ({ scope, invoice, customer, path, method, headers }: Question, answer: Answer) => {
        const what = `${method} ${path} ${JSON.stringify(headers)} → ${answer.status} ${answer.text}`
        assert.ok(answer.status < 500, what)
        for (const owner of held(answer)) {
          answered++
          assert.equal(owner, customer, what)
          assert.ok(scope.includes(owner), what)
          assert.equal(method, 'GET', what)
          if (invoice !== undefined) assert.ok(path.includes(`/invoice/${invoice}`), what)
        }
        if (invoice !== undefined && !path.includes(`/invoice/${invoice}`) && method !== 'OPTIONS')
          assert.ok(answer.status >= 400, what)
        if (!scope.includes(customer)) assert.notEqual(answer.status, 304, what)
        if (!scope.includes(customer) && method !== 'OPTIONS') assert.ok(answer.status >= 400, what)
      }
      let asked = 0
      let made = 0
      /** All of one method, one after the other over a few connections: a client of Node's would cost as much as the server. */
      const ask = async (questions: readonly Question[], method: string) => {
        const answers = await sendRaw(
          service.port,
          questions.map(writeRequest).join(''),
          method === 'HEAD' ? 'HEAD' : 'others',
        )
        assert.equal(answers.length, questions.length)
        for (const [index, question] of questions.entries()) check(question, answers[index] as Answer)
        asked += questions.length
      }
      for (const method of methods) {
        const questions: Question[] = []
        for (const token of tokens)
          for (const customer of pathCustomers)
            for (const route of routes)
              for (const invoice of route.length === 1 ? ['-'] : invoiceIds)
                for (const headers of token.token?.includes('.') ? conditions.slice(0, 2) : conditions)
                  if (made++ % stride === 0)
                    questions.push({ ...token, customer, path: route(customer, invoice), method, headers })
        const askOn = async () => {
          // With the three others, 32 at once: so few are no overload, however slow the machine is.
          while (questions.length > 0) await ask(questions.splice(-8), method)
        }
        await Promise.all([askOn(), askOn(), askOn(), askOn()])
      }
      assert.ok(asked > 30_000 / stride, `${asked} requests`)
      assert.ok(
        answered > asked / 200,
        `${answered} of ${asked} answers held data: the marks are there to be found`,
      )
    })

    test('gives identical answers for missing invoices and those of another customer', async t => {
      const service = await startService(t, engine, { records, ...sources })
      const token = await service.createToken({ customers: ['cus_ana'] })
      const path = fc.constantFrom(...routes.filter(route => route('', '').includes('/invoice/')))
      const bobs = fc.constantFrom('in_cus_bob_1', 'in_cus_bob_2', 'in_cus_carla_1')
      const none = fc.stringMatching(/^in_[A-Za-z0-9]{1,20}$/)
      const header = fc.constantFrom(...conditions)
      await fc.assert(
        fc.asyncProperty(
          path,
          bobs,
          none,
          fc.constantFrom('GET', 'HEAD'),
          header,
          async (route, foreign, missing, method, headers) => {
            const [a, b] = [foreign, missing].map(id =>
              service.get(route('cus_ana', id), { method, token, headers }),
            )
            assert.deepEqual(
              comparable(await (a as Promise<Answer>)),
              comparable(await (b as Promise<Answer>)),
            )
            const known = service.get(route('cus_bob', foreign), { method, token, headers })
            const unknown = service.get(route('cus_nobody', missing), { method, token, headers })
            assert.deepEqual(comparable(await known), comparable(await unknown))
            assert.equal((await known).status, 403)
          },
        ),
        { numRuns: campaign(100, 1_000), seed: 2026 },
      )
    })

    test('holds for every token, customer, invoice and tool of MCP', async t => {
      const provider = await startProvider(t)
      const service = await startService(t, engine, {
        ...{ records, ...sources, provider: provider.options, publicUrl, mcp: true },
      })
      let made = 0
      let asked = 0
      let answered = 0
      for (const { token, scope, invoice } of await createTokens(service, provider)) {
        const isOperator = scope === pathCustomers
        for (const customer_id of pathCustomers)
          for (const invoice_id of invoiceIds)
            for (const name of ['invoices_search', 'invoices_summary', 'invoice_get', 'invoice_explain']) {
              if (made++ % mcpStride !== 0) continue
              asked++
              const given = {
                invoices_search: { customer_id, q: invoice_id },
                invoices_summary: { customer_id },
                invoice_get: { customer_id, invoice_id },
                invoice_explain: { invoice_id },
              }[name]
              const answer = await postMcp(service, {
                ...{ token, method: 'tools/call', params: { name, arguments: given } },
              })
              const what = `${name} ${JSON.stringify(given)} → ${answer.status} ${answer.text}`
              assert.ok(answer.status < 500, what)
              for (const owner of held(answer)) {
                answered++
                assert.ok(scope.includes(owner), what)
                if (name === 'invoice_explain') assert.ok(isOperator, what)
                else assert.equal(owner, customer_id, what)
                if (invoice !== undefined) assert.ok(name === 'invoice_get' && invoice_id === invoice, what)
              }
              if (!scope.includes(customer_id) && !isOperator)
                assert.ok(answer.status === 401 || answer.text.includes('"isError":true'), what)
            }
      }
      assert.ok(answered > asked / 50, `${answered} of ${asked} answers held data`)
    })

    test('gives identical answers of MCP for missing invoices and those of another customer', async t => {
      const service = await startService(t, engine, { records, mcp: true })
      const token = await service.createToken({ customers: ['cus_ana'] })
      const ask = async (customer_id: string, invoice_id: string) => {
        const params = { name: 'invoice_get', arguments: { customer_id, invoice_id } }
        const answer = await postMcp(service, { token, method: 'tools/call', params })
        const { status, rest, text } = comparable(answer)
        return { status, rest, text: text.replace(/req_\w+/, '') }
      }
      assert.deepEqual(await ask('cus_ana', 'in_cus_bob_1'), await ask('cus_ana', 'in_none'))
      assert.deepEqual(await ask('cus_bob', 'in_cus_bob_1'), await ask('cus_nobody', 'in_none'))
    })
  })
}
