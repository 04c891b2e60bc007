/** One customer's downloads, however many at once, are no trouble of another's. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stripe } from 'stripe'
import { createPdf } from '../../sandbox/pdf.ts'
import { createAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import type { InvoicingSystem, PaymentPlatform } from '../../src/sources.ts'
import { mapInvoice } from '../../src/stripe/map-invoice.ts'
import { campaign } from '../support/campaign.ts'
import { createCli, eventually } from '../support/cli.ts'
import { type Engine, engines } from '../support/engines.ts'
import { ask, type Sample } from '../support/load.ts'
import { assertWithin } from '../support/machine-speed.ts'
import { makeRecord, withDocument } from '../support/records.ts'
import { type Answer, assertError, type Service, startService } from '../support/service.ts'

const apiKey = 'sk_test_sandbox'

/** A refusal takes ten seconds, and then some where the machine is slow. */
const patienceMs = 120_000

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
  const payments: PaymentPlatform = {
    fetchLines: async () => null,
    openPdf: async id => open(id),
    findPaymentPage: async () => null,
  }
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

const [anyEngine] = engines as readonly [Engine]

// Some wait for ten seconds, in which little happens: at once.
describe('fair downloads', { concurrency: true }, () => {
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

    let answered = 0
    const one = async () => {
      const sample = await ask(`${path(mine)}/payments/download`, token, new Agent(), patienceMs)
      answered++
      return sample
    }
    const crowd = Promise.all(Array.from({ length: 300 }, one))
    await eventually('the crowd is being served', () => answered > 0)
    const downloads: Sample[] = []
    const details: Sample[] = []
    while (answered < 300) {
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
    assertWithin(slowest, campaign(8_000, 3_000))
    for (const { text } of served) assert.equal(text, createPdf(mine).toString())
    for (const { text, headers } of refused) {
      assert.equal(JSON.parse(text).error.code, 'rate_limited')
      assert.equal(headers['retry-after'], '5')
    }
  })

  test('a client that goes away gives its turn back, or its place among those who wait', async t => {
    const { service, opened } = await startSlow(t, anyEngine, ['cus_ana'])
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
    const { service, opened } = await startSlow(t, anyEngine, customers)
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
    assert.ok(took >= 9_900, `${took} ms`)
    assertWithin(took, 20_000)
    assert.equal(opened.length, 64)
    for (const { end } of opened) end()
    for (const answer of (await Promise.all(answers)).flat()) assert.equal(answer.status, 200)
  })

  test('those who wait are served in turn: tokens first, then the customers of a token', async t => {
    const customers = ['cus_a', 'cus_b', 'cus_c']
    const opened: string[] = []
    const service = await startService(t, anyEngine, {
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
    const later = [service.get(pathOf('cus_b'), { token: one }), service.get(pathOf('cus_c'), { token: two })]
    await Promise.all([crowd, ...later])
    const soon = opened.slice(before, before + 4)
    assert.ok(soon.includes('b') && soon.includes('c'), `nobody waits for the crowd: ${before} ${opened}`)
  })

  for (const engine of engines)
    test(`of one customer four are under way at once, each until its last byte; the others wait, on ${engine.name}`, async t => {
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
})
