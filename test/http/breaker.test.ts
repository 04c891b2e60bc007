/** The breaker between this service and a payment platform: when it opens, and what clients are told. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Stripe } from 'stripe'
import { createAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { mapInvoice } from '../../src/stripe/map-invoice.ts'
import { createPaymentPlatform } from '../../src/stripe/payment-platform.ts'
import { engines } from '../support/engines.ts'
import { assertError, startService } from '../support/service.ts'

const apiKey = 'sk_test_sandbox'

function storedOf(invoice: StripeInvoice) {
  const mapped = mapInvoice(invoice as unknown as Stripe.Invoice, new Map(), null, [])
  assert.ok('invoice' in mapped)
  return mapped.invoice
}

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
    const { sandbox, service, detail } = await startWorld(t)
    // Nothing else runs meanwhile, and the CPU is left to others.
    const blockFor = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    // Longer than Stripe may take for lines: all are late, though Stripe is not.
    const late = Array.from({ length: 6 }, () => detail())
    const blocking = setInterval(() => {
      if ((sandbox.requests.get('list_lines') ?? 0) > 0) blockFor(800)
    }, 1)
    await Promise.all(late)
    clearInterval(blocking)
    assert.match(service.logs.join(''), /lines unavailable/, 'the test makes them late')
    const { json } = await detail()
    assert.equal(json.lines_source, 'payments')
  })
})
