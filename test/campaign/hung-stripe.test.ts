/** What a Stripe that hangs costs the detail of an invoice, in true time; test/sources/stripe/payment-platform.test.ts has what is right about it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { createPaymentPlatform } from '../../src/sources/stripe/payment-platform.ts'
import { reportFigure } from '../support/checks/campaign.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

test('a detail takes one second at most while Stripe hangs, and 50 ms once the breaker is open', async t => {
  const [sqlite = assert.fail()] = engines
  const sandbox = await startStripeSandbox({ invoices: 1 })
  t.after(() => sandbox.close())
  sandbox.faults.set('list_lines', 'hang')
  const payments = createPaymentPlatform({ apiKey: 'sk_test_sandbox', base: sandbox.address })
  const service = await startService(t, sqlite, { payments, records: [makeRecord({ id: 'in_1' })] })
  const token = await service.createToken()
  const measure = async () => {
    const began = performance.now()
    const { status, json } = await service.get('/api/v1/client/cus_ana/invoice/in_1', { token })
    assert.deepEqual([status, json.lines_source], [200, 'none'])
    return performance.now() - began
  }
  const times = async (count: number) => {
    const tookMs: number[] = []
    while (tookMs.length < count) tookMs.push(await measure())
    return tookMs
  }
  const hung = await times(5)
  assert.equal(sandbox.requests.get('list_lines'), 5)
  const open = await times(30)
  assert.equal(sandbox.requests.get('list_lines'), 5, 'not asked while it is left alone')
  reportFigure(
    t,
    'R5',
    `hung ${median(hung).toFixed(0)} ms (median), ${Math.max(...hung).toFixed(0)} ms at most, ` +
      `left alone ${median(open).toFixed(1)} ms (median), ${Math.max(...open).toFixed(1)} ms at most`,
  )
  assert.ok(Math.max(...hung) <= 1_000)
  assert.ok(median(open) <= 50)
})
