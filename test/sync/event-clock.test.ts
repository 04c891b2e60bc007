/** The platform's clock in one answer: one that is wrong hides no event, and is reported. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BillingSource } from '../../src/sources.ts'
import { invoiceRounds } from '../../src/sync/rounds.ts'
import { realClocks, runDue } from '../../src/sync/schedule.ts'
import { engines } from '../support/engines.ts'
import { assertTrue, eventsStream, readAll, recently, relistStream, startRig } from '../support/sync.ts'

const day = 86_400

for (const engine of engines)
  describe(`the clock of the events, on ${engine.name}`, () => {
    it('one answer that is a day ahead hides nothing that happens later, and stands in the stream’s state', async t => {
      const { source, account, connect, stream, store, logged } = await startRig(t, engine, {
        invoices: 20,
        lines: 1,
      })
      let ahead = 0
      const listNotifications: BillingSource['listNotifications'] = async (...asked) => {
        const page = await source.listNotifications(...asked)
        return { ...page, now: page.now + ahead }
      }
      const connector = await connect({ source: { ...source, listNotifications } })
      await connector.backfill()
      await connector.catchUp()
      const before = Number((await stream(eventsStream))?.cursor)
      ahead = day
      await connector.catchUp()
      const wrong = await stream(eventsStream)
      assert.ok(Number(wrong?.cursor) - before < 120, `${wrong?.cursor}, ${before} before`)
      assert.match(String(wrong?.error), /ahead of any plausible time/)
      assert.ok(logged.some(({ msg }) => /ahead of any plausible time/.test(msg)))
      ahead = 0
      account.advance(5)
      account.change('create')
      await connector.catchUp()
      await assertTrue(account, store)
      assert.equal((await stream(eventsStream))?.error, null)
    })

    it('one that is a day ahead at the first list hides nothing either', async t => {
      const { source, account, connect, stream, store } = await startRig(t, engine, {
        invoices: 20,
        lines: 1,
        now: Math.floor(Date.now() / 1_000),
      })
      const listNotifications: BillingSource['listNotifications'] = async (...asked) => {
        const page = await source.listNotifications(...asked)
        return { ...page, now: page.now + day }
      }
      const first = await connect({ source: { ...source, listNotifications } })
      await first.backfill()
      const { cursor } = (await stream(eventsStream)) ?? {}
      assert.ok(Number(cursor) <= Date.now() / 1_000, `${cursor}`)
      account.change('create')
      await (await connect()).catchUp()
      await assertTrue(account, store)
    })

    it('an invoice that came before the first list, and went long before it, is gone after it', async t => {
      const rig = await startRig(t, engine, { invoices: 20, lines: 1, now: recently() })
      const { account, connector, store, stream } = rig
      const id = account.change('create')
      await connector.refetch({ customer_id: String(account.invoices.get(id)?.customer), id })
      assert.equal((await readAll(store)).length, 1)
      account.change('delete', id)
      account.advance(3_600)
      await connector.backfill()
      await connector.catchUp()
      assert.equal((await stream(eventsStream))?.error, null)
      await assertTrue(account, store)
    })

    it('time that passes at the platform, as its events show, is followed at once', async t => {
      const { account, connector, stream } = await startRig(t, engine, { invoices: 20, lines: 1 })
      await connector.backfill()
      await connector.catchUp()
      const before = Number((await stream(eventsStream))?.cursor)
      account.advance(5 * day)
      account.change('create')
      await connector.catchUp()
      assert.ok(Number((await stream(eventsStream))?.cursor) - before >= 5 * day)
    })

    it('an account that was just listed for the first time is not listed again at once', async t => {
      const { sandbox, connector, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      const told: string[] = []
      const rounds = await invoiceRounds({
        ...{ connector, store, clocks: realClocks, isFull: false },
        reportStep: step => void told.push(step),
        afterReread: async () => {},
      })
      const [listing = [], , relisting = []] = rounds
      await runDue(listing)
      const asked = sandbox.requests.get('list_invoices')
      await runDue(relisting)
      assert.deepEqual(told, ['backfill'])
      assert.equal(sandbox.requests.get('list_invoices'), asked)
      const [step] = relisting
      assert.ok((step?.timer.left() ?? 0) > 14 * 60_000, 'the next one is a quarter of an hour from here')
    })

    it('what happens by a test clock that is behind is seen a quarter of an hour later', async t => {
      const { account, connector, store } = await startRig(t, engine, { invoices: 20, lines: 1 })
      let laterMs = 0
      const clocks = {
        elapsed: () => realClocks.elapsed() + laterMs,
        calendar: () => realClocks.calendar() + laterMs,
      }
      await connector.backfill()
      await connector.catchUp()
      const [, , relisting = []] = await invoiceRounds({
        ...{ connector, store, clocks, isFull: false, reportStep: () => {}, afterReread: async () => {} },
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

    it('a list that ended by a clock that was ahead is repeated no later than others', async t => {
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
      const [, , relisting = []] = await invoiceRounds({
        ...{ connector, store, clocks, isFull: false, afterReread: async () => {} },
        reportStep: step => void told.push(step),
      })
      laterMs = intervalMs
      aheadMs = 0
      await runDue(relisting)
      assert.deepEqual(told, ['relist'])
    })

    it('events that were never read are not taken for read a month later', async t => {
      const { account, connect, connector, store, stream } = await startRig(t, engine, {
        invoices: 20,
        lines: 1,
      })
      await connector.backfill()
      const events = (await stream(eventsStream)) ?? assert.fail()
      const monthAgo = String(Number(events.cursor) - 31 * day)
      await store.transaction(tx => tx.saveStream({ ...events, cursor: monthAgo }))
      const later = await connect()
      await later.catchUp()
      assert.equal(await later.isListed(), false, 'a list closes the gap')
      await later.backfill()
      await later.catchUp()
      await assertTrue(account, store)
    })

    it('an answer that is ahead moves the events no further than the time since the list began', async t => {
      const { source, connect, stream } = await startRig(t, engine, { invoices: 20, lines: 1 })
      let ahead = 0
      const connector = await connect({
        source: {
          ...source,
          async listNotifications(...asked) {
            const page = await source.listNotifications(...asked)
            return { ...page, now: page.now + ahead }
          },
        },
      })
      // The process had run for a while.
      const { now } = performance
      t.after(() => {
        performance.now = now
      })
      performance.now = () => now.call(performance) + 3_600_000
      await connector.backfill()
      const before = Number((await stream(eventsStream))?.cursor)
      ahead = day
      await connector.catchUp()
      const moved = Number((await stream(eventsStream))?.cursor) - before
      assert.ok(moved < 120, `${moved} s`)
    })

    // Our clocks and the platform's move on by so many seconds during a request; then an answer may be ahead.
    for (const [what, moves, ahead] of [
      [
        'an answer that took an hour, and one that is ahead,',
        { elapsed: 3_600, calendar: 3_600, platform: 3_600 },
        day,
      ],
      [
        'a calendar that is set ahead, and an answer that is,',
        { elapsed: 0, calendar: 3_600, platform: 0 },
        day,
      ],
      [
        'a calendar and an answer that are ahead, not alike,',
        { elapsed: 0, calendar: day, platform: 0 },
        3_600,
      ],
      ['hours in which the process stood still', { elapsed: 0, calendar: 36_000, platform: 36_000 }, 0],
    ] as const)
      it(`${what} hide nothing that happens later`, async t => {
        const { source, account, connect, store, stream } = await startRig(t, engine, {
          invoices: 20,
          lines: 1,
        })
        const { now } = performance
        const calendar = Date.now
        t.after(() => {
          performance.now = now
          Date.now = calendar
        })
        const later = { elapsed: 0, calendar: 0 }
        performance.now = () => now.call(performance) + later.elapsed * 1_000
        Date.now = () => calendar() + later.calendar * 1_000
        let [moved, wrong]: [typeof moves | null, number] = [null, 0]
        const connector = await connect({
          source: {
            ...source,
            async listNotifications(...asked) {
              if (moved !== null) {
                later.elapsed += moved.elapsed
                later.calendar += moved.calendar
                account.advance(moved.platform)
                moved = null
              }
              const page = await source.listNotifications(...asked)
              return { ...page, now: page.now + wrong }
            },
          },
        })
        await connector.backfill()
        await connector.catchUp()
        moved = moves
        await connector.catchUp()
        wrong = ahead
        await connector.catchUp()
        wrong = 0
        const reached = Number((await stream(eventsStream))?.cursor) - account.clock
        // After a wrong answer it may stay behind: events that were read are known.
        assert.ok(reached < 120 && (ahead > 0 || reached > -120), `${reached} s ahead`)
        account.advance(5)
        account.change('create')
        await connector.catchUp()
        await assertTrue(account, store)
      })
  })
