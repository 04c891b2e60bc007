/** A store that went back in time under a connector: nothing is written to it until an operator says so. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import type { Lease } from '../../src/store/connector-store.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { StoreWentBack, type WriteStore } from '../../src/store/store.ts'
import { fenceStore, LeaseLost, waitForLease } from '../../src/sync/lease.ts'
import { isBefore, WrittenPlace } from '../../src/sync/written-place.ts'
import { engines } from '../support/databases/engines.ts'
import { changeRows } from '../support/databases/store-rows.ts'

test('positions of the lease in one life of a store are ordered by epoch and then by heartbeats', () => {
  const place = (life: string, epoch: number, beats: number) => ({ life, epoch, beats })
  const cases = [
    [place('a', 1, 5), place('a', 1, 6), true],
    [place('a', 1, 9), place('a', 2, 0), true],
    [place('a', 2, 0), place('a', 1, 9), false],
    [place('a', 1, 6), place('a', 1, 6), false],
    [place('b', 1, 1), place('a', 9, 9), false],
  ] as const
  for (const [one, other, expected] of cases) assert.equal(isBefore(one, other), expected)
})

for (const engine of engines)
  describe(`a store that returned to an earlier state, on ${engine.name}`, () => {
    async function open(t: TestContext) {
      const url = await engine.createStore(t)
      const store = await openWriteStore(url)
      t.after(() => store.close())
      const place = new WrittenPlace()
      const acquire = (within: WriteStore = store) =>
        waitForLease(within, {
          ...{ holder: 'this process', wait: false, place },
          ...{ log: pino({ level: 'silent' }), signal: t.signal },
        })
      const lease = await acquire()
      t.after(() => lease.lose())
      const save = (at: number) => fenceStore(store, lease).transaction(tx => tx.saveSuccess('import', at))
      const succeededAt = async () => (await store.listStreams())[0]?.succeeded_at
      /** As a server that lacks the last commits has the lease. */
      const goBack = ({ epoch, beats, holder }: Lease) =>
        changeRows(
          url,
          `UPDATE fatura.lease SET epoch = ${epoch}, beats = ${beats}, holder = ${holder === null ? 'NULL' : `'${holder}'`}`,
        )
      return { url, store, lease, acquire, save, succeededAt, goBack, read: () => store.readLease() }
    }

    it('accepts no commit when its last commit is missing, and ends the lease', async t => {
      const { lease, save, succeededAt, goBack, read } = await open(t)
      await save(1)
      const before = await read()
      await save(2)
      await goBack(before)
      await assert.rejects(save(3), StoreWentBack)
      assert.equal(await succeededAt(), 2, 'nothing is stored')
      assert.ok(lease.lost.reason instanceof StoreWentBack)
    })

    it('is refused when it has an earlier lease, whoever holds that lease', async t => {
      const { acquire, save, goBack, read } = await open(t)
      const held = await read()
      await save(1)
      await goBack({ ...held, epoch: held.epoch - 1, holder: null })
      await assert.rejects(save(2), LeaseLost)
      await assert.rejects(acquire(), StoreWentBack)
    })

    it('is accepted in a new life, after an operator reports a restore', async t => {
      const { store, acquire, save, goBack, read } = await open(t)
      const held = await read()
      await save(1)
      await goBack({ ...held, epoch: held.epoch - 1, holder: null })
      await assert.rejects(acquire(), StoreWentBack)
      await store.renewLife()
      const again = await acquire()
      assert.equal(again.epoch, held.epoch)
      await again.release()
    })

    it('is not reported while commits and heartbeats run side by side', async t => {
      const { store, lease, save } = await open(t)
      const beats = Array.from({ length: 20 }, () => store.renewLease(lease.epoch))
      await Promise.all([...beats, ...Array.from({ length: 20 }, (_, at) => save(at + 1))])
      assert.ok(!lease.lost.aborted)
    })
  })
