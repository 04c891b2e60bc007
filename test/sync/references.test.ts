/** Documents that name a payment or a number of an invoice: whatever comes first, and whatever changes, the link follows. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { defaultRules } from '../../src/domain/link/link.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { gone, linkedStore, makeDocument, observe } from '../support/worlds/linked-store.ts'
import { templates } from '../support/worlds/linking.ts'
import { openStores } from '../support/worlds/sync.ts'

const a = { id: 'in_a', customer_id: 'cus_a', number: 'A-1', issued_at: '2026-03-01T00:00:00.000Z' }
const b = { id: 'in_b', customer_id: 'cus_b', number: 'B-1', issued_at: '2026-03-02T00:00:00.000Z' }
const numbers = { ...defaultRules, ...templates('{id}', '{payment}', 'Order #{payment}', '{number}') }

for (const engine of engines)
  describe(`links by references on ${engine.name}`, () => {
    const open = async (t: TestContext, rules = defaultRules, on: Engine = engine) =>
      linkedStore((await openStores(t, on)).store, rules)

    it('a document that names a payment is linked, whether the invoice or the document comes first', async t => {
      const { apply, save, ties } = await open(t)
      await apply(observe(a, {}, ['pi_1', 'pi_2']))
      await save(makeDocument(1, { reference: 'pi_2' }), makeDocument(2, { reference: 'pi_3' }))
      assert.deepEqual(await ties(), { in_a: 1 })
      await apply(observe(b, {}, ['pi_3']))
      assert.deepEqual(await ties(), { in_a: 1, in_b: 2 })
    })

    it('a proprietary_uid links by a payment when the reference names nothing', async t => {
      const { apply, save, ties } = await open(t)
      await save(makeDocument(1, { reference: 'PO 17', uid: 'pi_1' }))
      await apply(observe(a, {}, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: 1 })
    })

    it('a payment that is added later links the document, and its removal ends the link', async t => {
      const { apply, save, ties } = await open(t, numbers)
      await apply(observe(a))
      await save(makeDocument(1, { reference: 'Order #pi_1' }))
      assert.deepEqual(await ties(), { in_a: null })
      await apply(observe(a, {}, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: 1 })
      await apply(observe(a, {}, ['pi_2']))
      assert.deepEqual(await ties(), { in_a: null })
    })

    it('a changed reference moves the document from one invoice to another', async t => {
      const { apply, save, ties } = await open(t)
      await apply(observe(a, {}, ['pi_1']), observe(b, {}, ['pi_2']))
      const references = ['pi_1', 'pi_2', 'in_a', null, 'pi_2', 'PO 17']
      const owners = [['in_a'], ['in_b'], ['in_a'], [], ['in_b'], []]
      for (const [i, reference] of references.entries()) {
        await save(makeDocument(1, { reference }))
        const having = Object.entries(await ties()).flatMap(([id, document]) => (document === 1 ? id : []))
        assert.deepEqual(having, owners[i], String(reference))
      }
    })

    it('a second invoice with the same payment ends the first invoice’s link until it loses the payment', async t => {
      const { apply, save, ties } = await open(t)
      await apply(observe(a, {}, ['pi_1']))
      await save(makeDocument(1, { reference: 'pi_1' }))
      await apply(observe(b, {}, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: null, in_b: null })
      await apply(observe(b, {}, []))
      assert.deepEqual(await ties(), { in_a: 1, in_b: null })
      await apply(observe(a, {}, ['pi_0']), observe(b, {}, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: null, in_b: 1 }, 'both at once')
      await apply(observe(a, {}, ['pi_0', 'pi_1']))
      assert.deepEqual(await ties(), { in_a: null, in_b: null })
    })

    it('the deletion of a draft with the same payment restores another invoice’s link', async t => {
      const { apply, save, ties } = await open(t)
      await apply(observe(a, {}, ['pi_1']), observe({ ...b, status: 'draft' }, {}, ['pi_1']))
      await save(makeDocument(1, { reference: 'pi_1' }))
      assert.deepEqual(await ties(), { in_a: null, in_b: null })
      await apply(gone(b))
      assert.deepEqual(await ties(), { in_a: 1 })
    })

    it('a document that names a payment of two invoices is linked only to an invoice that records the document', async t => {
      const { apply, save, ties } = await open(t)
      await apply(observe(a, {}, ['pi_1']), observe(b, {}, ['pi_1']))
      await save(makeDocument(1, { reference: 'pi_1' }), makeDocument(2, { reference: 'pi_1' }))
      assert.deepEqual(await ties(), { in_a: null, in_b: null })
      await apply(observe(b, { ix_id: 2 }, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: null, in_b: 2 })
      await apply(observe(a, { ix_id: 1 }, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: 1, in_b: 2 })
    })

    it('an invoice that records a document loses it to the invoice with the named payment', async t => {
      const { apply, save, ties } = await open(t)
      await save(makeDocument(1, { reference: 'pi_1' }))
      await apply(observe(b, { ix_id: 1 }))
      assert.deepEqual(await ties(), { in_b: 1 }, 'nobody has the payment yet')
      await apply(observe(a, {}, ['pi_1']))
      assert.deepEqual(await ties(), { in_a: 1, in_b: null })
      await apply(observe(a, {}, []))
      assert.deepEqual(await ties(), { in_a: null, in_b: 1 })
    })

    it('an invoice number links once the invoice is finalized and the client is read', async t => {
      const { apply, save, saveClient, ties } = await open(t, numbers)
      const draft = { ...a, number: null, customer_tax_id: 'PT509442013', status: 'draft' } as const
      await save(makeDocument(1, { reference: 'A-1', client_id: 7 }))
      await apply(observe(draft))
      assert.deepEqual(await ties(), { in_a: null })
      await apply(observe({ ...draft, number: 'A-1', status: 'open' }))
      assert.deepEqual(await ties(), { in_a: null }, 'nobody knows the client')
      await saveClient(7, '509442013')
      assert.deepEqual(await ties(), { in_a: 1 })
      await saveClient(7, '501964843')
      assert.deepEqual(await ties(), { in_a: 1 }, 'it was issued to 509442013')
    })

    it('a client’s documents are linked after a crash that followed the storing of its tax ID', async t => {
      const { store } = await openStores(t, engine)
      const { apply, save, saveClient, ties } = linkedStore(store, numbers)
      await save(makeDocument(1, { reference: 'A-1', client_id: 7 }))
      await apply(observe({ ...a, customer_tax_id: 'PT509442013' }))
      for (const [taxId, tied] of [
        ['509442013', 1],
        [null, null],
      ] as const) {
        // All that a process wrote before it ended.
        await store.transaction(tx => tx.saveClient(7, taxId, 1))
        assert.deepEqual(await store.readClients(2, 0, 10), [7])
        await saveClient(7, taxId)
        assert.deepEqual(await ties(), { in_a: tied })
        assert.deepEqual(await store.readClients(2, 0, 10), [])
      }
    })

    it('only clients of documents that name some invoice’s number are read', async t => {
      const { store } = await openStores(t, engine)
      const { apply, save } = linkedStore(store, numbers)
      await save(
        makeDocument(1, { reference: 'A-1', client_id: 7 }),
        makeDocument(2, { reference: 'X-1', client_id: 8 }),
      )
      assert.deepEqual(await store.readClients(1, 0, 10), [])
      await apply(observe(a))
      assert.deepEqual(await store.readClients(1, 0, 10), [7])
      await save(makeDocument(3, { reference: 'A-1', client_id: 9 }))
      assert.deepEqual(await store.readClients(1, 0, 10), [7, 9])
    })

    it('a number of two invoices links only the invoice of the same client, and none when both have this client', async t => {
      const { apply, save, saveClient, ties } = await open(t, numbers)
      const [mine, other] = ['PT509442013', 'PT501964843']
      await save(makeDocument(1, { reference: 'A-1', client_id: 7 }))
      await saveClient(7, mine)
      await apply(observe({ ...a, customer_tax_id: mine }))
      await apply(observe({ ...b, number: 'A-1', customer_tax_id: other, status: 'draft' }))
      assert.deepEqual(await ties(), { in_a: 1, in_b: null })
      const twin = { ...b, number: 'A-1', customer_tax_id: mine, status: 'draft' } as const
      await apply(observe(twin))
      assert.deepEqual(await ties(), { in_a: null, in_b: null })
      await apply(observe({ ...twin, number: 'B-1' }))
      assert.deepEqual(await ties(), { in_a: 1, in_b: null }, 'another number')
      await apply(observe(twin))
      assert.deepEqual(await ties(), { in_a: null, in_b: null })
      await apply(observe({ ...twin, customer_tax_id: other }))
      assert.deepEqual(await ties(), { in_a: 1, in_b: null }, 'another tax ID')
      await apply(observe(twin))
      await apply(gone(twin))
      assert.deepEqual(await ties(), { in_a: 1 }, 'the draft is deleted')
    })

    it('an invoice that moves to another customer keeps its document only if the client still fits', async t => {
      const { apply, save, saveClient, ties } = await open(t, numbers)
      const mine = 'PT509442013'
      await save(makeDocument(1, { reference: 'A-1', client_id: 7 }), makeDocument(2, { reference: 'pi_2' }))
      await saveClient(7, mine)
      await apply(observe({ ...a, customer_tax_id: mine }), observe(b, {}, ['pi_2']))
      assert.deepEqual(await ties(), { in_a: 1, in_b: 2 })
      await apply(observe({ ...a, customer_id: 'cus_c', customer_tax_id: 'PT501964843' }))
      await apply(observe({ ...b, customer_id: 'cus_c' }, {}, ['pi_2']))
      assert.deepEqual(await ties(), { in_a: null, in_b: 2 })
    })

    it('two processes that store invoices with one payment do not link the document twice', async t => {
      const { store, url } = await openStores(t, engine)
      const processes = await Promise.all(Array.from({ length: 3 }, () => openWriteStore(url)))
      const others = processes.map(other => linkedStore(other))
      const all = Array.from({ length: 15 }, (_, i) => i + 1)
      const { save, ties } = linkedStore(store)
      await save(...all.map(id => makeDocument(id, { reference: `pi_${id}` })))
      for (const id of all)
        await Promise.all(
          others.map(({ apply }, i) =>
            apply(observe({ id: `in_${id}_${i}`, customer_id: `cus_${i}` }, {}, [`pi_${id}`])),
          ),
        )
      assert.deepEqual(
        Object.entries(await ties()).filter(([, document]) => document !== null),
        [],
      )
      for (const other of processes) await other.close()
    })

    it('a client and its document’s invoice are linked when two processes store them at once', async t => {
      const { store, url } = await openStores(t, engine)
      const other = await openWriteStore(url)
      const { apply } = linkedStore(other, numbers)
      const { save, saveClient, ties } = linkedStore(store, numbers)
      const all = Array.from({ length: 20 }, (_, i) => i + 1)
      await save(...all.map(id => makeDocument(id, { reference: `N-${id}`, client_id: id })))
      const invoice = { customer_id: 'cus_a', customer_tax_id: 'PT509442013' }
      for (const id of all)
        await Promise.all([
          saveClient(id, '509442013'),
          apply(observe({ id: `in_${id}`, number: `N-${id}`, ...invoice })),
        ])
      await other.close()
      assert.deepEqual(await ties(), Object.fromEntries(all.map(id => [`in_${id}`, id])))
    })

    it('a document and the invoice of its payment are linked when two processes store them at once', async t => {
      const { store, url } = await openStores(t, engine)
      const other = await openWriteStore(url)
      const [{ apply, ties }, { save }] = [linkedStore(store), linkedStore(other)]
      const all = Array.from({ length: 20 }, (_, i) => i + 1)
      for (const id of all)
        await Promise.all([
          save(makeDocument(id, { reference: `pi_${id}` })),
          apply(observe({ id: `in_${id}`, customer_id: 'cus_a' }, {}, [`pi_${id}`])),
        ])
      await other.close()
      assert.deepEqual(await ties(), Object.fromEntries(all.map(id => [`in_${id}`, id])))
    })
  })
