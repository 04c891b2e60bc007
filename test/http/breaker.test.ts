/** The breaker between this service and a payment platform: when it opens, and what clients are told. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Stripe } from 'stripe'
import { createAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { createPaymentPlatform } from '../../src/sources/stripe/payment-platform.ts'
import { engines } from '../support/databases/engines.ts'
import { mapStored } from '../support/worlds/map-stored.ts'
import { assertError, startService } from '../support/worlds/service.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'

const apiKey = 'sk_test_sandbox'

function storedOf(invoice: StripeInvoice) {
  const mapped = mapStored(invoice as unknown as Stripe.Invoice, new Map(), null, [])
  assert.ok('invoice' in mapped)
  return mapped.invoice
}

describe('the breaker for Stripe', () => {
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
    const path = `/api/v1/client/${stored.customer_id}/invoice/${stored.id}`
    const service = await startService(t, engine, {
      payments: createPaymentPlatform({ apiKey, base: sandbox.address }),
      records: [{ invoice: stored, lines: null }],
    })
    // With a token of its own: the downloads of one wait for each other.
    const download = async () =>
      service.get(`${path}/payments/download`, { token: await service.createToken() })
    const detail = () => service.get(path)
    return { sandbox, service, download, detail, asked: () => sandbox.requests.get('retrieve_invoice') ?? 0 }
  }

  test('stays closed when Stripe refuses a request or limits its rate', {
    timeout: 600_000,
  }, async t => {
    const clock = stopClock(t)
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
      await clock.pass(1_500)
      assert.equal((await download()).headers['retry-after'], '2')
      await clock.pass(1_500)
    }
    assert.equal((await download()).status, 200)
    await until(async () => (await detail()).json.lines_source === 'payments')
  })

  test('gives a Retry-After for every temporary failure', { timeout: 600_000 }, async t => {
    const clock = stopClock(t)
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
    const asked = sandbox.requests.get('retrieve_invoice') ?? 0
    const hanging = download()
    await until(() => (sandbox.requests.get('retrieve_invoice') ?? 0) > asked)
    await clock.pass(5_000)
    const late = await hanging
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
      await clock.pass(passed)
      const refusal = await download()
      assertError(refusal, 502, 'upstream_failed')
      assert.equal(refusal.headers['retry-after'], left, 'until the breaker lets one try')
    }
    await clock.pass(100)
    assert.equal((await download()).status, 200)
  })

  test('stays closed when our own process is too busy to read Stripe’s answers', {
    timeout: 600_000,
  }, async t => {
    const clock = stopClock(t)
    const { sandbox, service, detail } = await startWorld(t)
    sandbox.faults.set('list_lines', 'hang', { times: 6 })
    const before = performance.eventLoopUtilization()
    const late = Array.from({ length: 6 }, () => detail())
    // In turns of the event loop that never sleep: time asleep would have to be made up for below, twenty times.
    while (sandbox.requests.get('list_lines') !== 6) await new Promise(setImmediate)
    // Nothing else runs in this process meanwhile, and the CPU is left to others.
    while (performance.eventLoopUtilization(before).utilization < 0.95)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    await clock.pass(1_000)
    for (const { json } of await Promise.all(late)) assert.equal(json.lines_source, 'none')
    assert.equal(service.logs.filter(line => line.includes('line items unavailable')).length, 6)
    // By a clock that stands still, an open breaker stays open.
    await until(async () => (await detail()).json.lines_source === 'payments')
  })
})
