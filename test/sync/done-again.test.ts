/** A transaction that is rolled back, and one that is done again, leave no trace in the memory of the connector. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WriteStore, WriteTransaction } from '../../src/store/store.ts'
import { createDeletionGuard } from '../../src/sync/deletion-guard.ts'
import { createSetAside } from '../../src/sync/set-aside-documents.ts'
import { engines } from '../support/engines.ts'
import { createLog, openStores, rollBackOnce } from '../support/sync.ts'

const keys = (count: number, customer_id = 'cus_1') =>
  Array.from({ length: count }, (_, i) => ({ customer_id, id: `in_${i}` }))

const failed = new Error('no connection')

/** Nothing of it is committed. */
async function rollBack(store: WriteStore, work: Parameters<WriteStore['transaction']>[0]): Promise<void> {
  const ended = store.transaction(async tx => {
    await work(tx)
    throw failed
  })
  await assert.rejects(ended, failed)
}

const countHeld = async (store: WriteStore) => (await store.listSetAside(1_000, 'deletion_guard')).length

for (const engine of engines)
  describe(`a transaction that is done again on ${engine.name}`, { concurrency: 3 }, () => {
    test('has its losses counted once', async t => {
      const { store } = await openStores(t, engine)
      const again = rollBackOnce(store)
      const guard = await createDeletionGuard(store, createLog().log, false)
      const ask = (count: number, customer: string) =>
        again.transaction(tx => guard.allows(tx, 'deletion', keys(count, customer)))
      assert.ok(await ask(11, 'cus_1'))
      assert.ok(await ask(9, 'cus_2'))
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [0, 0])
      assert.ok(!(await ask(1, 'cus_3')))
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [1, 1])
    })

    test('holds back and forgets what the table says', async t => {
      const { store } = await openStores(t, engine)
      const guard = await createDeletionGuard(store, createLog().log, false)
      const hold = (tx: WriteTransaction) => guard.allows(tx, 'deletion', keys(25))
      const forget = (tx: WriteTransaction) => guard.forget(tx, 'deletion', keys(25))
      await rollBack(store, hold)
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [0, 0])
      assert.ok(!(await rollBackOnce(store).transaction(hold)))
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [25, 25])
      await rollBack(store, forget)
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [25, 25])
      await rollBackOnce(store).transaction(forget)
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [0, 0])
      await store.transaction(async tx => {
        await hold(tx)
        await forget(tx)
      })
      assert.deepEqual([guard.held('deletion'), await countHeld(store)], [0, 0])
    })

    test('lets through what an operator let through', async t => {
      const { store } = await openStores(t, engine)
      const { log } = createLog()
      const first = await createDeletionGuard(store, log, false)
      await store.transaction(tx => first.allows(tx, 'deletion', keys(25)))
      const guard = await createDeletionGuard(store, log, true)
      assert.ok(await rollBackOnce(store).transaction(tx => guard.allows(tx, 'deletion', keys(25))))
      assert.deepEqual([guard.released('deletion').length, await countHeld(store)], [0, 0])
    })

    test('clears a document that fits again', async t => {
      const { store } = await openStores(t, engine)
      const setAside = await createSetAside('invoicexpress', store, createLog().log)
      await setAside.add('document', 7, 'a total that does not fit')
      await rollBack(store, tx => setAside.clear(tx, 'document', [7]))
      assert.ok(setAside.has('document', 7))
      await rollBackOnce(store).transaction(tx => setAside.clear(tx, 'document', [7]))
      assert.deepEqual([setAside.has('document', 7), await store.listSetAside(9)], [false, []])
    })
  })
