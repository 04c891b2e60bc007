/** One customer's downloads, however many at once, are no trouble of another's. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stripe } from 'stripe'
import { createPdf } from '../../src/sandbox/pdf.ts'
import { createAccount } from '../../src/sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../src/sandbox/stripe/objects.ts'
import { startStripeSandbox } from '../../src/sandbox/stripe/server.ts'
import type { InvoicingSystem, PaymentPlatform } from '../../src/sources.ts'
import { mapInvoice } from '../../src/stripe/map-invoice.ts'
import { createPaymentPlatform } from '../../src/stripe/payment-platform.ts'
import { campaign } from '../support/campaign.ts'
import { createCli, eventually } from '../support/cli.ts'
import { type Engine, engines } from '../support/engines.ts'
import { ask, type Sample } from '../support/load.ts'
import { makeRecord, withDocument } from '../support/records.ts'
import { type Answer, assertError, type Service, startService } from '../support/service.ts'

const apiKey = 'sk_test_sandbox'

test('300 downloads at once of one token leave another customer’s download and detail as they are', async t => {
  const account = createAccount({ seed: 3, invoices: 120 })
  const paid = [...account.invoices.values()].filter(
    ({ customer, status }) => typeof customer === 'string' && status === 'paid',
  )
  const [mine] = paid
  const other = paid.find(({ customer }) => customer !== mine?.customer)
  assert.ok(mine !== undefined && other !== undefined)
  // 25 a second is what Stripe takes in its test mode; here the PDFs are counted as well, so a download counts twice.
  const sandbox = await startStripeSandbox({ account, ratePerSecond: 50 })
  t.after(() => sandbox.close())
  const cli = await createCli(t)
  await cli.load(...[mine, other].map(storedOf))
  const token = await cli.createToken(String(mine.customer))
  const others = await cli.createToken(String(other.customer))
  const api = await cli.serve([], { env: { STRIPE_API_KEY: apiKey, STRIPE_API_BASE: sandbox.address } })
  const path = ({ id, customer }: StripeInvoice) => `${api.address}/api/v1/client/${customer}/invoice/${id}`

  let isDone = false
  const crowd = Promise.all(
    Array.from({ length: 300 }, () => ask(`${path(mine)}/payments/download`, token)),
  ).finally(() => {
    isDone = true
  })
  const downloads: Sample[] = []
  const details: Sample[] = []
  while (!isDone) {
    downloads.push(await ask(`${path(other)}/payments/download`, others))
    details.push(await ask(path(other), others))
    await sleep(600)
  }
  for (const { status, text } of downloads) {
    assert.equal(status, 200, text)
    assert.equal(text, createPdf(other).toString())
  }
  for (const { status, text } of details) {
    assert.equal(status, 200)
    assert.equal(JSON.parse(text).lines_source, 'payments')
  }
  const answers = Map.groupBy(await crowd, ({ status }) => status)
  const slowest = Math.max(...downloads.map(({ took }) => took))
  const { 200: served = [], 429: refused = [] } = Object.fromEntries(answers)
  t.diagnostic(
    `of 300 at once ${served.length} served, ${refused.length} refused; meanwhile ${downloads.length} downloads ` +
      `and ${details.length} details of another customer, all served, the slowest download in ${slowest.toFixed(0)} ms`,
  )
  assert.equal(served.length + refused.length, 300, `${[...answers.keys()]}`)
  assert.ok(served.length >= 40, `${served.length} served`)
  assert.ok(downloads.length >= 4, `${downloads.length} downloads meanwhile`)
  // Behind the crowd it would be refused, after ten seconds.
  assert.ok(slowest < campaign(8_000, 3_000), `${slowest} ms`)
  for (const { text } of served) assert.equal(text, createPdf(mine).toString())
  for (const { text, headers } of refused) {
    assert.equal(JSON.parse(text).error.code, 'rate_limited')
    assert.equal(headers['retry-after'], '5')
  }
})

function storedOf(invoice: StripeInvoice) {
  const mapped = mapInvoice(invoice as unknown as Stripe.Invoice, new Map(), null, [])
  assert.ok('invoice' in mapped)
  return mapped.invoice
}

interface Opened {
  id: string
  /** Sends what is missing of the PDF. */
  end(): void
}

/** Both systems: each PDF stays under way until the test ends it. */
function createSlowSources() {
  const opened: Opened[] = []
  const open = (id: string | number) => {
    const body = new PassThrough()
    body.write('%PDF-1.7\n')
    opened.push({ id: String(id), end: () => void body.end('end') })
    return { body, size: null }
  }
  const payments: PaymentPlatform = { fetchLines: async () => null, openPdf: async id => open(id) }
  const documents: InvoicingSystem = { openPdf: async id => open(id) }
  return { opened, payments, documents }
}

const pathOf = (customer: string, kind = 'payments', invoice = `in_${customer}`) =>
  `/api/v1/client/${customer}/invoice/${invoice}/${kind}/download`

async function startSlow(t: TestContext, engine: Engine, customers: readonly string[]) {
  const { opened, ...sources } = createSlowSources()
  const service = await startService(t, engine, {
    ...sources,
    records: customers.map(customer_id =>
      makeRecord({ id: `in_${customer_id}`, customer_id, ...withDocument }),
    ),
  })
  return { service, opened }
}

/** So many at once; resolves with the answers. */
const askFor = (count: number, service: Service, token: string, customer: string): Promise<Answer[]> =>
  Promise.all(Array.from({ length: count }, () => service.get(pathOf(customer), { token })))

const idle = () => sleep(150)

/** Resolves once the service has got to what reached it before: these go the same way, up to the wait for a turn. */
async function comeAfter(service: Service, token: string): Promise<void> {
  await idle()
  for (let time = 0; time < 3; time++)
    assert.equal((await service.get('/api/v1/client/cus_ana/invoice/in_cus_ana', { token })).status, 200)
}

for (const engine of engines)
  describe(`fair downloads on ${engine.name}`, { concurrency: 4 }, () => {
    test('of one customer four are under way at once, each until its last byte; the others wait', async t => {
      const { service, opened } = await startSlow(t, engine, ['cus_ana', 'cus_bob'])
      const [ana, bob] = [await service.createToken(), await service.createToken()]
      const answers = askFor(6, service, ana, 'cus_ana')
      await eventually('four are open', () => opened.length === 4)
      await idle()
      assert.equal(opened.length, 4)
      // The other kind comes from another system, and bob is somebody else.
      const others = [
        service.get(pathOf('cus_ana', 'ix'), { token: ana }),
        service.get(pathOf('cus_bob'), { token: bob }),
        service.get(pathOf('cus_bob'), { token: ana }),
      ]
      await eventually('they are open too', () => opened.length === 7)
      opened[0]?.end()
      await eventually('one more may', () => opened.length === 8)
      await idle()
      assert.equal(opened.length, 8)
      const ending = setInterval(() => {
        for (const { end } of opened) end()
      }, 20)
      for (const { status, text } of [...(await answers), ...(await Promise.all(others))])
        assert.deepEqual([status, text], [200, '%PDF-1.7\nend'])
      clearInterval(ending)
      assert.equal(opened.length, 9)
    })

    test('a client that goes away gives its turn back, or its place among those who wait', async t => {
      const { service, opened } = await startSlow(t, engine, ['cus_ana'])
      const token = await service.createToken()
      const headers = { authorization: `Bearer ${token}` }
      const options = {
        host: '127.0.0.1',
        port: service.port,
        path: pathOf('cus_ana'),
        headers,
        agent: false,
      }
      const open = () => {
        const outgoing = request(options)
        outgoing.on('error', () => {})
        outgoing.on('response', ({ statusCode }) => assert.equal(statusCode, 200))
        outgoing.end()
        return outgoing
      }
      const running = Array.from({ length: 4 }, open)
      await eventually('four are open', () => opened.length === 4)
      const waiting = Array.from({ length: 3 }, open)
      await Promise.all(waiting.map(outgoing => once(outgoing, 'finish')))
      await comeAfter(service, token)
      for (const outgoing of waiting) outgoing.destroy()
      await comeAfter(service, token)
      for (const outgoing of running) outgoing.destroy()
      await comeAfter(service, token)
      assert.equal(opened.length, 4, 'whoever waited and left is not asked for')
      // HEAD does not wait for the PDF's end, so it ends its turn by itself.
      for (let time = 0; time < 5; time++)
        assert.equal((await service.get(pathOf('cus_ana'), { method: 'HEAD', token })).status, 200)
      assert.doesNotMatch(service.logs.join(''), /"level":[45]0/)
    })

    test('whoever does not get a turn in ten seconds is told so: 429 for its own crowd, 503 for that of others', async t => {
      const customers = Array.from({ length: 17 }, (_, index) => `cus_${index}`)
      const { service, opened } = await startSlow(t, engine, customers)
      const tokens = await Promise.all(Array.from({ length: 5 }, () => service.createToken()))
      const [crowding = '', ...rest] = tokens
      const answers: Promise<Answer[]>[] = []
      // 16 of a token, 64 in all.
      for (const token of tokens.slice(0, 4))
        for (const customer of customers.slice(0, 4)) answers.push(askFor(4, service, token, customer))
      await eventually('64 are open', () => opened.length === 64)
      const asked = performance.now()
      const own = service.get(pathOf('cus_0'), { token: crowding })
      const ofToken = service.get(pathOf('cus_16'), { token: crowding })
      const ofAll = service.get(pathOf('cus_16'), { token: rest.at(-1) ?? '' })
      // Nothing of this keeps a list or a detail from being answered.
      assert.equal((await service.list('', { customer: 'cus_0', token: crowding })).status, 200)
      for (const [answer, status, code] of [
        [own, 429, 'rate_limited'],
        [ofToken, 429, 'rate_limited'],
        [ofAll, 503, 'unavailable'],
      ] as const) {
        const refusal = await answer
        assertError(refusal, status, code)
        assert.equal(refusal.headers['retry-after'], '5')
      }
      const took = performance.now() - asked
      assert.ok(took >= 9_900 && took < 20_000, `${took} ms`)
      assert.equal(opened.length, 64)
      for (const { end } of opened) end()
      for (const answer of (await Promise.all(answers)).flat()) assert.equal(answer.status, 200)
    })

    test('those who wait are served in turn: tokens first, then the customers of a token', async t => {
      const customers = ['cus_a', 'cus_b', 'cus_c']
      const opened: string[] = []
      const service = await startService(t, engine, {
        records: customers.map(customer_id => makeRecord({ id: `in_${customer_id}`, customer_id })),
        payments: {
          // The upstream takes two a second, so that all but the first have to wait.
          perSecond: 2,
          fetchLines: async () => null,
          openPdf: async id => {
            opened.push(id.slice('in_cus_'.length))
            const body = new PassThrough()
            body.end('%PDF-1.7\n')
            return { body, size: null }
          },
        },
      })
      const [one, two] = [await service.createToken(), await service.createToken()]
      const crowd = askFor(6, service, one, 'cus_a')
      await eventually('the crowd stands', () => opened.length >= 2)
      await idle()
      const before = opened.length
      const later = [
        service.get(pathOf('cus_b'), { token: one }),
        service.get(pathOf('cus_c'), { token: two }),
      ]
      await Promise.all([crowd, ...later])
      const soon = opened.slice(before, before + 4)
      assert.ok(soon.includes('b') && soon.includes('c'), `nobody waits for the crowd: ${before} ${opened}`)
    })
  })

describe('the breaker', () => {
  const account = createAccount({ seed: 3, invoices: 60 })
  const [invoice] = [...account.invoices.values()].filter(
    ({ customer, status }) => typeof customer === 'string' && status === 'paid',
  )
  assert.ok(invoice !== undefined)

  async function startWorld(t: TestContext) {
    const sandbox = await startStripeSandbox({ account })
    t.after(() => sandbox.close())
    const [engine] = engines
    assert.ok(engine !== undefined && invoice !== undefined)
    const stored = storedOf(invoice)
    const service = await startService(t, engine, {
      payments: createPaymentPlatform({ apiKey, base: sandbox.address }),
      records: [{ invoice: stored, lines: null }],
    })
    const download = () => service.get(pathOf(stored.customer_id, 'payments', stored.id))
    const detail = () => service.get(`/api/v1/client/${stored.customer_id}/invoice/${stored.id}`)
    return { sandbox, service, download, detail, asked: () => sandbox.requests.get('retrieve_invoice') ?? 0 }
  }

  test('does not open when Stripe refuses what was asked, or how often: then Stripe works', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { sandbox, download, detail, asked } = await startWorld(t)
    sandbox.forbidden.add('invoices')
    for (let time = 0; time < 7; time++) {
      const refusal = await download()
      assertError(refusal, 502, 'upstream_failed')
      assert.equal(refusal.headers['retry-after'], undefined, 'it does not pass by itself')
    }
    assert.equal(asked(), 7)
    sandbox.forbidden.clear()
    for (let time = 0; time < 7; time++) {
      sandbox.faults.set('retrieve_invoice', 'too_many', { times: 1, retryAfter: '3' })
      const refusal = await download()
      assertError(refusal, 502, 'upstream_failed')
      assert.equal(refusal.headers['retry-after'], '3', 'what is left of the pause')
      t.mock.timers.tick(1_500)
      assert.equal((await download()).headers['retry-after'], '2')
      t.mock.timers.tick(1_500)
    }
    assert.equal((await download()).status, 200)
    assert.equal((await detail()).json.lines_source, 'payments')
  })

  test('tells with every failure that passes by itself when to come again', async t => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { sandbox, download } = await startWorld(t)
    for (const [route, fault] of [
      ['retrieve_invoice', 'error_503'],
      ['retrieve_invoice', 'reset'],
      ['pdf', 'error_500'],
      ['pdf', 'reset'],
    ] as const) {
      sandbox.faults.set(route, fault)
      const refusal = await download()
      sandbox.faults.clear()
      assertError(refusal, 502, 'upstream_failed')
      assert.equal(refusal.headers['retry-after'], '5', `${route} ${fault}`)
      assert.equal((await download()).status, 200)
    }
    sandbox.faults.set('retrieve_invoice', 'hang', { times: 1 })
    const late = await download()
    assertError(late, 504, 'upstream_timeout')
    assert.equal(late.headers['retry-after'], '5')
    assert.equal((await download()).status, 200)

    sandbox.faults.set('retrieve_invoice', 'error_500', { times: 5 })
    for (let time = 0; time < 5; time++) assert.equal((await download()).status, 502)
    for (const [passed, left] of [
      [0, '10'],
      [2_500, '8'],
      [7_400, '1'],
    ] as const) {
      t.mock.timers.tick(passed)
      const refusal = await download()
      assertError(refusal, 502, 'upstream_failed')
      assert.equal(refusal.headers['retry-after'], left, 'until the breaker lets one try')
    }
    t.mock.timers.tick(100)
    assert.equal((await download()).status, 200)
  })

  test('does not open when it is this process that has no time to listen', async t => {
    const { service, detail } = await startWorld(t)
    // Nothing else runs meanwhile, and the CPU is left to others.
    const blockFor = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    // Longer than Stripe may take for lines: all are late, though Stripe is not.
    const late = Array.from({ length: 6 }, () => detail())
    const blocking = setInterval(() => blockFor(800), 1)
    await Promise.all(late)
    clearInterval(blocking)
    assert.match(service.logs.join(''), /lines unavailable/, 'the test makes them late')
    const { json } = await detail()
    assert.equal(json.lines_source, 'payments')
  })
})
