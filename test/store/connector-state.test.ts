import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { engines } from '../support/databases/engines.ts'

for (const engine of engines)
  describe(`the connector’s state on ${engine.name}`, () => {
    test('has one holder of the lease, who loses it to a process that saw no heartbeat', async t => {
      const url = await engine.createStore(t)
      const [one, other] = [await openWriteStore(url), await openWriteStore(url)]
      t.after(async () => {
        await one.close()
        await other.close()
      })
      const free = await one.readLease()
      assert.equal(free.holder, null)
      const held = await one.takeLease(free, 'first')
      assert.equal(held?.holder, 'first')
      assert.equal(await other.takeLease(free, 'second'), null, 'taken since it was seen')

      const seen = await other.readLease()
      assert.ok(held && (await one.renewLease(held.epoch)))
      assert.equal(await other.takeLease(seen, 'second'), null, 'the holder lives')

      const taken = await other.takeLease(await other.readLease(), 'second')
      assert.equal(taken?.epoch, held.epoch + 1)
      assert.equal(await one.renewLease(held.epoch), null)
      assert.equal(await one.transaction(tx => tx.beatLease(held.epoch)), null)
      await one.releaseLease(held.epoch)
      assert.ok(taken && (await other.transaction(tx => tx.beatLease(taken.epoch))))
      await other.releaseLease(taken.epoch)
      assert.equal((await one.readLease()).holder, null)
      assert.equal(await other.renewLease(taken.epoch), null, 'what was let go of is not held')
    })

    test('has one bound account for each system, which can be replaced', async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const bind = (system: string, account: string) =>
        store.transaction(tx => tx.saveBoundAccount({ system, account, bound_at: 1 }))
      await bind('stripe', 'acct_1 test')
      await bind('invoicexpress', 'ana')
      await bind('stripe', 'acct_2 live')
      assert.deepEqual(
        (await store.listBoundAccounts()).map(({ system, account }) => [system, account]),
        [
          ['invoicexpress', 'ana'],
          ['stripe', 'acct_2 live'],
        ],
      )
    })

    test('has each set-aside record once, with its number of attempts, until the record is valid', async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const [bad, worse] = [
        { system: 'stripe', kind: 'invoice', id: 'in_1' },
        { system: 'invoicexpress', kind: 'client', id: '7' },
      ]
      await store.transaction(async tx => {
        await tx.setAside({ ...bad, reason: 'no total', due_at: 4 }, 1)
        await tx.setAside({ ...worse, reason: 'no id', due_at: 9 }, 2)
        await tx.setAside({ ...bad, reason: 'no currency', asked_stamp: 30, due_at: 5 }, 3)
        for (const [id, reason] of Object.entries({ in_2: 'no_customer', in_3: 'preview', in_4: 'preview' }))
          await tx.setAside(
            { system: 'stripe', kind: 'refused', id, reason, due_at: null },
            Number(id.at(-1)) + 10,
          )
      })
      assert.deepEqual(
        (await store.listSetAside(2)).map(row => ({ ...row })),
        [
          { ...worse, reason: 'no id', asked_stamp: 0, due_at: 9, first_at: 2, last_at: 2, tries: 1 },
          { ...bad, reason: 'no currency', asked_stamp: 30, due_at: 5, first_at: 1, last_at: 3, tries: 2 },
        ],
      )
      const idsOf = async (...args: Parameters<typeof store.listSetAside>) =>
        (await store.listSetAside(...args)).map(({ id }) => id)
      assert.deepEqual(await idsOf(10, 'stripe'), ['in_1', 'in_2', 'in_3', 'in_4'])
      assert.deepEqual(await idsOf(1), ['7'])
      assert.deepEqual(await idsOf(10, 'stripe', { kind: 'refused' }), ['in_2', 'in_3', 'in_4'])
      assert.deepEqual(await idsOf(10, 'stripe', { reason: 'preview', newestFirst: true }), ['in_4', 'in_3'])
      assert.deepEqual(await idsOf(10, undefined, { id: 'in_1' }), ['in_1'])
      // One without a moment is due for nobody, and one that was tried in times to come is due at once.
      assert.deepEqual(await idsOf(10, undefined, { dueAt: 20 }), ['7', 'in_1'])
      assert.deepEqual(await idsOf(10, undefined, { dueAt: 8 }), ['in_1'])
      const found = await store.transaction(tx => tx.findSetAside(['in_1', '7', 'in_9']))
      assert.deepEqual(found.map(({ id }) => id).sort(), ['7', 'in_1'])
      await store.transaction(tx => tx.clearSetAside([bad]))
      assert.deepEqual(
        (await store.countSetAside()).map(row => ({ ...row })),
        [
          { system: 'invoicexpress', kind: 'client', reason: null, count: 1 },
          { system: 'stripe', kind: 'refused', reason: 'no_customer', count: 1 },
          { system: 'stripe', kind: 'refused', reason: 'preview', count: 2 },
        ],
      )
    })
  })
