/** Documents and what ties invoices to them, as the store keeps them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noClaim } from '../../src/domain/document.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'

for (const engine of engines)
  describe(`stored documents on ${engine.name}`, () => {
    test('a page-by-page reading of claimed documents is complete when several invoices claim one document', async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const claims = [
        { ...noClaim, ix_id: 1 },
        { ...noClaim, ix_id: 1, ix_type: 'Invoice' as const },
        { ...noClaim, ix_id: 2 },
        { ...noClaim, ix_id: 3, ix_type: 'InvoiceReceipt' as const },
      ]
      await store.transaction(async tx => {
        await tx.saveInvoices(claims.map(claim => ({ ...makeRecord({ ix_id: 2 }), claim })))
        await tx.missDocument(2, 7)
      })
      const [first, second, ...rest] = await store.readClaimed(0, 2)
      assert.deepEqual(first, { id: 1, type: 'Invoice', misses: null, observed_stamp: 0 })
      assert.deepEqual(second, { id: 2, type: null, misses: 1, observed_stamp: 7 })
      assert.deepEqual(rest, [])
      const [last] = await store.readClaimed(2, 2)
      assert.deepEqual(last, { id: 3, type: 'InvoiceReceipt', misses: null, observed_stamp: 0 })
      assert.deepEqual(await store.readClaimed(3, 2), [])
    })
  })
