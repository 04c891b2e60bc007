/** Lines and PDFs that come from Stripe while a client waits: from a good one, and from one that fails in every way. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Stripe } from 'stripe'
import { type Fault, faultNames } from '../../../sandbox/faults.ts'
import { createPdf } from '../../../sandbox/pdf.ts'
import { createAccount, type StripeAccount } from '../../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../../sandbox/stripe/objects.ts'
import { type StripeSandbox, startStripeSandbox } from '../../../sandbox/stripe/server.ts'
import { stripeOf } from '../../../src/cli/settings/connections.ts'
import type { Setting } from '../../../src/cli/settings/settings.ts'
import { openPdfSources } from '../../../src/cli/start/open-pdf-sources.ts'
import type { InvoiceRecord, Line } from '../../../src/domain/invoice.ts'
import type { PaymentPlatform } from '../../../src/sources/source.ts'
import { mapLine } from '../../../src/sources/stripe/map-invoice.ts'
import { createPaymentPlatform } from '../../../src/sources/stripe/payment-platform.ts'
import { reportFigure } from '../../support/checks/campaign.ts'
import { assertOneLine, createCli, eventually } from '../../support/clients/cli.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import { mapStored } from '../../support/worlds/map-stored.ts'
import { makeRecord } from '../../support/worlds/records.ts'
import { type Answer, assertError, type Service, startService } from '../../support/worlds/service.ts'
import { refusalOf } from '../../support/worlds/settings.ts'
import { type StoppedClock, stopClock, until } from '../../support/worlds/stopped-clock.ts'
import { stopRequestTimeouts } from '../../support/worlds/stopped-sockets.ts'

const apiKey = 'sk_test_sandbox'
const options = { seed: 3, invoices: 120 }

/** What every test knows of the account, and none changes: who changes it makes one of its own. */
const shared = createAccount(options)
const ours = [...shared.invoices.values()].filter(({ customer }) => typeof customer === 'string')
const long = pick(({ lines, status }) => lines.data.length > 100 && status !== 'draft')
const short = pick(({ lines, status }) => lines.data.length > 1 && lines.data.length < 6 && status === 'paid')
const draft = pick(({ status }) => status === 'draft')

function pick(fits: (invoice: StripeInvoice) => boolean): StripeInvoice {
  const found = ours.find(fits)
  assert.ok(found !== undefined)
  return found
}

/** As the connector would store it, but without the lines. */
function recordOf(invoice: StripeInvoice): InvoiceRecord {
  const mapped = mapStored(invoice as unknown as Stripe.Invoice, new Map(), null, linesOf(invoice))
  assert.ok('invoice' in mapped)
  return { invoice: mapped.invoice, lines: null }
}

function linesOf(invoice: StripeInvoice): Line[] {
  return invoice.lines.data.map(line => mapLine(line as unknown as Stripe.InvoiceLineItem))
}

const detailPath = ({ id, customer }: StripeInvoice) => `/api/v1/client/${customer}/invoice/${id}`
const pdfPath = (invoice: StripeInvoice) => `${detailPath(invoice)}/payments/download`

/** The clock stands still, and this process always has time to listen to Stripe. */
interface World {
  clock: StoppedClock
  sandbox: StripeSandbox
  service: Service
  /** As if nothing had been asked of Stripe yet. */
  renew(): void
  /** How often the sandbox was asked for it. */
  asked(route: string): number
  /** With a token of its own: the requests of one wait for each other. */
  get(path: string): Promise<Answer>
  detail(invoice: StripeInvoice): Promise<Answer>
  download(invoice: StripeInvoice, method?: 'GET' | 'HEAD'): Promise<Download>
}

async function startWorld(
  t: TestContext,
  engine: Engine,
  { account = shared, key = apiKey }: { account?: StripeAccount; key?: string } = {},
): Promise<World> {
  const sandbox = await startStripeSandbox({ account, apiKey })
  t.after(() => sandbox.close())
  const connect = () => createPaymentPlatform({ apiKey: key, base: sandbox.address })
  let platform = connect()
  const payments: PaymentPlatform = {
    refusal: () => platform.refusal?.() ?? null,
    fetchLines: (...asked) => platform.fetchLines(...asked),
    openPdf: (...asked) => platform.openPdf(...asked),
    findPaymentPage: (...asked) => platform.findPaymentPage(...asked),
  }
  const service = await startService(t, engine, { payments, records: ours.map(recordOf) })
  const asked = (route: string) => sandbox.requests.get(route) ?? 0
  t.after(() => {
    for (const line of service.logs) assertSecretFree(line)
    assert.equal(asked('redirected'), 0, 'a redirect was followed')
  })
  const clock = stopClock(t)
  stopRequestTimeouts(t)
  t.mock.method(performance, 'eventLoopUtilization', () => ({ idle: 1, active: 0, utilization: 0 }))
  const get: World['get'] = async path => service.get(path, { token: await service.createToken() })
  return {
    clock,
    sandbox,
    service,
    renew() {
      platform = connect()
      sandbox.faults.clear()
      sandbox.requests.clear()
    },
    asked,
    get,
    async detail(invoice) {
      const answer = await get(detailPath(invoice))
      assertSecretFree(JSON.stringify(answer))
      return answer
    },
    download: async (invoice, method) =>
      download(service.address + pdfPath(invoice), await service.createToken(), method),
  }
}

/** How long each is waited for. */
const waits = { list_lines: 700, retrieve_invoice: 5_000, pdf: 30_000 }

/** What becomes of something that is asked of a Stripe that hangs, or nearly: not before its time is over, and then. */
async function waitInVain<T>(
  { clock, asked }: World,
  route: keyof typeof waits,
  ask: () => Promise<T>,
): Promise<T> {
  const before = asked(route)
  let isOver = false
  const outcome = ask().finally(() => {
    isOver = true
  })
  await until(() => isOver || asked(route) > before)
  await clock.pass(waits[route] - 1)
  assert.equal(isOver, false, 'it is over too early')
  await clock.pass(1)
  return outcome
}

/** The way to a PDF opens it to whoever reads it. */
const secrets = [long, short].map(({ invoice_pdf }) => /([^/]+)\.pdf/.exec(invoice_pdf ?? '')?.[1] ?? '')
assert.ok(secrets.every(secret => secret.length > 20))

function assertSecretFree(text: string): void {
  for (const secret of [...secrets, apiKey, '/pdf/in_', '.pdf?'])
    assert.ok(!text.includes(secret), `${secret} in: ${text}`)
}

interface Download {
  /** 0 when there was no answer. */
  status: number
  headers: Record<string, string>
  body: Buffer
  /** Whether the answer came to its proper end. */
  isWhole: boolean
  json(): { error: { code: string } }
}

async function download(url: string, token: string, method = 'GET'): Promise<Download> {
  const chunks: Uint8Array[] = []
  const result = { status: 0, headers: {}, isWhole: false }
  try {
    const response = await fetch(url, { method, headers: { authorization: `Bearer ${token}` } })
    result.status = response.status
    result.headers = Object.fromEntries(response.headers)
    for await (const chunk of response.body ?? []) chunks.push(chunk)
    result.isWhole = true
  } catch {
    // Broken off.
  }
  const body = Buffer.concat(chunks)
  assertSecretFree(JSON.stringify(result.headers) + body.toString('latin1'))
  return { ...result, body, json: () => JSON.parse(body.toString()) }
}

/** The exact PDF, whole; or a JSON error; or what nobody takes for whole. */
function assertSound(got: Download, invoice: StripeInvoice): void {
  const pdf = createPdf(invoice)
  if (got.status === 200 && got.isWhole) assert.deepEqual(got.body, pdf)
  else if (got.status === 200) assert.notEqual(got.body.length, pdf.length)
  else if (got.status !== 0) {
    const codes: Record<number, string[]> = {
      404: ['document_not_found'],
      502: ['upstream_failed'],
      503: ['document_not_ready'],
      504: ['upstream_timeout'],
    }
    assert.equal(got.headers['content-type'], 'application/json')
    assert.ok(codes[got.status]?.includes(got.json().error.code), `${got.status} ${got.body}`)
  }
}

function assertLines({ status, json, text }: Answer, expected: 'none' | readonly Line[]): void {
  assert.equal(status, 200, text)
  assert.equal(json.lines_source, expected === 'none' ? 'none' : 'payments')
  assert.deepEqual(json.lines, expected === 'none' ? [] : expected)
}

for (const engine of engines) {
  describe(`lines from Stripe on ${engine.name}`, () => {
    test('are fetched completely when they are not stored, and are shown as mapped', async t => {
      const { detail, asked, service } = await startWorld(t, engine)
      for (const invoice of [short, draft, long]) assertLines(await detail(invoice), linesOf(invoice))
      assert.equal(asked('list_lines'), 2 + Math.ceil(long.lines.data.length / 100))
      for (const invoice of ours.slice(0, 40)) assertLines(await detail(invoice), linesOf(invoice))
      assert.ok(!service.logs.some(line => line.includes('line items unavailable')))
    })

    test('are not fetched when they are stored, or for another customer’s invoice', async t => {
      const { service, detail, asked } = await startWorld(t, engine)
      const [first] = linesOf(short)
      await service.save({ ...recordOf(short), lines: first === undefined ? [] : [first] })
      await service.save({ ...recordOf(long), lines: [] })
      assertLines(await detail(short), [first as Line])
      assertLines(await detail(long), [])
      assertError(await detail({ ...short, customer: 'cus_other' }), 404, 'invoice_not_found')
      assert.equal(asked('list_lines'), 0)
    })
  })

  describe(`PDFs from Stripe on ${engine.name}`, () => {
    test('are delivered byte for byte under the invoice’s number, from a new address each time', async t => {
      const { download, asked } = await startWorld(t, engine)
      for (const [index, invoice] of [short, long, short].entries()) {
        const { status, headers, body, isWhole } = await download(invoice)
        assert.deepEqual([status, isWhole], [200, true])
        assert.deepEqual(body, createPdf(invoice))
        assert.equal(headers['content-type'], 'application/pdf')
        assert.equal(headers['content-length'], String(body.length))
        assert.equal(
          headers['content-disposition'],
          `attachment; filename="${invoice.number} ${invoice.id.slice(-8)}.pdf"`,
        )
        assert.equal(headers['cache-control'], 'private, no-store')
        assert.deepEqual([asked('retrieve_invoice'), asked('pdf')], [index + 1, index + 1])
      }
    })

    test('have the same headers for HEAD as for GET, without a body', async t => {
      const { download } = await startWorld(t, engine)
      const lasting = ({ headers }: Download) =>
        Object.entries(headers).filter(
          ([name]) => !['date', 'request-id', 'connection', 'keep-alive'].includes(name),
        )
      const head = await download(short, 'HEAD')
      assert.deepEqual([head.status, head.body.length, head.isWhole], [200, 0, true])
      assert.deepEqual(lasting(head), lasting(await download(short)))
    })

    test('are not requested for a draft', async t => {
      const { get, asked } = await startWorld(t, engine)
      assertError(await get(pdfPath(draft)), 409, 'document_not_issued')
      assert.equal(asked('retrieve_invoice'), 0)
    })

    test('are reported as not ready for a draft, and as not found for a missing invoice', async t => {
      const { get, service, asked } = await startWorld(t, engine)
      const { invoice } = recordOf(draft)
      await service.save({ invoice: { ...invoice, status: 'open' }, lines: null })
      const notReady = await get(pdfPath(draft))
      assertError(notReady, 503, 'document_not_ready')
      assert.match(String(notReady.headers['retry-after']), /^\d+$/)

      await service.save(makeRecord({ id: 'in_gone' }))
      for (let time = 0; time < 8; time++)
        assertError(
          await get(pdfPath({ ...short, id: 'in_gone', customer: 'cus_ana' })),
          404,
          'document_not_found',
        )
      assert.equal(asked('retrieve_invoice'), 9, 'a missing invoice is no failure of Stripe’s')
      assert.equal(asked('pdf'), 0)
    })

    test('are not found when their address is no longer valid', async t => {
      const account = createAccount(options)
      const { download, asked } = await startWorld(t, engine, { account })
      const stored = account.invoices.get(short.id) as StripeInvoice
      // Retrieved with one address; the document is at another by then.
      const addresses = [`/pdf/${short.id}/expired.pdf`, stored.invoice_pdf]
      const moved = Object.defineProperty({ ...stored }, 'invoice_pdf', {
        enumerable: true,
        get: () => (asked('pdf') === 0 ? addresses[0] : addresses[1]) as string,
      })
      account.invoices.set(short.id, moved)
      const got = await download(short)
      assert.deepEqual([got.status, got.json().error.code], [404, 'document_not_found'])
    })
  })
}

// What follows is about Stripe and time. No store has a part in it, so one is enough.
const [sqlite = assert.fail()] = engines

// On a clock that stands still, what is never over hangs.
describe('lines from a failing Stripe', { timeout: 600_000 }, () => {
  test('are empty for an unknown invoice, which counts as no failure', async t => {
    const { service, detail } = await startWorld(t, sqlite)
    const gone = { ...short, id: 'in_gone', customer: 'cus_ana' }
    await service.save(makeRecord({ id: 'in_gone' }))
    for (let time = 0; time < 8; time++) assertLines(await detail(gone), 'none')
    assertLines(await detail(short), linesOf(short))
  })

  test('are all missing when the request for the second hundred lines fails', async t => {
    const { sandbox, detail } = await startWorld(t, sqlite)
    const { requests, faults } = sandbox
    const set = requests.set.bind(requests)
    // A request is counted before it is looked up whether it fails.
    requests.set = (name, count) => {
      if (name === 'list_lines' && count % 2 === 0) faults.set('list_lines', 'error_500', { times: 1 })
      return set(name, count)
    }
    for (let time = 0; time < 3; time++) assertLines(await detail(long), 'none')
  })

  test('are given up at their deadline, are not requested after five time-outs, and return later', async t => {
    const world = await startWorld(t, sqlite)
    const { clock, sandbox, detail, asked } = world
    sandbox.faults.set('list_lines', 'hang')
    for (let time = 0; time < 5; time++)
      assertLines(await waitInVain(world, 'list_lines', () => detail(short)), 'none')
    for (let time = 0; time < 30; time++) assertLines(await detail(short), 'none')
    assert.equal(asked('list_lines'), 5, 'not asked while it is left alone')
    sandbox.faults.clear()
    await clock.pass(9_999)
    assertLines(await detail(short), 'none')
    await clock.pass(1)
    assertLines(await detail(short), linesOf(short))
    assertLines(await detail(long), linesOf(long))
    assert.equal(asked('list_lines'), 6 + Math.ceil(long.lines.data.length / 100))
  })

  test('are still requested after delays that our own busy process caused', async t => {
    const world = await startWorld(t, sqlite)
    const { sandbox, detail } = world
    t.mock.method(performance, 'eventLoopUtilization', () => ({ idle: 0, active: 1, utilization: 1 }))
    sandbox.faults.set('list_lines', 'hang')
    for (let time = 0; time < 7; time++)
      assertLines(await waitInVain(world, 'list_lines', () => detail(short)), 'none')
    sandbox.faults.clear()
    assertLines(await detail(short), linesOf(short))
  })

  test('are no longer requested from a Stripe that sends one byte at a time', async t => {
    const world = await startWorld(t, sqlite)
    const { sandbox, detail, asked } = world
    sandbox.faults.set('list_lines', 'slow_body')
    for (let time = 0; time < 5; time++)
      assertLines(await waitInVain(world, 'list_lines', () => detail(short)), 'none')
    sandbox.faults.clear()
    assertLines(await detail(short), 'none')
    assert.equal(asked('list_lines'), 5)
  })

  test('are not requested until the Retry-After of a 429 is over, at most a minute', async t => {
    const { clock, sandbox, renew, detail, download, asked } = await startWorld(t, sqlite)
    const calls = () => asked('list_lines') + asked('retrieve_invoice')
    const dateIn = (ms: number) => new Date(Date.now() + ms).toUTCString()
    const pauses: [retryAfter: () => string | undefined, pauseMs: number][] = [
      [() => '7', 7_000],
      [() => dateIn(20_000), 20_000],
      [() => '86400', 60_000],
      [() => '9'.repeat(400), 60_000],
      [() => dateIn(86_400_000), 60_000],
      [() => 'soon, perhaps', 1_000],
      [() => '-5', 1_000],
      [() => '1e3', 1_000],
      [() => undefined, 1_000],
    ]
    for (const [writeRetryAfter, pauseMs] of pauses) {
      // A date has no milliseconds.
      await clock.pass(1_000 - (Date.now() % 1_000))
      const retryAfter = writeRetryAfter()
      renew()
      sandbox.faults.set('*', 'too_many', { times: 1, ...(retryAfter !== undefined && { retryAfter }) })
      assertLines(await detail(short), 'none')
      assert.equal(calls(), 1)
      for (const ms of [0, pauseMs / 2, pauseMs / 2 - 1]) {
        await clock.pass(ms)
        assertLines(await detail(short), 'none')
        assert.equal((await download(short)).status, 502)
      }
      assert.equal(calls(), 1, `asked too early: Retry-After is ${retryAfter}`)
      await clock.pass(1)
      assertLines(await detail(short), linesOf(short))
      assert.equal(calls(), 2)
    }
  })
})

/** Whether only our own patience ends it. */
const isLasting = (fault: Fault) => fault === 'hang' || fault === 'slow_body'

/** All the lines or none, and the rest of the invoice either way. */
async function failLines(world: World, fault: Fault): Promise<void> {
  const { sandbox, service, detail, download } = world
  sandbox.faults.set('list_lines', fault, { retryAfter: '60' })
  for (const invoice of [short, long, short]) {
    const ask = () => detail(invoice)
    assertLines(await (isLasting(fault) ? waitInVain(world, 'list_lines', ask) : ask()), 'none')
  }
  sandbox.faults.clear()
  assert.equal((await service.get('/live')).status, 200)
  assert.equal((await download(long)).status, fault === 'too_many' ? 502 : 200)
}

async function failPdf(world: World, route: 'retrieve_invoice' | 'pdf', fault: Fault): Promise<void> {
  const { sandbox, service, download } = world
  const { [fault]: [status, isWhole] = [502, true] } = outcomes[route]
  sandbox.faults.set(route, fault)
  const ask = () => download(short)
  const got = await (isLasting(fault) ? waitInVain(world, route, ask) : ask())
  assertSound(got, short)
  assert.deepEqual([got.status, got.isWhole], [status, isWhole])
  sandbox.faults.clear()
  assert.equal((await service.get('/live')).status, 200)
  const isPaused = route === 'retrieve_invoice' && fault === 'too_many'
  if (!isPaused) assert.deepEqual((await download(short)).body, createPdf(short))
}

/** The status, and whether the answer is whole; an error of the upstream where none is given. */
type Outcomes = Partial<Record<Fault, [status: number, isWhole: boolean]>>

const outcomes: Record<'retrieve_invoice' | 'pdf', Outcomes> = {
  retrieve_invoice: {
    hang: [504, true],
    slow_body: [504, true],
    wrong_type: [200, true],
    missing_id: [200, true],
    looping_page: [200, true],
  },
  pdf: {
    hang: [504, true],
    slow_body: [200, false],
    truncated: [200, false],
    huge: [200, false],
    looping_page: [200, true],
    // Whatever answers at the address of a PDF, no more is known than that there is none.
    gateway_404: [404, true],
  },
}

test('a short pause does not replace a longer pause of Stripe', async t => {
  const sandbox = await startStripeSandbox({ account: shared })
  t.after(() => sandbox.close())
  const clock = stopClock(t)
  const { fetchLines, openPdf } = createPaymentPlatform({ apiKey, base: sandbox.address })
  const { signal } = new AbortController()
  sandbox.faults.set('list_lines', 'too_many', { times: 1, retryAfter: '30' })
  sandbox.faults.set('retrieve_invoice', 'too_many', { times: 1, retryAfter: '1' })
  // Both are under way before either is refused.
  await Promise.allSettled([fetchLines(short.id, signal), openPdf(short.id, signal)])
  assert.deepEqual(Object.fromEntries(sandbox.requests), { list_lines: 1, retrieve_invoice: 1 })
  await clock.pass(29_999)
  await assert.rejects(fetchLines(short.id, signal), /pause/)
  await clock.pass(1)
  assert.deepEqual(await fetchLines(short.id, signal), linesOf(short))
})

test('every fault of Stripe gives whole answers or none, and correct answers follow the fault', {
  timeout: 600_000,
}, async t => {
  const world = await startWorld(t, sqlite)
  const failures = [
    (fault: Fault) => failLines(world, fault),
    (fault: Fault) => failPdf(world, 'retrieve_invoice', fault),
    (fault: Fault) => failPdf(world, 'pdf', fault),
  ]
  for (const fault of faultNames)
    await t.test(`${fault} gives whole answers or none`, async () => {
      for (const fail of failures) {
        world.renew()
        await fail(fault)
      }
    })
  reportFigure(t, 'R4', `reads: ${faultNames.length} faults × ${failures.length} calls of Stripe`)
})

test('without a Stripe key there are no PDFs, and only stored lines', async t => {
  assert.equal(stripeOf({ STRIPE_API_KEY: null, STRIPE_API_BASE: 'https://api.stripe.com' }), null)
  const { payments } = await openPdfSources(null, null)
  assert.equal(payments, null)
  const service = await startService(t, sqlite, { records: [recordOf(short)] })
  assertLines(await service.get(detailPath(short)), 'none')
  assertError(await service.get(pdfPath(short)), 502, 'upstream_failed')
})

test('a key that Stripe refuses stops no other answer, and is not logged', async t => {
  const { detail, get, service } = await startWorld(t, sqlite, { key: 'sk_test_another' })
  assertLines(await detail(short), 'none')
  assertError(await get(pdfPath(short)), 502, 'upstream_failed')
  const logged = service.logs.join('')
  assert.match(logged, /Stripe refused the key/)
  assert.doesNotMatch(logged, /sk_test/)
})

describe('fatura serve with a Stripe key', { concurrency: 2 }, () => {
  const load = [short, long].map(invoice => recordOf(invoice).invoice)

  test('delivers Stripe’s lines and PDFs, and continues after failures', async t => {
    const sandbox = await startStripeSandbox({ account: shared, apiKey })
    t.after(() => sandbox.close())
    const cli = await createCli(t)
    await cli.load(...load)
    const token = await cli.createToken()
    const api = await cli.serve([], { env: { STRIPE_API_KEY: apiKey, STRIPE_API_BASE: sandbox.address } })
    for (const invoice of [short, long]) {
      // A machine that is too busy for the lines' deadline answers without them, and a client asks again.
      await eventually('the lines come', async () => {
        const { status, json } = await api.get(detailPath(invoice), token)
        assert.equal(status, 200)
        if (json.lines_source === 'none') return false
        assert.deepEqual([json.lines_source, json.lines], ['payments', linesOf(invoice)])
        return true
      })
      await eventually('the PDF comes', async () => {
        const { status, body } = await download(api.address + pdfPath(invoice), token)
        if (status === 504) return false
        assert.deepEqual(body, createPdf(invoice))
        return true
      })
    }
    for (const fault of ['truncated', 'huge', 'reset', 'too_many'] as const) {
      sandbox.faults.set('*', fault)
      assert.equal((await api.get(detailPath(short), token)).status, 200)
      assertSound(await download(api.address + pdfPath(short), token), short)
    }
    const outcome = await api.stop()
    assert.deepEqual([outcome.code, outcome.stderr], [0, ''])
    assertSecretFree(outcome.stdout)
  })

  test('refuses a malformed key or address with one line that names the setting and hides the key', async t => {
    const cli = await createCli(t)
    const wrong: [setting: Setting, value: string][] = [
      ['STRIPE_API_KEY', 'sk_test_c4nary\nsecond'],
      ['STRIPE_API_KEY', 'pk_test_c4nary'],
      ['STRIPE_API_KEY', 'sk_test_c4nary '],
      ['STRIPE_API_BASE', 'sk_test_c4nary'],
      ['STRIPE_API_BASE', 'ftp://c4nary'],
      ['STRIPE_API_BASE', 'https://sk_test_c4nary@api.stripe.com'],
      ['STRIPE_API_BASE', 'https://api.stripe.com/v1'],
      ['STRIPE_API_BASE', 'https://api.stripe.com?key=c4nary'],
      ['STRIPE_API_BASE', 'one\ntwo'],
    ]
    for (const [setting, value] of wrong) {
      const told = refusalOf(setting, value)
      assert.ok(told.startsWith(`${setting} `), told)
      assert.doesNotMatch(told, /c4nary|sk_test/)
    }
    const [[setting, value] = assert.fail()] = wrong
    const outcome = await cli.run(['serve', '--port', '0'], { env: { [setting]: value } })
    assertOneLine(outcome)
    assert.equal(outcome.stderr, `fatura: ${refusalOf(setting, value)}\n`)
  })
})
