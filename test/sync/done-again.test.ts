/** A transaction that is rolled back, and one that is done again, leave no trace in the memory of the connector. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { BillingSource } from '../../src/sources/source.ts'
import { StoreUnavailable, type WriteStore, type WriteTransaction } from '../../src/store/store.ts'
import { createDeletionGuard } from '../../src/sync/deletion-guard.ts'
import { saveAside } from '../../src/sync/documents/set-aside-documents.ts'
import type { Wanted } from '../../src/sync/set-aside.ts'
import { engines } from '../support/databases/engines.ts'
import { createLog, notify, openStores, readAll, rollBackOnce, startRig } from '../support/worlds/sync.ts'

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
  describe(`a transaction that is repeated, on ${engine.name}`, { concurrency: 3 }, () => {
    test('counts its deletions once', async t => {
      const { store } = await openStores(t, engine)
      const again = rollBackOnce(store)
      const guard = await createDeletionGuard(store, createLog().log, false)
      const ask = (count: number, customer: string) =>
        again.transaction(tx => guard.allows(tx, 'deletion', keys(count, customer)))
      assert.ok(await ask(11, 'cus_1'))
      assert.ok(await ask(9, 'cus_2'))
      assert.equal(await countHeld(store), 0)
      assert.ok(!(await ask(1, 'cus_3')))
      assert.equal(await countHeld(store), 1)
    })

    test('holds back or forgets deletions only when it commits', async t => {
      const { store } = await openStores(t, engine)
      const guard = await createDeletionGuard(store, createLog().log, false)
      const hold = (tx: WriteTransaction) => guard.allows(tx, 'deletion', keys(25))
      const forget = (tx: WriteTransaction) => guard.forget(tx, 'deletion', keys(25))
      await rollBack(store, hold)
      assert.equal(await countHeld(store), 0)
      assert.ok(!(await rollBackOnce(store).transaction(hold)))
      assert.equal(await countHeld(store), 25)
      await rollBack(store, forget)
      assert.equal(await countHeld(store), 25)
      await rollBackOnce(store).transaction(forget)
      assert.equal(await countHeld(store), 0)
      await store.transaction(async tx => {
        await hold(tx)
        await forget(tx)
      })
      assert.equal(await countHeld(store), 0)
    })

    test('lets through the deletions that an operator allowed', async t => {
      const { store } = await openStores(t, engine)
      const { log } = createLog()
      const first = await createDeletionGuard(store, log, false)
      await store.transaction(tx => first.allows(tx, 'deletion', keys(25)))
      const guard = await createDeletionGuard(store, log, true)
      const lose = (tx: WriteTransaction) => guard.allows(tx, 'deletion', keys(25))
      assert.ok(await rollBackOnce(store).transaction(lose))
      assert.equal(await countHeld(store), 0)
      assert.ok(!(await store.transaction(lose)), 'once, and not when they are lost again')
      assert.equal(await countHeld(store), 25)
    })

    test('clears a set-aside document that is valid again', async t => {
      const { store } = await openStores(t, engine)
      const say = (wanted: Wanted | null) => (tx: WriteTransaction) =>
        saveAside(tx, 'invoicexpress', 'document', new Map([[7, { askedAt: 1, wanted }]]))
      const clear = say(null)
      await store.transaction(say({ kind: 'document', reason: 'a total that does not fit' }))
      await rollBack(store, clear)
      assert.equal((await store.listSetAside(9)).length, 1)
      await rollBackOnce(store).transaction(clear)
      assert.deepEqual(await store.listSetAside(9), [])
    })

    /** Of an invoice that was not found once, and was deleted, and is found again. */
    async function comeBack(t: TestContext, above: (store: WriteStore) => WriteStore): Promise<void> {
      const { account, source, store, connect } = await startRig(t, engine, { invoices: 10, seed: 71 })
      const id = account.change('create')
      let isGone = true
      const forgetful: BillingSource = {
        ...source,
        fetchInvoice: async (id, customer_id, ...more) =>
          isGone ? { id, customer_id, found: null } : source.fetchInvoice(id, customer_id, ...more),
      }
      let now = store
      const transaction: WriteStore['transaction'] = work => now.transaction(work)
      const connector = await connect({ source: forgetful, store: { ...above(store), transaction } })
      await connector.backfill()
      const find = async () => (await readAll(store)).find(row => row.id === id)
      const key = (await find()) ?? assert.fail()
      assert.equal((await notify(connector, key)).deleted, 1)
      assert.equal(await find(), undefined)
      isGone = false
      now = above(store)
      const { overlapped } = await notify(connector, key)
      assert.deepEqual([overlapped, (await find())?.id], [0, id])
    }

    test('recognizes the answer of its first attempt, and shows a restored invoice', t =>
      comeBack(t, rollBackOnce))

    test('recognizes the answer of its first attempt when it commits node by node', t =>
      comeBack(t, store => {
        let isFirst = true
        return {
          ...store,
          // As if all customers were on one node, and another one were out of reach.
          groupByNode: async customers => [[...customers]],
          transaction: work =>
            store.transaction(async tx => {
              const result = await work(tx)
              if (isFirst) {
                isFirst = false
                throw new StoreUnavailable('a node is out of reach')
              }
              return result
            }),
        }
      }))

    test('remembers an answer even when the confirmation of its commit is lost', async t => {
      const { account, source, store, connect } = await startRig(t, engine, { invoices: 10, seed: 71 })
      const id = account.change('create')
      const [asked, listed, finalized, lost] = [1, 2, 3, 4].map(() => Promise.withResolvers<void>())
      let isSlow = false
      const slow: BillingSource = {
        ...source,
        async fetchInvoice(...query) {
          asked?.resolve()
          await finalized?.promise
          return source.fetchInvoice(...query)
        },
        async listInvoices(...query) {
          const page = await source.listInvoices(...query)
          if (!isSlow) return page
          listed?.resolve()
          await lost?.promise
          return page
        },
      }
      let isLost = false
      const deaf: WriteStore = {
        ...store,
        async transaction(work) {
          const result = await store.transaction(work)
          if (isLost) throw new StoreUnavailable('the connection broke after the commit')
          return result
        },
      }
      const connector = await connect({ source: slow, store: deaf })
      await connector.backfill()
      const find = async () => (await readAll(store)).find(row => row.id === id) ?? assert.fail()
      const key = await find()
      const fetched = notify(connector, key)
      await asked?.promise
      isSlow = true
      // Asked for later, and answered earlier.
      const list = notify(connector, { customer_id: key.customer_id })
      await listed?.promise
      account.change('finalize', id)
      isLost = true
      finalized?.resolve()
      await assert.rejects(fetched, /broke after the commit/)
      isLost = false
      lost?.resolve()
      assert.equal((await list).overlapped, 1)
      assert.equal(JSON.parse((await find()).summary).status, 'open')
    })
  })
