/** An invoice that changes its customer is shown to one of the two, never to both. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defaultRules } from '../../src/domain/link/link.ts'
import type { BillingSource, InvoiceAnswer, Notification } from '../../src/sources/source.ts'
import type { WriteTransaction } from '../../src/store/store.ts'
import { createDeletionGuard, type DeletionGuard } from '../../src/sync/deletion-guard.ts'
import { applyAnswers } from '../../src/sync/invoices/apply-answers.ts'
import { engines } from '../support/databases/engines.ts'
import { noGuard } from '../support/worlds/no-guard.ts'
import { createLog, notify, readAll, startRig } from '../support/worlds/sync.ts'

for (const engine of engines)
  describe(`an invoice that moves to another customer, on ${engine.name}`, () => {
    test('leaves the old customer, can return, and is not restored by an older answer', async t => {
      const { account, source, store, reader, connector } = await startRig(t, engine, {
        invoices: 40,
        seed: 71,
      })
      await connector.backfill()
      const rows = await readAll(store)
      const paid = rows.find(({ summary }) => JSON.parse(summary).status === 'paid') ?? assert.fail()
      const { id, customer_id: first } = paid
      const other = rows.find(({ customer_id }) => customer_id !== first) ?? assert.fail()
      const second = other.customer_id
      const totals = async () =>
        Promise.all(
          [first, second].map(async customer_id => {
            const { total } = await reader.listInvoices({ customer_id, page: 1, page_size: 10 })
            return total
          }),
        )
      const move = (customer: string) => {
        account.invoices.set(id, { ...(account.invoices.get(id) ?? assert.fail()), customer })
      }
      const ownersOf = async () =>
        (await readAll(store)).filter(row => row.id === id).map(row => row.customer_id)
      const [before = 0, others = 0] = await totals()

      move(second)
      await connector.applyNotification(about({ id, customer_id: first }))
      assert.deepEqual(await ownersOf(), [second])
      assert.deepEqual(await totals(), [before - 1, others + 1])
      assert.equal(await reader.findInvoice(first, id), null)
      assert.match((await store.readJournal({ customer_id: second, id }))[0]?.detail ?? '', new RegExp(first))

      // What was asked before the move and answers after it leads nothing back.
      const old = await source.fetchInvoice(id, second)
      const late = { ...old, customer_id: first }
      const { overlapped } = await store.transaction(tx => apply(tx, late, 1))
      assert.deepEqual([overlapped, await ownersOf()], [1, [second]])

      move(first)
      await connector.applyNotification(about({ id, customer_id: second }))
      assert.deepEqual(await ownersOf(), [first])
      assert.deepEqual(await totals(), [before, others])
      assert.equal(await store.checkCounts(), 0)
    })

    test('stays deleted when it was a draft and an older list of the new customer still shows it', async t => {
      const { account, source, store, connect } = await startRig(t, engine, { invoices: 40, seed: 71 })
      const [answer, deletion] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      let isHeld = false
      const slow: BillingSource = {
        ...source,
        async listInvoices(...query) {
          const page = await source.listInvoices(...query)
          if (!isHeld) return page
          answer.resolve()
          await deletion.promise
          return page
        },
      }
      const connector = await connect({ source: slow })
      const id = account.change('create')
      await connector.backfill()
      const rows = await readAll(store)
      const first = rows.find(row => row.id === id)?.customer_id ?? assert.fail()
      const second = rows.find(row => row.customer_id !== first)?.customer_id ?? assert.fail()
      account.invoices.set(id, { ...(account.invoices.get(id) ?? assert.fail()), customer: second })
      isHeld = true
      const listed = notify(connector, { customer_id: second })
      await answer.promise
      account.change('delete', id)
      assert.equal((await notify(connector, { customer_id: first, id })).deleted, 1)
      deletion.resolve()
      assert.equal((await listed).overlapped, 1)
      assert.ok(!(await readAll(store)).some(row => row.id === id))
    })

    test('takes its document’s fields along', async t => {
      const { account, store, connector } = await startRig(t, engine, { invoices: 40, seed: 71 })
      await connector.backfill()
      const rows = await readAll(store)
      const settled = rows.filter(({ summary }) => JSON.parse(summary).status === 'paid')
      const { id, customer_id: first } = settled[0] ?? assert.fail()
      const second = settled.find(({ customer_id }) => customer_id !== first)?.customer_id ?? assert.fail()
      const reference = { id: 77, type: 'Invoice', status: 'final', reference: id } as const
      const rendered = { number: null, date: '2026-01-01', total: '1.00', currency: 'Euro', client_id: null }
      await store.transaction(tx => tx.saveDocuments([{ ...reference, ...rendered }], 1))
      await connector.applyNotification(about({ id, customer_id: first }))
      account.invoices.set(id, { ...(account.invoices.get(id) ?? assert.fail()), customer: second })
      await connector.applyNotification(about({ id, customer_id: first }))
      const [row, ...more] = (await readAll(store)).filter(row => row.id === id)
      const { ix_sync_state, ix_id } = JSON.parse(row?.summary ?? '{}')
      assert.deepEqual([row?.customer_id, ix_sync_state, ix_id, more.length], [second, 'synced', 77, 0])
    })

    test('is no longer held back by the deletion guard under its old customer', async t => {
      const { account, source, store, connector } = await startRig(t, engine, { invoices: 40, seed: 71 })
      const draft = account.change('create')
      await connector.backfill()
      const guard = await createDeletionGuard(store, createLog().log, false)
      const rows = await readAll(store)
      const moved = rows.find(({ id }) => id !== draft) ?? assert.fail()
      const deleted = rows.find(({ id }) => id === draft) ?? assert.fail()
      const second = rows.find(({ customer_id }) => customer_id !== moved.customer_id) ?? assert.fail()
      // So many at once are held back.
      const others = Array.from({ length: 20 }, (_, i) => ({ customer_id: 'cus_1', id: `in_${i}` }))
      await store.transaction(tx => guard.allows(tx, 'lost_document', [moved, deleted, ...others]))
      await store.transaction(tx => guard.allows(tx, 'deletion', [moved, ...others]))
      const held = async () =>
        (await store.listSetAside(1_000, 'deletion_guard')).filter(({ id }) => !id.startsWith('cus_1 in_'))
          .length
      assert.equal(await held(), 3)
      const answer = await source.fetchInvoice(moved.id, moved.customer_id)
      const later = { ...answer, customer_id: second.customer_id }
      await store.transaction(tx => apply(tx, later, Date.now() * 1_000, guard))
      assert.equal(await held(), 1)
      const next = await createDeletionGuard(store, createLog().log, true)
      const gone = { ...deleted, found: null }
      await store.transaction(tx => apply(tx, gone, Date.now() * 1_000, next))
      assert.equal(await held(), 0)
    })

    test('a missing draft is deleted even when the answer does not name its customer', async t => {
      const { account, store, connector } = await startRig(t, engine, { invoices: 40, seed: 71 })
      const id = account.change('create')
      await connector.backfill()
      assert.ok((await readAll(store)).some(row => row.id === id))
      account.change('delete', id)
      const { deleted, refused } = await connector.applyNotification(about({ id, customer_id: null }))
      assert.deepEqual([deleted, refused], [1, {}])
      assert.ok(!(await readAll(store)).some(row => row.id === id))
    })
  })

async function apply(
  tx: WriteTransaction,
  answer: InvoiceAnswer,
  stamp: number,
  guard: DeletionGuard = noGuard,
) {
  const stamped = { ...answer, askedAt: stamp, answeredAt: stamp + 1 }
  const options = { rules: defaultRules, guard, now: Date.now(), cause: null, isPartial: false }
  return (await applyAnswers(tx, [stamped], options)).applied
}

let serial = 0

function about({ id, customer_id }: { id: string; customer_id: string | null }): Notification {
  return { id: `evt_${serial++}`, type: 'invoice.updated', created: 1, invoice_id: id, customer_id }
}
