/** How wrong the store is: measured against a sandbox, on every engine. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimate, readDrift } from '../../src/drift/estimate.ts'
import { createDriftMeasure, type DriftOptions } from '../../src/drift/measure-drift.ts'
import type { InvoiceKey } from '../../src/invoice.ts'
import { usualRules } from '../../src/linking/link.ts'
import { engines } from '../support/engines.ts'
import { type Rig, startRig } from '../support/sync.ts'

function measure({ store, source }: Rig, given: Partial<DriftOptions> = {}) {
  const told: { key: InvoiceKey; fields: readonly string[] }[] = []
  const run = createDriftMeasure({
    ...{ store, payments: source, documents: null, rules: usualRules },
    onDifference: (key, fields) => told.push({ key, fields }),
    wait: async () => {},
    ...given,
  })
  return { run, told }
}

describe('the estimate', () => {
  it('says nothing before anything was compared', () => {
    assert.deepEqual(estimate({ compared: 0, differing: 0 }), {
      ...{ compared: 0, differing: 0, ratio: null, ratio_at_most: null },
    })
  })

  it('bounds the share from above, more closely with every comparison, also when nothing differs', () => {
    const bound = (compared: number, differing: number) =>
      estimate({ compared, differing }).ratio_at_most as number
    assert.ok(Math.abs(bound(1_000, 0) - 0.0027) < 0.0001)
    assert.ok(Math.abs(bound(100, 10) - 0.1604) < 0.001)
    assert.ok(bound(4_000, 0) < bound(1_000, 0))
    assert.equal(bound(3, 3), 1)
  })

  it('holds: of many samples from a store with a known share, at most 5 % lie below it by chance', () => {
    let seed = 7
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const [share, samples] = [0.02, 2_000]
    let missed = 0
    for (let sample = 0; sample < samples; sample++) {
      const differing = Array.from({ length: 500 }, random).filter(each => each < share).length
      if ((estimate({ compared: 500, differing }).ratio_at_most as number) < share) missed++
    }
    assert.ok(missed / samples < 0.07, `${missed} of ${samples}`)
  })
})

for (const engine of engines)
  describe(`drift: ${engine.name}`, () => {
    it('compares a few stored invoices at a time with their source, and adds them up', async t => {
      const rig = await startRig(t, engine, { invoices: 30 })
      await rig.connector.backfill()
      const { run, told } = measure(rig)
      assert.deepEqual((await readDrift(rig.store)).compared, 0)
      for (let round = 0; round < 4; round++) await run()
      const { compared, differing, ratio } = await readDrift(rig.store)
      assert.deepEqual(
        { compared, differing, ratio, told },
        { compared: 12, differing: 0, ratio: 0, told: [] },
      )
    })

    it('counts what differs at two looks, and not what the connector brought in between', async t => {
      const rig = await startRig(t, engine, { invoices: 20 })
      await rig.connector.backfill()
      await rig.connector.catchUp()
      const open = [...rig.account.invoices.values()].filter(({ status }) => status === 'open')
      const [first, ...others] = open.map(({ id }) => id)
      assert.ok(first !== undefined && others.length > 0)
      rig.account.change('pay', first)
      let seconds = 0
      const wait = async () => {
        seconds++
        await rig.connector.catchUp()
      }
      const late = measure(rig, { wait })
      for (let round = 0; round < 30 && seconds === 0; round++) await late.run()
      assert.deepEqual([seconds, late.told], [1, []])
      assert.equal((await readDrift(rig.store)).differing, 0)

      for (const id of others) rig.account.change('pay', id)
      const { run, told } = measure(rig)
      for (let round = 0; round < 30 && told.length === 0; round++) await run()
      assert.equal((await readDrift(rig.store)).differing, told.length)
      assert.ok(
        told.length > 0 &&
          told.every(({ key, fields }) => others.includes(key.id) && fields.includes('status')),
      )
    })

    it('walks the whole store: after enough rounds every invoice was compared', async t => {
      const rig = await startRig(t, engine, { invoices: 12 })
      await rig.connector.backfill()
      const asked = new Set<string>()
      const payments: DriftOptions['payments'] = {
        fetchInvoice(id, customerId, urgency) {
          asked.add(id)
          assert.equal(urgency, 'slowly')
          return rig.source.fetchInvoice(id, customerId, urgency)
        },
      }
      const { run } = measure(rig, { payments })
      const stored = await rig.store.readInvoices(null, 100)
      for (let round = 0; round < 20 && asked.size < stored.length; round++) await run()
      assert.equal(asked.size, stored.length)
    })

    it('leaves out what cannot be compared, and forgets what is older than a week', async t => {
      const rig = await startRig(t, engine, { invoices: 6 })
      await rig.connector.backfill()
      rig.sandbox.faults.set('retrieve_invoice', 'error_500', { times: 100 })
      const { run } = measure(rig)
      await run()
      assert.equal((await readDrift(rig.store)).compared, 0)
      rig.sandbox.faults.clear()
      const aWeekAgo = Date.now() - 8 * 24 * 60 * 60_000
      await measure(rig, { now: () => aWeekAgo }).run()
      assert.equal((await readDrift(rig.store, aWeekAgo)).compared, 3)
      await run()
      assert.equal((await readDrift(rig.store, aWeekAgo)).compared, 3, 'the hour of today alone')
    })
  })
