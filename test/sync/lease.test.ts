/** When a process that waits takes over the lease of the connector, to the second. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { openWriteStore } from '../../src/store/engines.ts'
import { renewEveryMs, takeOverAfterMs, waitForLease } from '../../src/sync/lease.ts'
import { WrittenPlace } from '../../src/sync/written-place.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

/** How often one that waits looks. */
const lookMs = 500

/** A store of which another process has the lease, and one that waits for it. */
async function startWaiting(t: TestContext, { wait = true } = {}) {
  const [sqlite] = engines as [Engine]
  const url = await sqlite.createStore(t)
  const clock = stopClock(t)
  const [store, other] = [await openWriteStore(url), await openWriteStore(url)]
  const stop = new AbortController()
  t.after(() => stop.abort())
  t.after(() => Promise.all([store.close(), other.close()]))
  const options = { log: pino({ level: 'silent' }), signal: stop.signal }
  const held = await waitForLease(other, { ...options, wait, holder: 'the other', place: new WrittenPlace() })
  let hasLease = false
  const taken = waitForLease(store, { ...options, wait, holder: 'this one', place: new WrittenPlace() })
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
    taken,
    hasLease: () => hasLease,
    async release() {
      await (await taken).release()
    },
  }
}

test('the lease stays with a holder that sends heartbeats, and passes on when it is released', async t => {
  const { clock, held, hasLease, release } = await startWaiting(t)
  await clock.pass(20 * takeOverAfterMs)
  assert.ok(!hasLease())
  await held.release()
  await clock.pass(lookMs)
  assert.ok(hasLease())
  await release()
})

test('the lease passes on 15 s after a silent holder’s last heartbeat, not earlier', async t => {
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

test('with --no-wait, the lease is refused once its holder sends a heartbeat', async t => {
  const { clock, held, taken } = await startWaiting(t, { wait: false })
  await clock.pass(renewEveryMs + lookMs)
  await assert.rejects(taken, /already synchronized by the other/)
  held.lose()
})

test('with --no-wait, the lease passes on from a silent holder', async t => {
  const { clock, held, other, hasLease, release } = await startWaiting(t, { wait: false })
  t.mock.method(other, 'renewLease', () => new Promise(() => {}))
  await clock.pass(takeOverAfterMs + lookMs)
  assert.ok(hasLease())
  held.lose()
  await release()
})
