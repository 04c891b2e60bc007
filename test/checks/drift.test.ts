/** Drift of the store: measured against a sandbox, and put right, on every engine. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRandom } from '../../sandbox/random.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import { checkDrift, formatDrift } from '../../src/checks/check-drift.ts'
import { createReport, type Finding } from '../../src/checks/findings.ts'
import { createDriftMeasure, type DriftOptions } from '../../src/checks/measure-drift.ts'
import { noClaim } from '../../src/document.ts'
import type { InvoiceKey } from '../../src/invoice.ts'
import { usualRules } from '../../src/linking/link.ts'
import { readDrift } from '../../src/metrics/drift-estimate.ts'
import type { WriteStore } from '../../src/store/store.ts'
import { anyOrdinary, startDocuments } from '../support/documents.ts'
import { engines } from '../support/engines.ts'
import { makeInvoice } from '../support/records.ts'
import { assertTrue, createDirectSource, openStores, type Rig, startRig } from '../support/sync.ts'

const random = createRandom(1)

function measure({ store, source, connector }: Rig, given: Partial<DriftOptions> = {}) {
  const told: { key: InvoiceKey; fields: readonly string[] }[] = []
  const run = createDriftMeasure({
    ...{ store, payments: source, documents: null, rules: usualRules },
    onDifference: (key, fields) => told.push({ key, fields }),
    repair: key => connector.refetch(key),
    async repairNear(customerId, created) {
      const { changed, deleted } = await connector.refetchNear(customerId, created)
      return changed + deleted
    },
    wait: async () => {},
    random,
    ...given,
  })
  return { run, told }
}

async function dayOf(store: WriteStore, now?: number) {
  return (await readDrift(store, now))['24h']
}

async function doctorOf(store: WriteStore): Promise<Finding> {
  const findings: Finding[] = []
  await checkDrift(
    createReport(
      () => {},
      finding => findings.push(finding),
    ),
    store,
  )
  return findings[0] ?? assert.fail()
}

/** Paid, and of a customer that is one of ours. */
function paidOf({ account }: Rig): StripeInvoice[] {
  return [...account.invoices.values()].filter(
    ({ status, customer }) => status === 'paid' && String(customer).startsWith('cus_'),
  )
}

for (const engine of engines)
  describe(`drift: ${engine.name}`, () => {
    it('compares a few stored invoices at a time with their source, and adds them up', async t => {
      const rig = await startRig(t, engine, { invoices: 30 })
      await rig.connector.backfill()
      const { run, told } = measure(rig)
      assert.equal((await dayOf(rig.store)).compared, 0)
      assert.deepEqual(formatDrift(await readDrift(rig.store)), [])
      await assert.rejects(doctorOf(rig.store), 'there is nothing to report')
      for (let round = 0; round < 8; round++) await run()
      const first = await dayOf(rig.store)
      assert.ok(first.compared > 8 && first.compared <= 24, `${first.compared}`)
      // The moments that are listed are drawn at random, and few have an invoice.
      for (let round = 0; round < 100 && (await dayOf(rig.store)).listed === 0; round++) await run()
      const { compared, differing, ratio, listed, missing, repaired } = await dayOf(rig.store)
      assert.ok(listed > 0)
      assert.deepEqual([differing, ratio, missing, repaired, told], [0, 0, 0, 0, []])
      assert.deepEqual((await readDrift(rig.store))['2h'].compared, compared)
      assert.equal((await doctorOf(rig.store)).result, 'ok')
    })

    it('counts what differs at two looks, and not what the connector brought in between', async t => {
      const rig = await startRig(t, engine, { invoices: 20 })
      await rig.connector.backfill()
      await rig.connector.catchUp()
      const [open] = [...rig.account.invoices.values()].filter(({ status }) => status === 'open')
      rig.account.change('pay', open?.id ?? '')
      let waited = 0
      const wait = async () => {
        waited++
        await rig.connector.catchUp()
      }
      const { run, told } = measure(rig, { wait })
      for (let round = 0; round < 60 && waited === 0; round++) await run()
      assert.deepEqual([waited, told], [1, []])
      assert.equal((await dayOf(rig.store)).differing, 0)
    })

    it('puts right what differs, and others of its customer and its hour', async t => {
      const rig = await startRig(t, engine, { invoices: 160, days: 2, lines: 1, now: 1_790_000_000 })
      await rig.connector.backfill()
      const paid = paidOf(rig)
      const near = (a: StripeInvoice, b: StripeInvoice) =>
        a !== b &&
        (a.customer === b.customer || Math.floor(a.created / 3_600) === Math.floor(b.created / 3_600))
      const hasBoth = (a: StripeInvoice) =>
        new Set(paid.filter(b => near(a, b)).map(b => a.customer === b.customer)).size === 2
      const found = paid.find(hasBoth) ?? assert.fail()
      const neighbours = paid.filter(each => near(found, each))
      const far = paid.filter(each => each !== found && !neighbours.includes(each))
      // No event tells of it.
      for (const invoice of paid) invoice.status = 'void'
      const key = { customer_id: String(found.customer), id: found.id }
      const { run, told } = measure(rig, { store: { ...rig.store, readAtPoints: async () => [key] } })
      await run()
      assert.deepEqual(told, [{ key, fields: ['status'] }])
      const drift = await dayOf(rig.store)
      assert.deepEqual(
        [drift.compared, drift.differing, drift.repaired, drift.neighbours],
        [1, 1, 1, neighbours.length],
      )
      assert.ok(far.length > 0)
      for (const invoice of far) invoice.status = 'paid'
      await assertTrue(rig.account, rig.store)
      const finding = await doctorOf(rig.store)
      assert.equal(finding.result, 'warn')
      assert.match(finding.detail, /repaired: 1 of these 1, and \d+ others near them$/)
    })

    it('finds what is missing, and brings it', async t => {
      const rig = await startRig(t, engine, { invoices: 40, lines: 1 })
      await rig.connector.backfill()
      const [lost] = paidOf(rig)
      const key = { customer_id: String(lost?.customer), id: lost?.id ?? '' }
      await rig.store.transaction(tx => tx.removeInvoice(key.customer_id, key.id))
      const { run, told } = measure(rig)
      for (let round = 0; round < 60 && told.length === 0; round++) await run()
      assert.deepEqual(told, [{ key, fields: ['missing'] }])
      const { listed, missing, differing, repaired } = await dayOf(rig.store)
      assert.deepEqual([missing, differing, repaired], [1, 0, 1])
      assert.ok(listed >= 1)
      await assertTrue(rig.account, rig.store)
    })

    it('reports when something cannot be put right', async t => {
      const rig = await startRig(t, engine, { invoices: 20, lines: 1 })
      await rig.connector.backfill()
      for (const { id } of paidOf(rig)) rig.account.invoices.delete(id)
      const { run, told } = measure(rig)
      for (let round = 0; round < 60 && told.length === 0; round++) await run()
      assert.equal((await dayOf(rig.store)).repaired, 0)
      assert.equal((await doctorOf(rig.store)).result, 'FAIL')
      assert.match(formatDrift(await readDrift(rig.store))[2]?.[1] ?? '', /^0 of these \d+, and 0 others/)
    })

    it('gives every stored invoice the same chance, whatever a process compared before', async t => {
      const { store } = await openStores(t, engine)
      // One customer with most of them; rows that were changed and deleted meanwhile.
      const invoices = Array.from({ length: 300 }, (_, i) =>
        makeInvoice({ id: `in_${i}`, customer_id: i % 3 === 0 ? `cus_${i}` : 'cus_large' }),
      )
      const save = (some: typeof invoices) =>
        store.transaction(tx =>
          tx.saveInvoices(some.map(invoice => ({ invoice, lines: null, claim: noClaim }))),
        )
      await save(invoices)
      await save(invoices.slice(100, 200).map(invoice => ({ ...invoice, status: 'void' })))
      await store.transaction(async tx => {
        for (const { customer_id, id } of invoices.slice(150, 250)) await tx.deleteInvoice(customer_id, id)
      })
      const left = [...invoices.slice(0, 150), ...invoices.slice(250)]
      const hits = new Map(left.map(({ id }) => [id, 0]))
      const draw = createRandom(3)
      let drawn = 0
      for (let round = 0; round < 250; round++)
        for (const { id } of await store.readAtPoints(Array.from({ length: 256 }, draw))) {
          drawn++
          hits.set(id, (hits.get(id) ?? assert.fail(`${id} is not there`)) + 1)
        }
      const expected = drawn / left.length
      assert.ok(expected > 3, `${drawn} drawn`)
      // Pearson's chi-squared: as far from its mean as five standard deviations.
      const distance = [...hits.values()].reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0)
      const freedom = left.length - 1
      assert.ok(distance < freedom + 5 * Math.sqrt(2 * freedom), `${distance} of ${freedom}`)
    })

    it('leaves out what cannot be compared, and forgets what is older than a week', async t => {
      const rig = await startRig(t, engine, { invoices: 6 })
      await rig.connector.backfill()
      rig.sandbox.faults.set('retrieve_invoice', 'error_500', { times: 100 })
      rig.sandbox.faults.set('list_invoices', 'error_500', { times: 100 })
      const { run } = measure(rig)
      await run()
      const none = await dayOf(rig.store)
      assert.deepEqual([none.compared, none.listed], [0, 0])
      rig.sandbox.faults.clear()
      const aWeekAgo = Date.now() - 8 * 24 * 60 * 60_000
      const before = measure(rig, { now: () => aWeekAgo })
      for (let round = 0; round < 5; round++) await before.run()
      assert.ok((await dayOf(rig.store, aWeekAgo)).compared > 0)
      for (let round = 0; round < 5; round++) await run()
      const { compared } = await dayOf(rig.store)
      assert.equal((await dayOf(rig.store, aWeekAgo)).compared, compared, 'the hour of today alone')
    })
  })

// The rest does not depend on the engine.
describe('drift', () => {
  const [engine = assert.fail()] = engines

  it('reaches the whole store, however often a process begins anew', async t => {
    const rig = await startRig(t, engine, { invoices: 300, lines: 1 })
    const source = createDirectSource(rig.account)
    await rig.connector.backfill()
    const stored = await rig.store.readInvoices(null, 1_000)
    const asked = new Set<string>()
    const payments: DriftOptions['payments'] = {
      listInvoices: async () => ({ observations: [], unfit: [], next: null, began: 0, reached: 0 }),
      fetchInvoice(id, customerId, urgency) {
        asked.add(id)
        assert.equal(urgency, 'slowly')
        return source.fetchInvoice(id, customerId, urgency)
      },
    }
    for (let round = 0; round < 300; round++) await measure(rig, { payments }).run()
    // Of three times as many draws as there are invoices: five in a hundred are left.
    assert.ok(asked.size > 0.9 * stored.length, `${asked.size} of ${stored.length}`)
  })

  it('puts documents right, too', async t => {
    const rig = await startDocuments(t, engine, { invoices: 12 })
    await rig.syncAll()
    const [id, ixId] = anyOrdinary(rig)
    const document = rig.documents.documents.get(ixId) ?? assert.fail()
    document.status = 'canceled'
    const { run, told } = measure(rig, {
      documents: rig.documentSource,
      async repair({ customer_id, id }, documents) {
        await rig.connector.refetch({ id, customer_id })
        await rig.sync.refetch(documents)
      },
    })
    for (let round = 0; round < 60 && told.length === 0; round++) await run()
    assert.deepEqual(
      told.map(({ key, fields }) => [key.id, fields]),
      [[id, [`document ${ixId} status`, 'ix_status']]],
    )
    assert.equal((await rig.invoice(id)).ix_status, 'canceled')
    assert.equal((await dayOf(rig.store)).repaired, 1)
  })
})
