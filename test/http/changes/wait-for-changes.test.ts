/** Requests that wait for changes read the feed together. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChangeWaiters } from '../../../src/http/changes/wait-for-changes.ts'
import { openReadStore } from '../../../src/store/engines.ts'
import { engines } from '../../support/databases/engines.ts'
import { stopClock } from '../../support/worlds/stopped-clock.ts'

/** How often the feed is looked at for all who wait. */
const lookEveryMs = 500

test('a running check for changes ends when all its clients leave, and new clients start another', async t => {
  const [engine] = engines
  const store = await openReadStore((await engine?.createStore(t)) ?? assert.fail())
  t.after(() => store.close())
  const clock = stopClock(t)
  let reads = 0
  let gate = Promise.resolve()
  const waiters = new ChangeWaiters({
    async readChanges(...given) {
      reads++
      await gate
      return store.readChanges(...given)
    },
  })
  const join = async () => (await waiters.join('cus_ana', 'token')) ?? assert.fail()
  let waiter = await join()
  for (let round = 0; round < 4; round++) {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    const before = reads
    await clock.pass(lookEveryMs)
    assert.equal(reads, before + 1, 'a look is under way')
    waiter.leave()
    const joined = join()
    resolve()
    waiter = await joined
  }
  const before = reads
  await clock.pass(4 * lookEveryMs)
  assert.equal(reads - before, 4)
  waiter.leave()
})
