/** Lines and PDFs that come from Stripe while a client waits: from a good one, and from one that fails in every way. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Stripe } from 'stripe'
import { type Fault, faultNames } from '../../sandbox/faults.ts'
import { createPdf } from '../../sandbox/pdf.ts'
import { createAccount, type StripeAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { type StripeSandbox, startStripeSandbox } from '../../sandbox/stripe/server.ts'
import type { Setting } from '../../src/cli/settings/settings.ts'
import type { InvoiceRecord, Line } from '../../src/invoice.ts'
import { mapInvoice, mapLine } from '../../src/stripe/map-invoice.ts'
import { createPaymentPlatform } from '../../src/stripe/payment-platform.ts'
import { campaign, reportFigure } from '../support/campaign.ts'
import { assertOneLine, createCli, eventually } from '../support/cli.ts'
import { type Engine, engines } from '../support/engines.ts'
import { assertWithin } from '../support/machine-speed.ts'
import { makeRecord } from '../support/records.ts'
import { type Answer, assertError, type Service, startService } from '../support/service.ts'
import { refusalOf } from '../support/settings.ts'

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
  const mapped = mapInvoice(invoice as unknown as Stripe.Invoice, new Map(), null, linesOf(invoice))
  assert.ok('invoice' in mapped)
  return { invoice: mapped.invoice, lines: null }
}

function linesOf(invoice: StripeInvoice): Line[] {
  return invoice.lines.data.map(line => mapLine(line as unknown as Stripe.InvoiceLineItem))
}

const detailPath = ({ id, customer }: StripeInvoice) => `/api/v1/client/${customer}/invoice/${id}`
const pdfPath = (invoice: StripeInvoice) => `${detailPath(invoice)}/payments/download`

interface World {
  sandbox: StripeSandbox
  service: Service
  /** How often the sandbox was asked for it. */
  asked(route: string): number
  detail(invoice: StripeInvoice): Promise<Answer>
  download(invoice: StripeInvoice, asking?: Asking): Promise<Download>
}

interface WorldOptions {
  account?: StripeAccount
  /** Where all is stored already. */
  url?: string
}

async function startWorld(
  t: TestContext,
  engine: Engine,
  { account = shared, url }: WorldOptions = {},
): Promise<World> {
  const sandbox = await startStripeSandbox({ account })
  t.after(() => sandbox.close())
  const payments = createPaymentPlatform({ apiKey, base: sandbox.address })
  const service = await (url === undefined
    ? startService(t, engine, { payments, records: ours.map(recordOf) })
    : startService(t, { ...engine, createStore: async () => url }, { payments }))
  const token = await service.createToken()
  const asked = (route: string) => sandbox.requests.get(route) ?? 0
  t.after(() => {
    for (const line of service.logs) assertSecretFree(line)
    assert.equal(asked('redirected'), 0, 'a redirect was followed')
  })
  return {
    sandbox,
    service,
    asked,
    async detail(invoice) {
      const answer = await service.get(detailPath(invoice))
      assertSecretFree(JSON.stringify(answer))
      return answer
    },
    download: (invoice, asking) => download(service.address + pdfPath(invoice), token, asking),
  }
}

/** The way to a PDF opens it to whoever reads it. */
const secrets = [long, short].map(({ invoice_pdf }) => /([^/]+)\.pdf/.exec(invoice_pdf ?? '')?.[1] ?? '')
assert.ok(secrets.every(secret => secret.length > 20))

function assertSecretFree(text: string): void {
  for (const secret of [...secrets, apiKey, '/pdf/in_', '.pdf?'])
    assert.ok(!text.includes(secret), `${secret} in: ${text}`)
}

interface Asking {
  method?: 'GET' | 'HEAD'
  /** After how many milliseconds the client goes away. */
  patience?: number
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

async function download(url: string, token: string, asking: Asking = {}): Promise<Download> {
  const { method = 'GET', patience = 20_000 } = asking
  const signal = AbortSignal.timeout(patience)
  const chunks: Uint8Array[] = []
  const result = { status: 0, headers: {}, isWhole: false }
  try {
    const response = await fetch(url, { method, signal, headers: { authorization: `Bearer ${token}` } })
    result.status = response.status
    result.headers = Object.fromEntries(response.headers)
    for await (const chunk of response.body ?? []) chunks.push(chunk)
    result.isWhole = true
  } catch {
    // Broken off, by the other side or by us.
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

/** `isBusy`: this process may have been too busy itself for what it saw to say anything of Stripe. */
async function measure<T>(act: () => Promise<T>): Promise<{ took: number; result: T; isBusy: boolean }> {
  const start = performance.now()
  const before = performance.eventLoopUtilization()
  const result = await act()
  const isBusy = performance.eventLoopUtilization(before).utilization > 0.8
  return { took: performance.now() - start, result, isBusy }
}

/** When this process was too busy itself to hear Stripe in time, that is told as 504: a client asks again then. */
async function downloadUnlessBusy(
  { download }: World,
  ...asked: Parameters<World['download']>
): Promise<Download> {
  for (let tries = 1; ; tries++) {
    const { result, isBusy } = await measure(() => download(...asked))
    if (result.status !== 504 || !isBusy || tries === 10) return result
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

for (const engine of engines) {
  describe(`lines from Stripe on ${engine.name}`, () => {
    test('lines that are not stored come from Stripe, all of them and as they are mapped', async t => {
      const { detail, asked, service } = await startWorld(t, engine)
      for (const invoice of [short, draft, long]) assertLines(await detail(invoice), linesOf(invoice))
      assert.equal(asked('list_lines'), 2 + Math.ceil(long.lines.data.length / 100))
      for (const invoice of ours.slice(0, 40)) assertLines(await detail(invoice), linesOf(invoice))
      assert.ok(!service.logs.some(line => line.includes('lines unavailable')))
    })

    test('stored lines are not asked for, nor those of another customer’s invoice', async t => {
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
    test('the PDF comes byte for byte, named after the number, from a new address each time', async t => {
      const { download, asked } = await startWorld(t, engine)
      for (const [index, invoice] of [short, long, short].entries()) {
        const { status, headers, body, isWhole } = await download(invoice)
        assert.deepEqual([status, isWhole], [200, true])
        assert.deepEqual(body, createPdf(invoice))
        assert.equal(headers['content-type'], 'application/pdf')
        assert.equal(headers['content-length'], String(body.length))
        assert.equal(headers['content-disposition'], `attachment; filename="${invoice.number}.pdf"`)
        assert.equal(headers['cache-control'], 'private, no-store')
        assert.deepEqual([asked('retrieve_invoice'), asked('pdf')], [index + 1, index + 1])
      }
    })

    test('HEAD has the same headers, and no body', async t => {
      const { download } = await startWorld(t, engine)
      const lasting = ({ headers }: Download) =>
        Object.entries(headers).filter(
          ([name]) => !['date', 'request-id', 'connection', 'keep-alive'].includes(name),
        )
      const head = await download(short, { method: 'HEAD' })
      assert.deepEqual([head.status, head.body.length, head.isWhole], [200, 0, true])
      assert.deepEqual(lasting(head), lasting(await download(short)))
    })

    test('a draft has none yet, and is not asked for', async t => {
      const { service, asked } = await startWorld(t, engine)
      assertError(await service.get(pdfPath(draft)), 409, 'document_not_issued')
      assert.equal(asked('retrieve_invoice'), 0)
    })

    test('what Stripe has as a draft, or no longer has, is told as that', async t => {
      const { service, asked } = await startWorld(t, engine)
      const { invoice } = recordOf(draft)
      await service.save({ invoice: { ...invoice, status: 'open' }, lines: null })
      const notReady = await service.get(pdfPath(draft))
      assertError(notReady, 503, 'document_not_ready')
      assert.match(String(notReady.headers['retry-after']), /^\d+$/)

      await service.save(makeRecord({ id: 'in_gone' }))
      for (let time = 0; time < 8; time++)
        assertError(
          await service.get(pdfPath({ ...short, id: 'in_gone', customer: 'cus_ana' })),
          404,
          'document_not_found',
        )
      assert.equal(asked('retrieve_invoice'), 9, 'a missing invoice is no failure of Stripe’s')
      assert.equal(asked('pdf'), 0)
    })

    test('a PDF whose address is no longer good is not found', async t => {
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

describe('lines from a Stripe that fails', () => {
  test('an invoice that Stripe does not know has no lines, and that is no failure of Stripe’s', async t => {
    const { service, detail } = await startWorld(t, sqlite)
    const gone = { ...short, id: 'in_gone', customer: 'cus_ana' }
    await service.save(makeRecord({ id: 'in_gone' }))
    for (let time = 0; time < 8; time++) assertLines(await detail(gone), 'none')
    assertLines(await detail(short), linesOf(short))
  })

  test('a failure after the first hundred lines gives none of them', async t => {
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

  test('a Stripe that hangs costs a second at most; left alone, next to nothing; then lines come back', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { sandbox, detail, asked } = await startWorld(t, sqlite)
    sandbox.faults.set('list_lines', 'hang')
    // A call during which this process was too busy itself says nothing of Stripe: it is made once more.
    let untold = 0
    const hang = async (invoice: typeof long) => {
      const { took, result, isBusy } = await measure(() => detail(invoice))
      if (isBusy) untold++
      assertLines(result, 'none')
      return took
    }
    // The connection and the code are warm.
    await hang(long)
    const hung: number[] = []
    while (hung.length < 4 + Math.min(untold, 10)) hung.push(await hang(short))
    assertWithin(median(hung), campaign(3_000, 1_000))
    const times = asked('list_lines')
    assert.ok(times >= 5 && times <= 5 + untold, `${times} times, ${untold} of them for nothing`)

    const open: number[] = []
    for (let time = 0; time < 30; time++) {
      const { took, result } = await measure(() => detail(short))
      assertLines(result, 'none')
      open.push(took)
    }
    reportFigure(
      t,
      'R5',
      `hung ${median(hung).toFixed(0)} ms (median), ${Math.max(...hung).toFixed(0)} ms at most, ` +
        `left alone ${median(open).toFixed(1)} ms (median), ${Math.max(...open).toFixed(1)} ms at most`,
    )
    assertWithin(median(open), campaign(500, 50))
    assert.equal(asked('list_lines'), times, 'not asked while it is left alone')

    sandbox.faults.clear()
    t.mock.timers.tick(9_000)
    assertLines(await detail(short), 'none')
    t.mock.timers.tick(1_001)
    assertLines(await detail(short), linesOf(short))
    assertLines(await detail(long), linesOf(long))
  })

  test('a Stripe that answers a byte at a time is left alone too', async t => {
    const { sandbox, detail, asked } = await startWorld(t, sqlite)
    sandbox.faults.set('list_lines', 'slow_body')
    const askFiveTimes = () => measure(() => Promise.all(Array.from({ length: 5 }, () => detail(short))))
    for (let [isBusy, round] = [true, 0]; isBusy && round < 10; round++) {
      const asking = await askFiveTimes()
      for (const answer of asking.result) assertLines(answer, 'none')
      isBusy = asking.isBusy
    }
    const times = asked('list_lines')
    sandbox.faults.clear()
    assertLines(await detail(short), 'none')
    assert.equal(asked('list_lines'), times)
  })

  test('after 429 Stripe is not asked before Retry-After is over, which is a minute at most', async t => {
    const now = Math.ceil(Date.now() / 1_000) * 1_000
    const date = (milliseconds: number) => new Date(now + milliseconds).toUTCString()
    const pauses: [retryAfter: string | undefined, pause: number][] = [
      ['7', 7_000],
      [date(20_000), 20_000],
      ['86400', 60_000],
      ['9'.repeat(400), 60_000],
      [date(86_400_000), 60_000],
      ['soon, perhaps', 1_000],
      ['-5', 1_000],
      ['1e3', 1_000],
      [undefined, 1_000],
    ]
    const { url } = (await startWorld(t, sqlite)).service
    t.mock.timers.enable({ apis: ['Date'], now })
    for (const [retryAfter, pause] of pauses)
      await t.test(`${retryAfter}`.slice(0, 40), async inner => {
        t.mock.timers.setTime(now)
        const { sandbox, detail, download, asked } = await startWorld(inner, sqlite, { url })
        const calls = () => asked('list_lines') + asked('retrieve_invoice')
        sandbox.faults.set('*', 'too_many', { times: 1, ...(retryAfter !== undefined && { retryAfter }) })
        assertLines(await detail(short), 'none')
        assert.equal(calls(), 1)
        for (const moment of [now, now + pause / 2, now + pause - 1]) {
          t.mock.timers.setTime(moment)
          assertLines(await detail(short), 'none')
          assert.equal((await download(short)).status, 502)
        }
        assert.equal(calls(), 1, 'asked too early')
        t.mock.timers.setTime(now + pause)
        assertLines(await detail(short), linesOf(short))
        assert.equal(calls(), 2)
      })
  })
})

/** All the lines or none, and the rest of the invoice either way. */
async function failLines(world: World, fault: Fault): Promise<void> {
  const { sandbox, service, detail } = world
  sandbox.faults.set('list_lines', fault, { retryAfter: '60' })
  for (const invoice of [short, long, short]) {
    const answer = await detail(invoice)
    assertLines(answer, 'none')
  }
  sandbox.faults.clear()
  assert.equal((await service.get('/live')).status, 200)
  assert.equal((await downloadUnlessBusy(world, long)).status, fault === 'too_many' ? 502 : 200)
}

async function failPdf(world: World, route: 'retrieve_invoice' | 'pdf', fault: Fault): Promise<void> {
  const { sandbox, service } = world
  const { [fault]: [statuses, isWhole] = [[502], true] } = outcomes[route]
  sandbox.faults.set(route, fault)
  const isEndless = route === 'pdf' && (fault === 'hang' || fault === 'slow_body')
  const got = await downloadUnlessBusy(world, short, isEndless ? { patience: 1_500 } : {})
  assertSound(got, short)
  assert.equal(got.isWhole, isWhole)
  assert.ok(statuses.includes(got.status), `${got.status}`)
  sandbox.faults.clear()
  assert.equal((await service.get('/live')).status, 200)
  const isPaused = route === 'retrieve_invoice' && fault === 'too_many'
  if (!isPaused) assert.deepEqual((await downloadUnlessBusy(world, short)).body, createPdf(short))
}

/** The status, 0 for no answer, and whether the answer is whole; an error where none is given. */
type Outcomes = Partial<Record<Fault, [statuses: number[], isWhole: boolean]>>

const outcomes: Record<'retrieve_invoice' | 'pdf', Outcomes> = {
  retrieve_invoice: {
    hang: [[504], true],
    slow_body: [[504], true],
    // More than is read of any answer: refused, or given up on before.
    huge: [[502, 504], true],
    wrong_type: [[200], true],
    missing_id: [[200], true],
    looping_page: [[200], true],
  },
  pdf: {
    // The client goes away before our own patience ends.
    hang: [[0], false],
    slow_body: [[0, 200], false],
    truncated: [[200], false],
    huge: [[200], false],
    looping_page: [[200], true],
    // Whatever answers at the address of a PDF, no more is known than that there is none.
    gateway_404: [[404], true],
  },
}

test('a shorter pause does not undercut a longer one', async t => {
  const now = Date.now()
  t.mock.timers.enable({ apis: ['Date'], now })
  const sandbox = await startStripeSandbox({ account: shared })
  t.after(() => sandbox.close())
  const { fetchLines, openPdf } = createPaymentPlatform({ apiKey, base: sandbox.address })
  const signal = AbortSignal.timeout(10_000)
  sandbox.faults.set('list_lines', 'too_many', { times: 1, retryAfter: '30' })
  sandbox.faults.set('retrieve_invoice', 'too_many', { times: 1, retryAfter: '1' })
  // Both are under way before either is refused.
  await Promise.allSettled([fetchLines(short.id, signal), openPdf(short.id, signal)])
  assert.deepEqual(Object.fromEntries(sandbox.requests), { list_lines: 1, retrieve_invoice: 1 })
  t.mock.timers.setTime(now + 29_999)
  await assert.rejects(fetchLines(short.id, signal), /pause/)
  t.mock.timers.setTime(now + 30_000)
  assert.deepEqual(await fetchLines(short.id, signal), linesOf(short))
})

// Side by side: they wait for Stripe.
describe('Stripe in every way', { concurrency: 5 }, () => {
  test('every fault', { concurrency: 6 }, async t => {
    const { url } = (await startWorld(t, sqlite)).service
    const start = (t: TestContext) => startWorld(t, sqlite, { url })
    const failures = [
      (world: World, fault: Fault) => failLines(world, fault),
      (world: World, fault: Fault) => failPdf(world, 'retrieve_invoice', fault),
      (world: World, fault: Fault) => failPdf(world, 'pdf', fault),
    ]
    const run = (fault: Fault) =>
      t.test(fault, async t => {
        await Promise.all(failures.map(async fail => fail(await start(t), fault)))
      })
    await Promise.all(faultNames.filter(fault => fault !== 'huge').map(run))
    // One by one: so many bytes keep this process from noticing in time what the others wait for.
    await t.test('huge', async t => {
      for (const fail of failures) await fail(await start(t), 'huge')
    })
    reportFigure(t, 'R4', `reads: ${faultNames.length} faults × ${failures.length} calls of Stripe`)
  })

  const load = [short, long].map(invoice => recordOf(invoice).invoice)

  test('fatura serve serves lines and PDFs that are Stripe’s, and outlives its failures', async t => {
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

  test('fatura serve without a key: there are no PDFs, and no lines but the stored', async t => {
    const cli = await createCli(t)
    await cli.load(...load)
    const token = await cli.createToken()
    const api = await cli.serve([], { env: { STRIPE_API_BASE: 'http://127.0.0.1:1' } })
    const { status, json } = await api.get(detailPath(short), token)
    assert.deepEqual([status, json.lines_source], [200, 'none'])
    const got = await api.get(pdfPath(short), token)
    assert.deepEqual([got.status, got.json.error.code], [502, 'upstream_failed'])
  })

  test('fatura serve with a key that Stripe refuses: it stops nothing, and is in no log line', async t => {
    const sandbox = await startStripeSandbox({ account: shared, apiKey: 'sk_test_another' })
    t.after(() => sandbox.close())
    const cli = await createCli(t)
    await cli.load(...load)
    const token = await cli.createToken()
    const api = await cli.serve([], { env: { STRIPE_API_KEY: apiKey, STRIPE_API_BASE: sandbox.address } })
    const { status, json } = await api.get(detailPath(short), token)
    assert.deepEqual([status, json.lines_source], [200, 'none'])
    assert.equal((await api.get(pdfPath(short), token)).status, 502)
    const { stdout } = await api.stop()
    assert.match(stdout, /Stripe refused the key/)
    assert.doesNotMatch(stdout, /sk_test/)
  })

  test('a malformed key or address stops the start of fatura serve with one line that names the setting and shows no key', async t => {
    const cli = await createCli(t)
    await cli.load(...load)
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
    for (const [setting, value] of [wrong[0], wrong[3]] as typeof wrong) {
      const outcome = await cli.run(['serve', '--port', '0'], {
        env: { STRIPE_API_KEY: apiKey, [setting]: value },
      })
      assertOneLine(outcome)
      assert.equal(outcome.stderr, `fatura: ${refusalOf(setting, value)}\n`)
    }
  })
})
