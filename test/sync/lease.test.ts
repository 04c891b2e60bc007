/** When a process that waits takes over the lease of the connector, to the second. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { openWriteStore } from '../../src/store/engines.ts'
import { renewEveryMs, takeOverAfterMs, waitForLease } from '../../src/sync/lease.ts'
import { type Engine, engines } from '../support/engines.ts'
import { stopClock } from '../support/stopped-clock.ts'

/** How often one that waits looks. */
const lookMs = 500

/** A store of which another process has the lease, and one that waits for it. */
async function startWaiting(t: TestContext, isGone: () => boolean = () => false) {
  const [sqlite] = engines as [Engine]
  const url = await sqlite.createStore(t)
  const clock = stopClock(t)
  const [store, other] = [await openWriteStore(url), await openWriteStore(url)]
  const stop = new AbortController()
  t.after(() => stop.abort())
  t.after(() => Promise.all([store.close(), other.close()]))
  const options = { wait: true, log: pino({ level: 'silent' }), signal: stop.signal }
  const held = await waitForLease(other, { ...options, holder: 'the other', isGone: () => false })
  let hasLease = false
  const taken = waitForLease(store, { ...options, holder: 'this one', isGone })
  taken.then(
    () => {
      hasLease = true
    },
    () => {},
  )
  return {
    clock,
    held,
    other,
    hasLease: () => hasLease,
    async release() {
      await (await taken).release()
    },
  }
}

test('a holder that goes on beating is not overtaken; once it lets go, the next one follows at its next look', async t => {
  const { clock, held, hasLease, release } = await startWaiting(t)
  await clock.pass(20 * takeOverAfterMs)
  assert.ok(!hasLease())
  await held.release()
  await clock.pass(lookMs)
  assert.ok(hasLease())
  await release()
})

test('a holder that stands still is overtaken 15 s after its last heartbeat, no sooner', async t => {
  const { clock, held, other, hasLease, release } = await startWaiting(t)
  await clock.pass(renewEveryMs)
  // From now on nothing is heard of it.
  t.mock.method(other, 'renewLease', () => new Promise(() => {}))
  const beat = (await other.readLease()).beats
  await clock.pass(takeOverAfterMs - 1)
  assert.ok(!hasLease())
  assert.equal((await other.readLease()).beats, beat)
  await clock.pass(lookMs + 1)
  assert.ok(hasLease())
  assert.equal((await other.readLease()).holder, 'this one')
  held.lose()
  await release()
})

test('a holder that is known to have ended is overtaken at the next look', async t => {
  let isGone = false
  const { clock, held, hasLease, release } = await startWaiting(t, () => isGone)
  await clock.pass(lookMs)
  assert.ok(!hasLease())
  isGone = true
  await clock.pass(lookMs)
  assert.ok(hasLease())
  held.lose()
  await release()
})
