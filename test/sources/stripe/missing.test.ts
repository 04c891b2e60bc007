/** What counts as "there is no such invoice": Stripe's own word about that very one, and nothing else. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type BillingSource, type PaymentPlatform, SourceError } from '../../../src/sources/source.ts'
import { createBillingSource } from '../../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { createPaymentPlatform } from '../../../src/sources/stripe/payment-platform.ts'

const id = 'in_1asked'

interface Upstream {
  source: BillingSource
  platform: PaymentPlatform
  /** How often it was asked. */
  asked(): number
}

async function answerWith(t: TestContext, status: number, type: string, body: string): Promise<Upstream> {
  let asked = 0
  const server = createServer((_request, response) => {
    asked++
    response.writeHead(status, { 'content-type': type }).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const options = { apiKey: 'sk_test_missing', base }
  const pace = { perSecond: 1_000, attempts: 1, patienceMs: 5_000 }
  return {
    source: createBillingSource(options, defaultKeys, pace),
    platform: createPaymentPlatform(options),
    asked: () => asked,
  }
}

const json = (value: object): [string, string] => ['application/json', JSON.stringify(value)]
const stripes = (message: string) =>
  json({ error: { code: 'resource_missing', message, param: 'invoice', type: 'invalid_request_error' } })

test('an invoice is deleted when Stripe says that it does not exist', async t => {
  const { source, platform, asked } = await answerWith(t, 404, ...stripes(`No such invoice: '${id}'`))
  assert.deepEqual(await source.fetchInvoice(id, 'cus_1'), { id, customer_id: 'cus_1', found: null })
  assert.equal(asked(), 1, 'an answer is not asked for again')
  assert.equal(await platform.fetchLines(id, AbortSignal.timeout(60_000)), null)
})

test('an invoice is deleted when Stripe sends a deleted draft', async t => {
  const { source } = await answerWith(t, 200, ...json({ id, object: 'invoice', deleted: true }))
  assert.equal((await source.fetchInvoice(id, null)).found, null)
})

const failures: [what: string, status: number, type: string, body: string, attempts: number][] = [
  ['a page of a gateway', 404, 'text/html', '<html><h1>404 Not Found</h1></html>', 2],
  ['an empty 404', 404, 'text/plain', '', 2],
  ["a gateway's JSON", 404, ...json({ message: 'no Route matched with those values' }), 2],
  ["a gateway's error", 404, ...json({ error: { code: 404, message: `${id} not found` } }), 2],
  [
    "a gateway's message about the invoice",
    404,
    ...json({ error: { code: 'not_found', message: `'${id}' not found` } }),
    2,
  ],
  ["a gateway's error as text", 404, ...json({ error: 'not_found' }), 2],
  [
    'an address that Stripe does not know',
    404,
    ...json({ error: { message: 'Unrecognized request URL' } }),
    2,
  ],
  ["Stripe's message about another object", 404, ...stripes(`No such invoice: 'in_1other'`), 2],
  ["Stripe's message about an ID with the same beginning", 404, ...stripes(`No such invoice: '${id}2'`), 2],
  [
    'an invoice of the other mode',
    404,
    ...stripes(
      `No such invoice: '${id}'; a similar object exists in live mode, but a test mode key was used to make this request.`,
    ),
    1,
  ],
  ['another deleted draft', 200, ...json({ id: 'in_1other', object: 'invoice', deleted: true }), 2],
]
for (const [what, status, type, body, attempts] of failures)
  test(`${what} is a failure, and no invoice is deleted`, async t => {
    const { source, platform, asked } = await answerWith(t, status, type, body)
    const isFailed = (error: unknown) => error instanceof SourceError && error.failure === 'failed'
    await assert.rejects(source.fetchInvoice(id, 'cus_1'), isFailed)
    assert.equal(asked(), attempts)
    // A cursor or a customer that is gone is told by Stripe too, and by nobody else.
    if (!body.includes('resource_missing'))
      await assert.rejects(source.listInvoices(null, { customerId: 'cus_1' }), isFailed)
    await assert.rejects(platform.fetchLines(id, AbortSignal.timeout(60_000)), isFailed)
    const failure = status >= 400 ? 'failed' : 'not_ready'
    await assert.rejects(platform.openPdf(id, AbortSignal.timeout(60_000)), { failure })
  })
