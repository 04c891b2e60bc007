/** Requests that wait for changes read the feed together. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createChangeWaiters } from '../../src/changes/wait-for-changes.ts'
import { openReadStore } from '../../src/store/engines.ts'
import { engines } from '../support/engines.ts'

test('a look under way while all leave does not go on beside that of those who come', async t => {
  const [engine] = engines
  const store = await openReadStore((await engine?.createStore(t)) ?? assert.fail())
  t.after(() => store.close())
  let reads = 0
  let gate = Promise.resolve()
  const waiters = createChangeWaiters({
    async readChanges(...given) {
      reads++
      await gate
      return store.readChanges(...given)
    },
  })
  const join = async () => (await waiters.join('cus_ana')) ?? assert.fail()
  let waiter = await join()
  for (let round = 0; round < 4; round++) {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    const before = reads
    while (reads === before) await sleep(5)
    waiter.leave()
    const joined = join()
    resolve()
    waiter = await joined
  }
  const [before, begun] = [reads, performance.now()]
  await sleep(2_000)
  const most = (performance.now() - begun) / 500 + 1
  assert.ok(reads - before <= most, `${reads - before} reads, ${most} at most`)
  waiter.leave()
})
