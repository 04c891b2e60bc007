/** The payment page: Stripe's own page of an open invoice, asked for at each request. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Stripe } from 'stripe'
import { createAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { invoiceStatuses } from '../../src/domain/invoice.ts'
import { createPaymentPlatform } from '../../src/sources/stripe/payment-platform.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { mapStored } from '../support/worlds/map-stored.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { assertError, type ServiceOptions, startService } from '../support/worlds/service.ts'

const apiKey = 'sk_test_sandbox'
const ownPath = (id: string) => `/api/v1/client/cus_ana/invoice/${id}/payments/page`

async function startWorld(t: TestContext, engine: Engine, options: ServiceOptions = {}) {
  const account = createAccount({ seed: 3, invoices: 60 })
  const sandbox = await startStripeSandbox({ account })
  t.after(() => sandbox.close())
  const invoice = [...account.invoices.values()].find(
    ({ customer, status }) => typeof customer === 'string' && status === 'open',
  )
  assert.ok(invoice !== undefined)
  const mapped = mapStored(invoice as unknown as Stripe.Invoice, new Map(), null, [])
  assert.ok('invoice' in mapped)
  const service = await startService(t, engine, {
    payments: createPaymentPlatform({ apiKey, base: sandbox.address }),
    records: [{ invoice: mapped.invoice, lines: null }],
    ...options,
  })
  const path = `/api/v1/client/${mapped.invoice.customer_id}/invoice/${invoice.id}/payments/page`
  // With a token of its own each: those of one wait for each other.
  const ask = async () => service.get(path, { token: await service.createToken() })
  return { account, sandbox, service, invoice, path, ask }
}

for (const engine of engines)
  describe(`the payment page on ${engine.name}`, () => {
    test('is Stripe’s page of an open invoice until it is paid, and its address is not logged', async t => {
      const { account, sandbox, service, invoice, path, ask } = await startWorld(t, engine)
      const answer = await ask()
      assert.deepEqual([answer.status, Object.keys(answer.json)], [200, ['url']])
      assert.equal(answer.headers['cache-control'], 'private, no-store')
      const { url } = answer.json
      assert.equal(new URL(url).origin, sandbox.address)
      assert.match(await (await fetch(url)).text(), new RegExp(`${invoice.number}[^]*<button>Pay`))
      assert.equal((await fetch(`${url}x`)).status, 404, 'the address holds a secret')
      assert.equal((await service.get(path, { method: 'HEAD' })).status, 200)

      assert.match(await (await fetch(url, { method: 'POST' })).text(), /This invoice is paid/)
      assert.equal(account.invoices.get(invoice.id)?.status, 'paid')
      assert.ok(
        account.events.some(({ type, data }) => type === 'invoice.paid' && data.object.id === invoice.id),
      )
      const events = account.events.length
      assert.match(await (await fetch(url, { method: 'POST' })).text(), /This invoice is paid/)
      assert.equal(account.events.length, events, 'once')
      // Stored as open still: Stripe knows better.
      assertError(await ask(), 409, 'not_payable')

      const secret = url.split('/').at(-1)
      assert.ok(secret.length > 20 && service.logs.length > 2)
      for (const line of service.logs) assert.ok(!line.includes(secret), line)
    })

    test('answers 409 for a draft, paid, void or uncollectible invoice without asking Stripe', async t => {
      const records = invoiceStatuses.map(status => makeRecord({ id: `in_${status}`, status }))
      const asked: string[] = []
      const findPaymentPage = async (id: string) => {
        asked.push(id)
        return 'https://invoice.stripe.com/i/x'
      }
      const payments = { fetchLines: async () => null, openPdf: () => assert.fail(), findPaymentPage }
      const service = await startService(t, engine, { records, payments })
      for (const status of invoiceStatuses.filter(status => status !== 'open'))
        assertError(await service.get(ownPath(`in_${status}`)), 409, 'not_payable')
      assertError(await service.get(ownPath('in_none')), 404, 'invoice_not_found')
      assert.equal((await service.get(ownPath('in_open'))).status, 200)
      assert.deepEqual(asked, ['in_open'])
      const token = await service.createToken({ customers: ['cus_bob'] })
      assertError(await service.get(ownPath('in_open'), { token }), 403, 'insufficient_scope')
    })

    test('is an unknown route with PAY=off, and answers 502 without Stripe', async t => {
      const records = [makeRecord({ id: 'in_open', status: 'open' })]
      const off = await startService(t, engine, { records, pay: false })
      assertError(await off.get(ownPath('in_open')), 404, 'route_not_found')
      const service = await startService(t, engine, { records })
      assertError(await service.get(ownPath('in_open')), 502, 'upstream_failed')
    })
  })

describe('the payment page with a failing Stripe', () => {
  const [engine] = engines
  assert.ok(engine !== undefined)

  test('answers 502 for a page at another origin than Stripe’s, and 409 when there is no page', async t => {
    const { account, service, invoice, ask } = await startWorld(t, engine)
    const rename = (hosted_invoice_url: string | null) => {
      const stored = account.invoices.get(invoice.id) as StripeInvoice
      // The sandbox puts its own address before a path.
      account.invoices.set(invoice.id, { ...stored, hosted_invoice_url })
    }
    for (const evil of ['.evil.example/i/x', '@evil.example/i/x', '1/i/x']) {
      rename(evil)
      const answer = await ask()
      assertError(answer, 502, 'upstream_failed')
      assert.doesNotMatch(answer.text + service.logs.join(''), /evil/)
    }
    // Of a draft that Stripe finalizes only now.
    account.invoices.set(invoice.id, {
      ...invoice,
      status: 'draft',
      invoice_pdf: null,
      hosted_invoice_url: null,
    })
    assertError(await ask(), 409, 'not_payable')
    account.invoices.delete(invoice.id)
    assertError(await ask(), 409, 'not_payable')
  })

  test('answers 502 after a failure, and without asking Stripe after five failures', async t => {
    const { sandbox, ask } = await startWorld(t, engine)
    sandbox.faults.set('retrieve_invoice', 'error_500')
    for (let time = 0; time < 7; time++) assertError(await ask(), 502, 'upstream_failed')
    assert.equal(sandbox.requests.get('retrieve_invoice'), 5)
  })
})
