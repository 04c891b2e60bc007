/** A long list that is read in parts: at each moment, what is not stored yet is left to read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { startStripeSandbox } from '../../sandbox/stripe/server.ts'
import { createBillingSource } from '../../src/sources/stripe/billing-source.ts'
import { defaultKeys } from '../../src/sources/stripe/map-claim.ts'
import { listRanges } from '../../src/sync/invoices/list-ranges.ts'
import { type Range, wholeList } from '../../src/sync/invoices/ranges.ts'
import { until } from '../support/worlds/stopped-clock.ts'

test('a range’s cursor stays before a page that cannot be stored, even when later pages are stored', {
  timeout: 600_000,
}, async t => {
  const sandbox = await startStripeSandbox({ invoices: 3_000, lines: 1, seed: 5 })
  t.after(() => sandbox.close())
  const { invoices, order } = sandbox.account
  const source = createBillingSource({ apiKey: 'sk_test_sandbox', base: sandbox.address }, defaultKeys)
  const stored = new Set<string>()
  let left: readonly Range[] = [wholeList]
  let stamp = 0
  let tries = 0
  let underWay = 0
  let failures = 0

  const isLeft = (id: string): boolean => {
    const invoice = invoices.get(id)
    assert.ok(invoice)
    const position = order.positionOf(invoice)
    return left.some(({ from, before, after }) => {
      const last = after === null ? undefined : invoices.get(after)
      return (
        invoice.created >= (from ?? 0) &&
        invoice.created < (before ?? Number.POSITIVE_INFINITY) &&
        position < (last === undefined ? Number.POSITIVE_INFINITY : order.positionOf(last))
      )
    })
  }

  const run = () =>
    listRanges({
      source,
      log: pino({ level: 'silent' }),
      signal: new AbortController().signal,
      ranges: left,
      // Few, so that a part has several pages.
      parallel: 4,
      commits: {
        async ask(question) {
          underWay++
          try {
            return { ...(await question()), askedAt: ++stamp, answeredAt: ++stamp }
          } finally {
            underWay--
          }
        },
      },
      async store(pages, then) {
        // As slow as a disk: pages wait for each other, until no part asks for more.
        await until(() => underWay === 0)
        if (++tries % 3 === 0) throw new Error('no room')
        for (const { answers, unfit } of pages) for (const { id } of [...answers, ...unfit]) stored.add(id)
        left = then
        const lost = [...invoices.keys()].filter(id => !stored.has(id) && !isLeft(id))
        assert.deepEqual(lost, [], 'each is stored, or left to read')
      },
    })

  while (left.length > 0)
    await run().catch(error => {
      assert.equal(error.message, 'no room')
      failures++
    })
  assert.deepEqual(stored, new Set(invoices.keys()))
  assert.ok(failures > 0, `${failures} failures`)
})
