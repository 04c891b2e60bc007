/** Events are followed by their own moments: no clock of ours or of the platform hides one. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { invoiceQuestions } from '../../src/sync/questions.ts'
import { createRounds } from '../../src/sync/rounds.ts'
import { realClocks, runDue } from '../../src/sync/schedule.ts'
import { engines } from '../support/databases/engines.ts'
import {
  assertTrue,
  eventsStream,
  notify,
  readAll,
  recently,
  relistStream,
  startRig,
} from '../support/worlds/sync.ts'

const day = 86_400

for (const engine of engines)
  describe(`Stripe’s clock and its events, on ${engine.name}`, () => {
    it('the cursor is the time of the newest event, even of an event without an invoice', async t => {
      const { account, connector, stream, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      account.change('create')
      account.advance(60)
      await connector.backfill()
      const cursor = async () => Number((await stream(eventsStream))?.cursor)
      assert.equal(await cursor(), account.events.at(-1)?.created)
      account.advance(3_600)
      account.change('create')
      const [customer] = account.customers.keys()
      account.renameCustomer(String(customer), 'Outra')
      const renamed = account.events.at(-1) as (typeof account.events)[number]
      renamed.data.previous_attributes = { balance: 0 }
      renamed.created += 60
      account.clock += 60
      await connector.catchUp()
      assert.equal(await cursor(), renamed.created)
      account.clock += 7_200
      await connector.catchUp()
      assert.equal(await cursor(), renamed.created, 'time alone moves nothing')
      await assertTrue(account, store)
    })

    for (const [what, jump] of [
      ['a day ahead of ours', day],
      ['a year behind ours', -365 * day],
    ] as const)
      it(`no change is missed when Stripe’s clock jumps to ${what}`, async t => {
        const { account, connect, connector, stream, store, logged } = await startRig(t, engine, {
          invoices: 20,
          lines: 1,
          now: Math.floor(Date.now() / 1_000) + Math.min(0, jump),
        })
        await connector.backfill()
        await connector.catchUp()
        account.clock += Math.max(0, jump)
        for (const each of [connector, connector, await connect()]) {
          account.advance(5)
          account.change('create')
          await each.catchUp()
          await assertTrue(account, store)
          assert.equal((await stream(eventsStream))?.error, null)
        }
        assert.equal((await stream(eventsStream))?.cursor, String(account.events.at(-1)?.created))
        assert.deepEqual(
          logged.filter(({ level }) => level >= 40),
          [],
          'nothing is listed again',
        )
      })

    it('an event that appears five minutes late is applied, and no old event is read again', async t => {
      const { source, account, connect, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      const { now } = performance
      let laterMs = 0
      t.mock.method(performance, 'now', () => now.call(performance) + laterMs)
      const asked: number[] = []
      const connector = await connect({
        source: {
          ...source,
          listNotifications(since, after) {
            asked.push(since)
            return source.listNotifications(since, after)
          },
        },
      })
      await connector.backfill()
      account.advance(60)
      account.change('create')
      const late = account.events.splice(-1)
      account.advance(290)
      account.change('create')
      const newest = Number(account.events.at(-1)?.created)
      await connector.catchUp()
      account.events.splice(-1, 0, ...late)
      laterMs += 299_000
      await connector.catchUp()
      await assertTrue(account, store)
      laterMs += 2_000
      await connector.catchUp()
      await connector.catchUp()
      assert.deepEqual(asked.slice(-3), [newest - 300, newest - 300, newest])
    })

    it('a quiet account is listed again once, when its newest event is older than Stripe keeps events', async t => {
      const { account, connect, connector, store, stream, logged } = await startRig(t, engine, {
        invoices: 20,
        lines: 1,
      })
      const { now } = Date
      let laterMs = 0
      t.mock.method(Date, 'now', () => now() + laterMs)
      await connector.backfill()
      await connector.catchUp()
      const pass = async (days: number) => {
        laterMs += days * day * 1_000
        account.clock += days * day
        const later = await connect()
        logged.length = 0
        for (let round = 0; round < 3; round++) {
          await later.catchUp()
          await later.backfill()
        }
        return logged.filter(({ msg }) => /events reach back 30 days only/.test(msg)).length
      }
      assert.equal(await pass(31), 1)
      assert.equal(await pass(27), 0, 'it was listed 27 days ago')
      await (await connect()).relist(true)
      assert.equal(await pass(27), 0)
      assert.equal(await pass(4), 1)
      assert.equal((await stream(eventsStream))?.error, null)
      account.change('create')
      await (await connect()).catchUp()
      await assertTrue(account, store)
    })

    it('a list during which the process sleeps longer than Stripe keeps events is followed by another list', async t => {
      const { source, account, connect, store } = await startRig(t, engine, { invoices: 150, lines: 1 })
      const { now } = Date
      let laterMs = 0
      t.mock.method(Date, 'now', () => now() + laterMs)
      let isFirst = true
      const connector = await connect({
        source: {
          ...source,
          async listInvoices(...asked) {
            const page = await source.listInvoices(...asked)
            if (!isFirst) return page
            isFirst = false
            // Its answer is under way, and an invoice is made whose event nobody reads in time.
            account.advance(60)
            account.change('create')
            laterMs += 40 * day * 1_000
            account.clock += 40 * day
            return page
          },
        },
      })
      await connector.backfill()
      assert.equal(await connector.isListed(), true)
      await connector.catchUp()
      assert.equal(await connector.isListed(), false, 'everything is to be listed again')
      await connector.backfill()
      await connector.catchUp()
      await assertTrue(account, store)
    })

    it('an account without events is not listed again at each read', async t => {
      const { sandbox, account, connector, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      account.events.length = 0
      await connector.backfill()
      for (let round = 0; round < 3; round++) {
        await connector.catchUp()
        await connector.backfill()
      }
      assert.equal(sandbox.requests.get('list_invoices'), 1)
      account.change('create')
      await connector.catchUp()
      await assertTrue(account, store)
    })

    it('an invoice that is created and deleted before the first list is removed by that list', async t => {
      const rig = await startRig(t, engine, { invoices: 20, lines: 1, now: recently() })
      const { account, connector, store, stream } = rig
      const id = account.change('create')
      await notify(connector, { customer_id: String(account.invoices.get(id)?.customer), id })
      assert.equal((await readAll(store)).length, 1)
      account.change('delete', id)
      account.advance(3_600)
      await connector.backfill()
      await connector.catchUp()
      assert.equal((await stream(eventsStream))?.error, null)
      await assertTrue(account, store)
    })

    it('an account is not listed again right after its first list', async t => {
      const { sandbox, connector, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      const told: string[] = []
      const rounds = await createRounds(invoiceQuestions(connector), {
        ...{ store, clocks: realClocks, isListed: connector.isListed },
        reportStep: step => void told.push(step),
      })
      const [listing = [], , relisting = []] = rounds
      await runDue(listing)
      const asked = sandbox.requests.get('list_invoices')
      await runDue(relisting)
      assert.deepEqual(told, ['backfill'])
      assert.equal(sandbox.requests.get('list_invoices'), asked)
      const [step] = relisting
      assert.ok(
        (step?.timer.remaining() ?? 0) > 14 * 60_000,
        'the next one is a quarter of an hour from here',
      )
    })

    it('a change by a test clock that is behind is seen after a quarter of an hour', async t => {
      const { account, connector, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      let laterMs = 0
      const clocks = {
        elapsed: () => realClocks.elapsed() + laterMs,
        calendar: () => realClocks.calendar() + laterMs,
      }
      await connector.backfill()
      await connector.catchUp()
      const [, , relisting = []] = await createRounds(invoiceQuestions(connector), {
        ...{ store, clocks, isListed: connector.isListed, reportStep: () => {} },
      })
      const now = account.clock
      account.clock = now - 400 * day
      account.change('pay', account.change('finalize', account.change('create')))
      account.clock = now
      await connector.catchUp()
      laterMs = 15 * 60_000
      await runDue(relisting)
      await assertTrue(account, store)
    })

    it('a list with an end time in the future is repeated at the usual time', async t => {
      const { connector, store, stream } = await startRig(t, engine, { invoices: 20, lines: 1 })
      const intervalMs = 15 * 60_000
      await connector.backfill()
      const relist = (await stream(relistStream)) ?? assert.fail()
      const [stored, told]: [typeof relist, string[]] = [
        { ...relist, succeeded_at: Date.now() + intervalMs },
        [],
      ]
      await store.transaction(tx => tx.saveStream(stored))
      let [laterMs, aheadMs] = [0, intervalMs]
      const clocks = {
        elapsed: () => realClocks.elapsed() + laterMs,
        calendar: () => realClocks.calendar() + laterMs + aheadMs,
      }
      const [, , relisting = []] = await createRounds(invoiceQuestions(connector), {
        ...{ store, clocks, isListed: connector.isListed },
        reportStep: step => void told.push(step),
      })
      laterMs = intervalMs
      aheadMs = 0
      await runDue(relisting)
      assert.deepEqual(told, ['relist'])
    })

    it('unread events of a month after the first list are recognized as a gap', async t => {
      const { account, connect, connector, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      await connector.backfill()
      account.change('create')
      const { now } = Date
      t.mock.method(Date, 'now', () => now() + 31 * day * 1_000)
      account.clock += 31 * day
      const later = await connect()
      await later.catchUp()
      assert.equal(await later.isListed(), false, 'a list closes the gap')
      await later.backfill()
      await later.catchUp()
      await assertTrue(account, store)
    })

    it('events count as unread when the process sleeps for a month before it requests them', async t => {
      const { account, source, connect, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      const { now } = Date
      let isAsleep = false
      const sleepy = await connect({
        source: {
          ...source,
          listNotifications(...given) {
            if (isAsleep) {
              t.mock.method(Date, 'now', () => now() + 31 * day * 1_000)
              account.clock += 31 * day
              account.events.length = 0
            }
            return source.listNotifications(...given)
          },
        },
      })
      await sleepy.backfill()
      account.change('create')
      isAsleep = true
      await sleepy.catchUp()
      isAsleep = false
      assert.equal(await sleepy.isListed(), false, 'a list closes the gap')
      await sleepy.backfill()
      await sleepy.catchUp()
      await assertTrue(account, store)
    })

    it('a first list that was interrupted a month ago begins again', async t => {
      const { sandbox, account, connect, connector, store } = await startRig(t, engine, {
        invoices: 220,
        lines: 1,
      })
      sandbox.faults.set('list_invoices', 'error_500')
      await assert.rejects(connector.backfill())
      sandbox.faults.clear()
      account.change('create')
      const { now } = Date
      t.mock.method(Date, 'now', () => now() + 31 * day * 1_000)
      account.clock += 31 * day
      const later = await connect()
      await later.catchUp()
      await later.backfill()
      await later.catchUp()
      await assertTrue(account, store)
    })
  })
