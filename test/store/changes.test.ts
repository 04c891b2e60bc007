/** The feed of changes: nothing is missed by a reader who follows it, whatever the order of the commits. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import type { InvoiceRecord } from '../../src/domain/invoice.ts'
import type { ChangePage, StoredChange } from '../../src/store/change-store.ts'
import { copyStore } from '../../src/store/copy-store.ts'
import { openOperatorStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import type { ReadStore, WriteStore } from '../../src/store/store.ts'
import { campaign } from '../support/checks/campaign.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeInvoice, makeRecord, withDocument } from '../support/worlds/records.ts'

async function open(t: TestContext, engine: Engine, writers = 1) {
  const url = await engine.createStore(t)
  const stores = await Promise.all(Array.from({ length: writers }, () => openWriteStore(url)))
  const reader = await openReadStore(url)
  t.after(async () => {
    for (const store of [...stores, reader]) await store.close()
  })
  return { url, stores, store: stores[0] as WriteStore, reader }
}

async function readAfter(reader: Pick<ReadStore, 'readChanges'>, customerId: string | null, after: number) {
  const page = await reader.readChanges(customerId, after, 3)
  assert.ok(page !== null, 'the cursor expired')
  return page
}

/** All pages from a cursor to the end. */
async function follow(reader: Pick<ReadStore, 'readChanges'>, customerId: string | null, after = 0) {
  const changes: StoredChange[] = []
  for (let page: ChangePage; ; after = page.next) {
    page = await readAfter(reader, customerId, after)
    if (page.changes.length === 0) return { changes, next: page.next }
    changes.push(...page.changes)
  }
}

const shown = ({ customer_id, invoice_id, kind }: StoredChange) => `${customer_id} ${invoice_id} ${kind}`

for (const engine of engines)
  describe(`the feed of changes on ${engine.name}`, () => {
    it('names each changed invoice of a transaction once, with its kind', async t => {
      const { store, reader } = await open(t, engine)
      const [a, b] = [makeRecord({ id: 'in_a' }), makeRecord({ id: 'in_b', customer_id: 'cus_bob' })]
      await store.transaction(async tx => {
        await tx.saveInvoices([a, b])
        await tx.saveDerivedLinks([{ invoice: { ...a.invoice, ...withDocument }, document: null }])
      })
      await store.transaction(tx => tx.saveInvoices([b]))
      await store.transaction(tx =>
        tx.saveDerivedLinks([{ invoice: { ...b.invoice, ...withDocument }, document: null }]),
      )
      await store.transaction(tx => tx.saveInvoices([makeRecord({ ...a.invoice, status: 'void' })]))
      await store.transaction(tx => tx.deleteInvoice('cus_ana', 'in_a'))
      const all = await follow(reader, null)
      assert.deepEqual(all.changes.map(shown), [
        'cus_ana in_a created',
        'cus_bob in_b created',
        'cus_bob in_b document',
        'cus_ana in_a updated',
        'cus_ana in_a deleted',
      ])
      const own = await follow(reader, 'cus_ana')
      assert.deepEqual(
        own.changes.map(({ kind }) => kind),
        ['created', 'updated', 'deleted'],
      )
      // The latest change is that of the customer's version.
      assert.equal((await reader.readSnapshot('cus_ana')).version, own.next)
      assert.equal((await reader.readChanges('cus_ana', null, 3))?.next, own.next)
      const { life } = await reader.readFreshness()
      assert.deepEqual(await reader.readChanges('cus_nobody', 0, 3), { changes: [], next: 0, life })
      const seqs = all.changes.map(({ seq }) => seq)
      assert.deepEqual(
        seqs,
        [...new Set(seqs)].sort((x, y) => x - y),
      )
    })

    it('has one version for each changed invoice, and a reader can continue from any version', async t => {
      const { store, reader } = await open(t, engine)
      const records = ['in_a', 'in_b', 'in_c', 'in_d', 'in_e'].map(id => makeRecord({ id }))
      const [a, b, c] = records as [InvoiceRecord, InvoiceRecord, InvoiceRecord]
      const link = ({ invoice }: InvoiceRecord, fields = {}) => ({
        invoice: { ...invoice, ...withDocument, ...fields },
        document: null,
      })
      const begunAt = Date.now()
      await store.transaction(tx => tx.saveInvoices(records))
      const { changes, next } = await follow(reader, 'cus_ana')
      assert.ok(next >= begunAt, `${next}`)
      assert.equal(changes.length, records.length)
      for (const [place, { version }] of changes.entries())
        assert.deepEqual((await follow(reader, 'cus_ana', version)).changes, changes.slice(place + 1))
      await store.transaction(async tx => {
        await tx.saveDerivedLinks([link(a), link(b)])
        await tx.saveDerivedLinks([link(a, { ix_status: 'canceled' })])
        await tx.saveInvoices([makeRecord({ ...b.invoice, status: 'void' })])
        await tx.saveInvoices([makeRecord({ ...c.invoice, status: 'void' })])
        await tx.deleteInvoice('cus_ana', 'in_c')
      })
      assert.deepEqual((await follow(reader, 'cus_ana', next)).changes.map(shown), [
        'cus_ana in_a document',
        'cus_ana in_b updated',
        'cus_ana in_c deleted',
      ])
    })

    it('is in the order of the commits, not in the order in which transactions begin', async t => {
      if (engine.name === 'sqlite') return t.skip('writers follow each other')
      const { stores, reader } = await open(t, engine, 2)
      const [early, late] = stores as [WriteStore, WriteStore]
      const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
      const { promise: written, resolve: noteWritten } = Promise.withResolvers<void>()
      const first = early.transaction(async tx => {
        await tx.saveInvoices([makeRecord({ id: 'in_first', customer_id: 'cus_first' })])
        noteWritten()
        await gate
      })
      await written
      await late.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_second' })]))
      const before = await follow(reader, null)
      assert.deepEqual(before.changes.map(shown), ['cus_ana in_second created'])
      openGate()
      await first
      const after = await follow(reader, null, before.next)
      assert.deepEqual(after.changes.map(shown), ['cus_first in_first created'])
    })

    it('gives each change exactly once to a reader who follows several writers', async t => {
      const { stores, reader } = await open(t, engine, 4)
      const transactions = campaign(12, 200)
      let isOver = false
      const seen = { all: [] as StoredChange[], own: [] as StoredChange[] }
      const following = Object.entries({ all: null, own: 'cus_0' }).map(async ([name, customer]) => {
        let after = 0
        for (let last = false; ; last = isOver) {
          const { changes, next } = await follow(reader, customer, after)
          seen[name as 'all'].push(...changes)
          after = next
          if (last) return
          await sleep(1)
        }
      })
      const written: string[] = []
      await Promise.all(
        stores.map(async (store, writer) => {
          for (let i = 0; i < transactions; i++) {
            const records = Array.from({ length: 1 + (i % 5) }, (_, n) =>
              makeRecord({ id: `in_${writer}_${i}_${n}`, customer_id: `cus_${(i + n * writer) % 6}` }),
            )
            await store.transaction(async tx => {
              await tx.saveInvoices(records)
              await sleep(Math.random() * 10)
            })
            written.push(...records.map(({ invoice }) => `${invoice.customer_id} ${invoice.id} created`))
          }
        }),
      )
      isOver = true
      await Promise.all(following)
      assert.deepEqual(seen.all.map(shown).sort(), written.toSorted())
      assert.deepEqual(seen.own.map(shown).sort(), written.filter(one => one.startsWith('cus_0 ')).sort())
      // What a follower saw is the order that any later reader sees.
      assert.deepEqual((await follow(reader, null)).changes, seen.all)
    })

    it('leads to the content of the store when it is replayed from the beginning', async t => {
      const { store, reader } = await open(t, engine)
      const step = fc.record({
        op: fc.constantFrom('save', 'save', 'relink', 'delete', 'remove'),
        customer: fc.constantFrom('cus_a', 'cus_b'),
        id: fc.constantFrom('in_1', 'in_2', 'in_3'),
        status: fc.constantFrom('draft', 'open', 'paid'),
      })
      const plan = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 })
      await fc.assert(
        fc.asyncProperty(plan, async transactions => {
          for (const steps of transactions)
            await store.transaction(async tx => {
              for (const { op, customer, id, status } of steps) {
                const invoice = makeInvoice({ customer_id: customer, id, status: status as 'paid' })
                if (op === 'save') await tx.saveInvoices([{ invoice, lines: null }])
                else if (op === 'relink')
                  await tx.saveDerivedLinks([{ invoice: { ...invoice, ...withDocument }, document: null }])
                else if (op === 'delete') await tx.deleteInvoice(customer, id)
                else await tx.removeInvoice(customer, id)
              }
            })
          for (const feed of [[null], ['cus_a', 'cus_b']]) {
            const replayed = new Map<string, string>()
            for (const customer of feed)
              for (const { customer_id, invoice_id } of (await follow(reader, customer)).changes) {
                const found = await reader.findInvoice(customer_id, invoice_id)
                if (found === null) replayed.delete(`${customer_id} ${invoice_id}`)
                else replayed.set(`${customer_id} ${invoice_id}`, found.summary)
              }
            const stored = (await store.readInvoices(null, 100)).map(
              ({ customer_id, id, summary }) => [`${customer_id} ${id}`, summary] as const,
            )
            assert.deepEqual(new Map([...replayed].sort()), new Map(stored.toSorted()))
          }
        }),
        { numRuns: campaign(8, 200) },
      )
    })

    it('is pruned step by step, and a cursor before the oldest remaining change expires', async t => {
      const { url, store, reader } = await open(t, engine)
      const save = (customer_id: string, ...ids: string[]) =>
        store.transaction(tx => tx.saveInvoices(ids.map(id => makeRecord({ id, customer_id }))))
      await save('cus_ana', 'in_1', 'in_2', 'in_3', 'in_4')
      await save('cus_bob', 'in_5')
      const { changes } = await follow(reader, null)
      const own = await follow(reader, 'cus_ana')
      const until = own.next
      // What follows is of a later millisecond than all of these.
      const cutoff = Math.ceil((changes.at(-1)?.seq ?? 0) / 1_000) + 1
      t.mock.method(Date, 'now', () => cutoff + 1)
      await save('cus_ana', 'in_6')
      assert.equal(await store.transaction(tx => tx.pruneChanges(cutoff, 2)), 2)
      const seqs = changes.map(({ seq }) => seq)
      assert.equal(await reader.readChanges(null, seqs[0] as number, 9), null)
      // In the midst of a transaction's.
      for (const after of [0, own.changes[0]?.version ?? 0])
        assert.equal(await reader.readChanges('cus_ana', after, 9), null)
      assert.equal((await reader.readChanges('cus_ana', own.changes[1]?.version ?? 0, 9))?.changes.length, 3)
      assert.deepEqual(
        (await follow(reader, null, seqs[1])).changes.map(({ invoice_id }) => invoice_id),
        // Within a transaction, the newest invoice comes first.
        [...changes.slice(2).map(({ invoice_id }) => invoice_id), 'in_6'],
      )
      assert.equal(await store.transaction(tx => tx.pruneChanges(cutoff, 100)), 3)
      assert.equal(await store.transaction(tx => tx.pruneChanges(cutoff, 100)), 0)
      assert.equal(await reader.readChanges(null, 0, 9), null)
      assert.equal(await reader.readChanges('cus_ana', 0, 9), null)
      assert.equal(await reader.readChanges('cus_bob', 0, 9), null)
      assert.equal((await reader.readChanges('cus_ana', until, 9))?.changes.length, 1)
      assert.equal((await reader.readChanges('cus_new', 0, 9))?.changes.length, 0)

      const copy = await engine.createStore(t)
      const [from, to] = [await openOperatorStore(url), await openWriteStore(copy)]
      t.after(() => Promise.all([from.close(), to.close()]))
      await copyStore(from, to, () => {})
      assert.equal(await to.readChanges(null, seqs.at(-1) as number, 9), null)
      assert.equal(await to.readChanges('cus_ana', until, 9), null)
      const next = (await to.readChanges(null, null, 9))?.next as number
      await to.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_7' })]))
      if (engine.name !== 'citus')
        assert.deepEqual((await follow(to, null, next)).changes.map(shown), ['cus_ana in_7 created'])
    })
  })
