/** What lists had to correct though no event announced it: an exact number, of all that they looked at. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { checkCorrections } from '../../src/operations/doctor/check-corrections.ts'
import { createReport, type Finding } from '../../src/operations/doctor/findings.ts'
import type { Recheck } from '../../src/store/connector-store.ts'
import type { WriteStore } from '../../src/store/store.ts'
import { isSweptAlone } from '../../src/sync/documents/swept-documents.ts'
import { engines } from '../support/databases/engines.ts'
import { startDocuments } from '../support/worlds/documents.ts'
import { makeDocument } from '../support/worlds/linking.ts'
import { assertTrue, notify, type Rig, startRig } from '../support/worlds/sync.ts'

const day = 86_400

/** The process's monotonic clock, which a test moves on. */
function moveClock(t: TestContext) {
  const { now } = performance
  let laterMs = 0
  t.mock.method(performance, 'now', () => now.call(performance) + laterMs)
  return {
    pass(minutes: number) {
      laterMs += minutes * 60_000
    },
  }
}

async function countsOf(store: WriteStore, system = 'stripe'): Promise<Omit<Recheck, 'system'>> {
  const found = (await store.readRechecks(Date.now())).find(recheck => recheck.system === system)
  return { checked: found?.checked ?? 0, corrected: found?.corrected ?? 0 }
}

async function startListed(t: TestContext, engine: (typeof engines)[number]) {
  const rig = await startRig(t, engine, { invoices: 20, lines: 1, seed: 71 })
  await rig.connector.backfill()
  await rig.connector.catchUp()
  const some = (status: string) =>
    [...rig.account.invoices.values()].find(
      invoice => invoice.status === status && String(invoice.customer).startsWith('cus_'),
    ) ?? assert.fail(status)
  const { pass } = moveClock(t)
  return {
    ...rig,
    some,
    /** Reads the events after all of the last minutes are visible, and returns what counts by then. */
    async count(connector = rig.connector) {
      pass(6)
      await connector.catchUp()
      return countsOf(rig.store)
    },
  }
}

async function doctorOf(store: WriteStore): Promise<Finding | undefined> {
  const findings: Finding[] = []
  const report = createReport(
    () => {},
    finding => findings.push(finding),
  )
  await checkCorrections(report, store)
  return findings[0]
}

const missed = ({ logged }: Pick<Rig, 'logged'>) =>
  logged.filter(({ msg }) => msg === 'an invoice had changed without an event')

for (const engine of engines)
  describe(`the count of corrections on ${engine.name}`, () => {
    it('includes once each listed invoice that changed without an event', async t => {
      const rig = await startListed(t, engine)
      const { account, connector, store, some, count } = rig
      some('paid').status = 'void'
      const all = account.invoices.size
      assert.equal(await doctorOf(store), undefined, 'there is nothing to report')
      await connector.relist(true)
      assert.deepEqual(await countsOf(store), { checked: all, corrected: 0 }, 'an event may be on its way')
      assert.equal((await doctorOf(store))?.result, 'ok')
      await connector.catchUp()
      assert.deepEqual(await countsOf(store), { checked: all, corrected: 0 })
      assert.deepEqual(await count(), { checked: all, corrected: 1 })
      assert.equal(missed(rig).length, 1)
      const { result, detail, next } = (await doctorOf(store)) ?? assert.fail()
      assert.equal(result, 'warn')
      assert.equal(detail, `Invoices listed again: 1 of ${all} in 24 h had changed without an event`)
      assert.match(String(next), /^Events or webhooks were missed/)
      await connector.relist(true)
      assert.deepEqual(await count(), { checked: 2 * all, corrected: 1 })
      await assertTrue(account, store)
    })

    it('includes a new invoice and a deleted draft that no event announced', async t => {
      const { account, connector, store, some, count } = await startListed(t, engine)
      account.change('create')
      account.change('delete', some('draft').id)
      account.events.length = 0
      await connector.relist(true)
      assert.equal((await count()).corrected, 2)
      await assertTrue(account, store)
    })

    it('includes corrections by the frequent lists of unsettled invoices', async t => {
      const { account, connector, store, some, count } = await startListed(t, engine)
      account.change('pay', some('open').id)
      account.events.length = 0
      await connector.rereadUnsettled()
      assert.equal((await count()).corrected, 1)
      await assertTrue(account, store)
    })

    for (const [order, run] of [
      ['the event is applied before the list', ({ connector }) => [connector.catchUp, connector.relist]],
      ['the event is applied after the list', ({ connector }) => [connector.relist, connector.catchUp]],
      [
        'the event and the list are applied at once',
        ({ connector }) => [() => Promise.all([connector.catchUp(), connector.relist(true)])],
      ],
    ] as const satisfies [string, (rig: Rig) => ((isForced: never) => Promise<unknown>)[]][])
      it(`excludes an invoice that an event announced: ${order}`, async t => {
        const rig = await startListed(t, engine)
        const { account, store, some, count } = rig
        account.change('pay', some('open').id)
        account.change('create')
        account.change('delete', some('draft').id)
        for (const step of run(rig)) await (step as (isForced?: true) => Promise<unknown>)()
        await rig.connector.relist(true)
        assert.equal((await count()).corrected, 0)
        assert.deepEqual(missed(rig), [])
        await assertTrue(account, store)
      })

    it('excludes an announced invoice whose fetch overlaps with the list’s request', async t => {
      const { account, connect, source, some, count } = await startListed(t, engine)
      const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const slow = await connect({
        source: {
          ...source,
          async fetchInvoice(...given) {
            const answer = await source.fetchInvoice(...given)
            asked.resolve()
            await released.promise
            return answer
          },
        },
      })
      const { id, customer } = some('open')
      account.change('pay', id)
      const applied = notify(slow, { customer_id: String(customer), id })
      await asked.promise
      await slow.relist(true)
      released.resolve()
      assert.equal((await applied).changed, 0)
      // Its event came by webhook alone.
      account.events.length = 0
      assert.equal((await count(slow)).corrected, 0)
    })

    it('excludes an invoice that an event of its customer announced', async t => {
      const { account, connector, store, some, count } = await startListed(t, engine)
      account.renameCustomer(String(some('draft').customer), 'Outra')
      await connector.relist(true)
      assert.equal((await count()).corrected, 0)
      await assertTrue(account, store)
    })

    it('excludes a set-aside invoice that is valid now', async t => {
      const { account, connector, store, some, count } = await startListed(t, engine)
      const invoice = some('paid')
      const { currency } = invoice
      Object.assign(invoice, { currency: 7 })
      await connector.relist(true)
      assert.equal((await store.countSetAside())[0]?.count, 1)
      Object.assign(invoice, { currency, status: 'void' })
      await connector.relist(true)
      assert.equal((await count()).corrected, 0)
      await assertTrue(account, store)
    })

    it('includes a difference that one process found and the next process confirmed', async t => {
      const { connect, connector, store, some } = await startListed(t, engine)
      some('paid').status = 'void'
      await connector.relist(true)
      const { now } = Date
      t.mock.method(Date, 'now', () => now() + 6 * 60_000)
      const next = await connect()
      await next.catchUp()
      assert.equal((await countsOf(store)).corrected, 1)
    })

    it('includes no difference too early when the clock is set ahead', async t => {
      const { connector, store, some, count } = await startListed(t, engine)
      some('paid').status = 'void'
      await connector.relist(true)
      const { now } = Date
      t.mock.method(Date, 'now', () => now() + 3_600_000)
      await connector.catchUp()
      assert.equal((await countsOf(store)).corrected, 0)
      assert.equal((await count()).corrected, 1)
    })

    it('excludes the first list of all invoices and the list after a gap in the events', async t => {
      const rig = await startListed(t, engine)
      const { account, connect, store, some, stream } = rig
      assert.deepEqual(await countsOf(store), { checked: 0, corrected: 0 })
      some('paid').status = 'void'
      await rig.connector.relist(true)
      const { now } = Date
      t.mock.method(Date, 'now', () => now() + 31 * day * 1_000)
      account.clock += 31 * day
      account.change('pay', some('open').id)
      account.events.length = 0
      const later = await connect()
      // Found before anybody knows of the gap.
      await later.rereadUnsettled()
      await later.catchUp()
      assert.equal((await stream('stripe:backfill'))?.succeeded_at, null)
      const { checked } = await countsOf(store)
      await later.rereadUnsettled()
      await later.backfill()
      await later.catchUp()
      const { pass } = moveClock(t)
      pass(6)
      await later.catchUp()
      assert.deepEqual(await countsOf(store), { checked, corrected: 0 })
      assert.deepEqual(await store.listCorrections(), [])
      await assertTrue(account, store)
    })

    it('excludes changes that a list finds while it closes a gap in the events', async t => {
      const { account, connect, store, some } = await startListed(t, engine)
      const { now } = Date
      t.mock.method(Date, 'now', () => now() + 31 * day * 1_000)
      account.clock += 31 * day
      account.change('pay', some('open').id)
      account.events.length = 0
      const later = await connect()
      await later.relist(true)
      const { pass } = moveClock(t)
      for (const minutes of [6, 6]) {
        pass(minutes)
        await later.catchUp()
        assert.equal((await countsOf(store)).corrected, 0)
      }
      assert.deepEqual(await store.listCorrections(), [])
      await assertTrue(account, store)
    })

    it('includes once a document whose change only the sweep of all documents shows', async t => {
      const rig = await startDocuments(t, engine, { invoices: 30 })
      const sweep = async () => {
        while ((await rig.sync.sweepMonth()) !== null);
        return countsOf(rig.store, 'invoicexpress')
      }
      await rig.connector.backfill()
      assert.deepEqual(await sweep(), { checked: 0, corrected: 0 }, 'the first sweep')
      const all = [...rig.documents.documents.values()]
      const old = all.find(({ status }) => status === 'settled') ?? assert.fail()
      const open = all.find(({ status }) => status === 'final') ?? assert.fail()
      old.status = 'canceled'
      rig.documents.change('settle', open.id)
      const first = await sweep()
      assert.equal(first.corrected, 1, 'the open one is read every few minutes')
      // Credit notes come with the documents that they are about.
      assert.equal(first.checked, all.filter(({ type }) => type !== 'CreditNote').length)
      assert.equal((await sweep()).corrected, 1)
    })
  })

describe('isSweptAlone', () => {
  const settled = makeDocument({ status: 'settled', date: '2026-03-01' })
  const canceled = { ...settled, status: 'canceled' }
  for (const [what, before, after, expected] of [
    ['an old settled document that was canceled', settled, canceled, true],
    ['an old settled document that was not stored', null, settled, true],
    ['an open document that was settled', { ...settled, status: 'final' }, settled, false],
    ['a draft document that was deleted', { ...settled, status: 'draft' }, canceled, false],
    [
      'a document of the last days',
      { ...settled, date: '2026-03-28' },
      { ...canceled, date: '2026-03-28' },
      false,
    ],
    ['a document without a date', { ...settled, date: null }, { ...canceled, date: null }, false],
    ['a document with a field that the list left out', settled, { ...settled, left_out: 'atcud' }, false],
  ] as const)
    it(`is ${expected} for ${what}`, () => {
      assert.equal(isSweptAlone({ before, after }, '2026-03-28'), expected)
    })
})
