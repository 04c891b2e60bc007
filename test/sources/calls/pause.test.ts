/** After a 429, no request leaves before `Retry-After` is over: nor one that had its turn before and waited for a connection since. */
import assert from 'node:assert/strict'
import dns from 'node:dns'
import type { RequestListener, ServerResponse } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Pace } from '../../../src/sources/calls/paced-calls.ts'
import { createDocumentSource } from '../../../src/sources/invoicexpress/document-source.ts'
import { createInvoicingSystem } from '../../../src/sources/invoicexpress/invoicing-system.ts'
import { SourceError } from '../../../src/sources/source.ts'
import { createBillingSource } from '../../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { createPaymentPlatform } from '../../../src/sources/stripe/payment-platform.ts'
import { answer } from '../../support/upstreams/invoicexpress-upstream.ts'
import { startUpstream } from '../../support/upstreams/pdf-upstream.ts'
import { createCertificate } from '../../support/worlds/certificate.ts'
import { stopClock, until } from '../../support/worlds/stopped-clock.ts'

const pace: Pace = { perSecond: 10_000, attempts: 0, patienceMs: 60_000 }
const wanted = new AbortController().signal
const retryAfter = { 'retry-after': '1' }
const pauseMs = 1_000

const missing = {
  ix: answer({ errors: [{ error: 'not found' }] }, 404),
  stripe: ((request, response) => {
    const message = `No such invoice: '${request.url?.split(/[/?]/)[3]}'`
    answer({ error: { type: 'invalid_request_error', code: 'resource_missing', message } }, 404)(
      request,
      response,
    )
  }) as RequestListener,
}

type Ask = (number: number) => Promise<unknown>

/** Calls of the connector, and of the API while a client waits. Each has connections of its own. */
const askers: Record<
  string,
  { system: 'ix' | 'stripe'; isOfApi: boolean; create(base: string): Ask; refusal?: object }
> = {
  'requests for documents, pages and clients wait too': {
    ...{ system: 'ix', isOfApi: false },
    create(base) {
      const source = createDocumentSource({ account: null, apiKey: 'x', base }, pace)
      const asks: Ask[] = [
        number => source.fetchDocument(number, 'Invoice'),
        number => source.atHalfPace.fetchDocument(number, 'Invoice'),
        number => source.fetchClient(number),
        number => source.listDocuments({}, number),
      ]
      return number => (asks[number % asks.length] ?? assert.fail())(number)
    },
  },
  'requests for PDFs of documents wait too': {
    ...{ system: 'ix', isOfApi: true },
    create(base) {
      const system = createInvoicingSystem({ account: null, apiKey: 'x', base })
      return number => system.openPdf(number, wanted)
    },
  },
  'requests for invoices and lists wait too': { system: 'stripe', isOfApi: false, create: createInvoices },
  'requests for invoices wait when a gateway refuses one': {
    ...{ system: 'stripe', isOfApi: false, create: createInvoices },
    refusal: { message: 'API rate limit exceeded' },
  },
  'requests for PDFs of invoices wait too': {
    ...{ system: 'stripe', isOfApi: true },
    create(base) {
      const platform = createPaymentPlatform({ apiKey: 'sk_test_x', base })
      return number => platform.openPdf(`in_${number}`, wanted)
    },
  },
}

function createInvoices(base: string): Ask {
  const source = createBillingSource({ apiKey: 'sk_test_x', base }, defaultKeys, pace)
  return number => (number % 2 === 0 ? source.fetchInvoice(`in_${number}`, null) : source.listInvoices(null))
}

/** An upstream whose name takes a while to be found, from `hold` on until `letGo`. The clock stands still. */
async function startSlow(t: TestContext, listener: RequestListener) {
  const upstream = await startUpstream(t, listener)
  const clock = stopClock(t)
  const waiting: (() => void)[] = []
  let isHeld = false
  const find = dns.lookup as (...all: unknown[]) => void
  t.mock.method(dns, 'lookup', (_name: string, ...rest: unknown[]) => {
    if (isHeld) waiting.push(() => find('127.0.0.1', ...rest))
    else find('127.0.0.1', ...rest)
  })
  return {
    base: `http://upstream.test:${upstream.port}`,
    clock,
    waiting,
    /** How many requests arrived. */
    arrived: () => upstream.requests.length,
    /** How many connections were closed. */
    closed: () => upstream.connections - upstream.open,
    hold() {
      isHeld = true
    },
    letGo() {
      isHeld = false
      for (const go of waiting.splice(0)) go()
    },
  }
}

const refusal429 = { error: { type: 'invalid_request_error', code: 'rate_limit', message: 'slow down' } }

describe('a pause that a source asks for, while requests wait for a connection', () => {
  for (const [name, { system, isOfApi, create, refusal = refusal429 }] of Object.entries(askers))
    test(`of ${system === 'ix' ? 'InvoiceXpress' : 'Stripe'}: ${name}`, async t => {
      const first = Promise.withResolvers<ServerResponse>()
      const upstream = await startSlow(t, (request, response) => {
        if (upstream.arrived() === 1) first.resolve(response)
        else missing[system](request, response)
      })
      const ask = create(upstream.base)
      const refused = ask(0)
      const response = await first.promise
      upstream.hold()
      const others = 10
      const outcomes = Promise.allSettled(Array.from({ length: others }, (_, number) => ask(number + 1)))
      await until(() => upstream.waiting.length === others)
      response
        .writeHead(429, { 'content-type': 'application/json', ...retryAfter })
        .end(JSON.stringify(refusal))
      await assert.rejects(refused, SourceError)
      upstream.letGo()
      await until(() => upstream.closed() + upstream.arrived() - 1 >= others)
      await upstream.clock.pass(pauseMs - 1)
      assert.equal(upstream.arrived(), 1, 'before the pause is over')
      await upstream.clock.pass(1)
      const settled = await outcomes
      if (!isOfApi) return assert.equal(upstream.arrived(), 1 + others)
      for (const outcome of settled) {
        assert.ok(outcome.status === 'rejected' && outcome.reason instanceof SourceError)
        assert.deepEqual([outcome.reason.failure, outcome.reason.retryAfter], ['failed', 1])
      }
    })
})

test('a request on a broken kept connection is repeated only after the pause', async t => {
  const responses: ServerResponse[] = []
  const upstream = await startSlow(t, (request, response) => {
    if (upstream.arrived() > 4) missing.ix(request, response)
    else responses.push(response)
  })
  const source = createDocumentSource({ account: null, apiKey: 'x', base: upstream.base }, pace)
  const warm = [source.fetchClient(1), source.fetchClient(2)]
  await until(() => responses.length === 2)
  for (const response of responses) missing.ix(response.req, response)
  await Promise.all(warm)
  const [refused, broken] = [source.fetchClient(3), source.fetchClient(4)]
  await until(() => responses.length === 4)
  responses[2]?.writeHead(429, retryAfter).end('{}')
  await assert.rejects(refused, SourceError)
  responses[3]?.destroy()
  await until(() => upstream.closed() + upstream.arrived() - 4 >= 2)
  await upstream.clock.pass(pauseMs - 1)
  assert.equal(upstream.arrived(), 4)
  await upstream.clock.pass(1)
  assert.equal(await broken, null)
  assert.equal(upstream.arrived(), 5)
})

test('the next page of lines is requested only after the pause', async t => {
  const responses: ServerResponse[] = []
  const upstream = await startSlow(t, (_request, response) => void responses.push(response))
  const platform = createPaymentPlatform({ apiKey: 'sk_test_x', base: upstream.base })
  const [cut, refused] = [platform.fetchLines('in_1', wanted), platform.fetchLines('in_2', wanted)]
  const failed = assert.rejects(cut, SourceError)
  await until(() => responses.length === 2)
  const [firstPage, other] = responses[0]?.req.url?.includes('in_1') ? responses : responses.toReversed()
  other?.writeHead(429, retryAfter).end(JSON.stringify(refusal429))
  await assert.rejects(refused, SourceError)
  const lines = {
    object: 'list',
    has_more: true,
    data: [{ id: 'il_1', object: 'line_item', amount: 1, currency: 'eur' }],
  }
  firstPage?.writeHead(200).end(JSON.stringify(lines))
  await failed
  assert.equal(upstream.arrived(), 2)
})

test('calls over TLS keep their connections and respect a pause, for both sources', async t => {
  const certificate = createCertificate()
  const trusted = getCACertificates()
  setDefaultCACertificates([...trusted, certificate.cert])
  t.after(() => setDefaultCACertificates(trusted))
  const clock = stopClock(t)
  for (const system of ['ix', 'stripe'] as const) {
    const upstream = await startUpstream(
      t,
      (request, response) => {
        if (upstream.requests.length === 2)
          response.writeHead(429, retryAfter).end(JSON.stringify(refusal429))
        else missing[system](request, response)
      },
      { host: 'localhost', certificate },
    )
    const source = {
      ix: createDocumentSource({ account: null, apiKey: 'x', base: upstream.origin }, pace),
      stripe: createBillingSource({ apiKey: 'sk_test_x', base: upstream.origin }, defaultKeys, pace),
    }
    const ask = () => (system === 'ix' ? source.ix.fetchClient(1) : source.stripe.fetchInvoice('in_1', null))
    await ask()
    await assert.rejects(ask(), SourceError)
    const last = ask()
    await clock.pass(pauseMs - 1)
    assert.equal(upstream.requests.length, 2)
    await clock.pass(1)
    await last
    assert.equal(upstream.requests.length, 3)
    assert.ok(upstream.connections < 3, `${upstream.connections} connections`)
  }
})
