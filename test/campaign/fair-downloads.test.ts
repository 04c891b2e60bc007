/** One customer's crowd of downloads over a Stripe that takes only so many a second, beside another customer. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stripe } from 'stripe'
import { createPdf } from '../../sandbox/pdf.ts'
import { createAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { createCli, eventually } from '../support/clients/cli.ts'
import { ask, type Sample } from '../support/clients/load.ts'
import { mapStored } from '../support/worlds/map-stored.ts'

const apiKey = 'sk_test_sandbox'

/** A refusal takes ten seconds. */
const patienceMs = 60_000

function storedOf(invoice: StripeInvoice) {
  const mapped = mapStored(invoice as unknown as Stripe.Invoice, new Map(), null, [])
  assert.ok('invoice' in mapped)
  return mapped.invoice
}

test('300 downloads of one token at once do not delay another customer’s download and detail', async t => {
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
  assert.ok(slowest <= 3_000, `${slowest} ms`)
  for (const { text } of served) assert.equal(text, createPdf(mine).toString())
  for (const { text, headers } of refused) {
    assert.equal(JSON.parse(text).error.code, 'rate_limited')
    assert.equal(headers['retry-after'], '5')
  }
})
