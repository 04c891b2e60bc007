/** A document has one owner: whatever is claimed and referenced, in whatever order it arrives, no two invoices are tied to one document. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { noClaim } from '../../src/domain/document.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import { deriveLink } from '../../src/domain/link/derive-link.ts'
import { defaultRules, type LinkRules } from '../../src/domain/link/link.ts'
import { findDifferences } from '../../src/operations/reconcile/reconcile.ts'
import { stripeIdentity } from '../../src/sources/stripe/source-identity.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import type { WriteStore } from '../../src/store/store.ts'
import { campaign } from '../support/checks/campaign.ts'
import { engines } from '../support/databases/engines.ts'
import { gone, linkedStore, makeDocument, observe } from '../support/worlds/linked-store.ts'
import { templates } from '../support/worlds/linking.ts'
import { assertError, startService } from '../support/worlds/service.ts'
import { emptyStore, openStores } from '../support/worlds/sync.ts'

for (const engine of engines)
  describe(`a document has one owner on ${engine.name}`, () => {
    it('a claim does not show the ID or the PDF of a document that names another customer’s invoice', async t => {
      const documents = {
        openPdf: async () => ({ body: Readable.from([Buffer.from('%PDF-1.7\n')]), size: null }),
      }
      const { store, get } = await startService(t, engine, { documents })
      const [old, dup] = [
        { id: 'in_old', customer_id: 'cus_a' },
        { id: 'in_dup', customer_id: 'cus_b' },
      ]
      // A revision of in_old copies its metadata.
      const revision = { id: 'in_revision', customer_id: 'cus_a' }
      const { apply, save } = linkedStore(store)
      const claim = { ix_id: 77 }
      await apply(observe(dup, claim), observe(old, claim), observe(revision, claim))
      await save(makeDocument(77, { reference: 'in_old' }))
      const pathOf = ({ customer_id, id }: typeof old) => `/api/v1/client/${customer_id}/invoice/${id}`
      assert.equal((await get(`${pathOf(old)}/ix/download`)).status, 200)
      for (const other of [dup, revision]) {
        const { json } = await get(pathOf(other))
        assert.deepEqual([json.ix_sync_state, json.ix_id, json.downloads.ix], ['failed', null, null])
        assertError(await get(`${pathOf(other)}/ix/download`), 404, 'document_not_found')
        const [linked] = await store.findLinkedById(other.id)
        assert.ok(linked !== undefined)
        const known = await store.findDocuments({ ids: [77], references: [] })
        const claimants = await store.findClaimants({ documents: [77], payments: [], numbers: [] })
        const found = findDifferences(linked, known, defaultRules, stripeIdentity, Date.now(), claimants)
        assert.deepEqual(
          found.map(({ kind, detail }) => [kind, detail]),
          [['claim_contradicted', 'document 77 is recorded, but its reference names in_old']],
        )
      }
    })

    it('the next invoice that claims a document gets it when the owner loses its claim or is deleted', async t => {
      const { apply, save, readInvoices } = linkedStore((await openStores(t, engine)).store)
      const claim = { ix_id: 77 }
      const first = { id: 'in_z', customer_id: 'cus_a', issued_at: '2026-01-01T00:00:00.000Z' }
      const second = { id: 'in_a', customer_id: 'cus_b', issued_at: '2026-01-02T00:00:00.000Z' }
      const ownerOf = async () =>
        (await readInvoices()).filter(({ ix_id }) => ix_id === 77).map(({ id }) => id)
      await save(makeDocument(77))
      await apply(observe(second, claim))
      assert.deepEqual(await ownerOf(), ['in_a'], 'nobody else claims it yet')
      await apply(observe({ ...first, status: 'draft' }, claim))
      assert.deepEqual(await ownerOf(), ['in_z'], 'issued first')
      await apply(observe({ ...first, status: 'draft' }))
      assert.deepEqual(await ownerOf(), ['in_a'])
      await apply(observe({ ...first, status: 'draft' }, claim))
      await apply(gone(first))
      assert.deepEqual(await ownerOf(), ['in_a'])
    })

    it('an invoice loses the document when the client turns out to have another tax ID', async t => {
      const { apply, save, saveClient, ties } = linkedStore((await openStores(t, engine)).store)
      const claim = { ix_id: 77 }
      const first = { id: 'in_a', customer_id: 'cus_a', issued_at: '2026-01-01T00:00:00.000Z' }
      const second = { id: 'in_b', customer_id: 'cus_b', issued_at: '2026-01-02T00:00:00.000Z' }
      await apply(observe({ ...first, customer_tax_id: 'PT111111111' }, claim))
      await apply(observe({ ...second, customer_tax_id: 'PT222222222' }, claim))
      await save(makeDocument(77, { client_id: 9 }), makeDocument(78, { reference: 'in_b' }))
      assert.deepEqual(await ties(), { in_a: 77, in_b: 78 })
      await saveClient(9, '222222222')
      assert.deepEqual(await ties(), { in_a: null, in_b: 77 })
    })

    it('a document keeps its invoice when its client’s tax ID changes after the issue', async t => {
      const { apply, save, saveClient, relink, ties } = linkedStore((await openStores(t, engine)).store)
      const taxed = { customer_id: 'cus_a', customer_tax_id: 'PT111111111' }
      const later = makeDocument(78, { client_id: 9 })
      await save(makeDocument(77, { client_id: 9 }), { ...later, status: 'draft' })
      await saveClient(9, '111111111')
      await apply(
        observe({ id: 'in_a', ...taxed }, { ix_id: 77 }),
        observe({ id: 'in_b', ...taxed }, { ix_id: 78 }),
      )
      await saveClient(9, '222222222')
      assert.deepEqual(await ties(), { in_a: 77, in_b: null }, 'a draft has its client’s tax ID of today')
      await save(later)
      await saveClient(9, '111111111')
      await relink([later])
      assert.deepEqual(await ties(), { in_a: 77, in_b: null }, 'it was issued to 222222222')
    })

    it('an issued document without a tax ID keeps its invoice when its client gets a tax ID', async t => {
      const { apply, save, saveClient, ties } = linkedStore((await openStores(t, engine)).store)
      await save(makeDocument(77, { client_id: 9 }))
      await apply(
        observe({ id: 'in_a', customer_id: 'cus_a', customer_tax_id: 'PT111111111' }, { ix_id: 77 }),
      )
      await saveClient(9, null)
      await saveClient(9, '222222222')
      assert.deepEqual(await ties(), { in_a: 77 })
    })

    it('only one of two invoices that two processes store at once gets the claimed document', async t => {
      const { store, url } = await openStores(t, engine)
      const { save, readInvoices } = linkedStore(store)
      const others = await Promise.all(Array.from({ length: 4 }, () => openWriteStore(url)))
      const ids = Array.from({ length: 20 }, (_, index) => index + 1)
      await save(...ids.map(id => makeDocument(id)))
      for (const ix_id of ids)
        await Promise.all(
          others.map((other, index) =>
            linkedStore(other).apply(
              observe({ id: `in_${ix_id}_${index}`, customer_id: `cus_${ix_id}_${index}` }, { ix_id }),
            ),
          ),
        )
      for (const other of others) await other.close()
      const tied = (await readInvoices()).flatMap(({ ix_id }) => ix_id ?? [])
      assert.deepEqual(
        tied.sort((a, b) => a - b),
        ids,
      )
    })

    it('each link follows from all stored records, whatever the order of claims, names, changes and deletions', async t => {
      const { store, url } = await openStores(t, engine)
      const rules = { ...defaultRules, ...templates('{id}', '{payment}', 'Order #{payment}', '{number}') }
      const { apply, save, saveClient, readInvoices } = linkedStore(store, rules)
      const taxIds = ['PT123456789', 'PT509442013', null]
      const invoice = fc.record({
        kind: fc.constant('invoice' as const),
        id: fc.constantFrom('in_a', 'in_b', 'in_c', 'in_d'),
        day: fc.constantFrom('2026-01-01', '2026-01-02'),
        taxId: fc.constantFrom(...taxIds),
        claims: fc.constantFrom(1, 2, 3, null, null),
        payments: fc.subarray(['pi_1', 'pi_2']),
        number: fc.constantFrom('N-1', 'N-2', null),
        isDeleted: fc.integer({ min: 0, max: 5 }).map(drawn => drawn === 0),
      })
      const names = ['in_a', 'in_unknown', 'pi_1', 'Order #pi_2', 'pi_unknown', 'N-1', 'PO 12', null]
      const document = fc.record({
        kind: fc.constant('document' as const),
        id: fc.constantFrom(1, 2, 3),
        reference: fc.constantFrom(...names, null),
        uid: fc.constantFrom('in_b', 'pi_1', 'pi_2', 'N-2', null, null, null),
        status: fc.constantFrom('final', 'settled', 'canceled', 'deleted'),
        client: fc.constantFrom(7, 8, null),
      })
      const client = fc.record({
        kind: fc.constant('client' as const),
        id: fc.constantFrom(7, 8),
        taxId: fc.constantFrom(...taxIds),
      })
      const steps = fc.array(fc.oneof(invoice, invoice, document, document, client), { maxLength: 14 })
      const customers: Record<string, string> = { in_a: 'cus_a', in_b: 'cus_b', in_c: 'cus_c', in_d: 'cus_a' }
      await fc.assert(
        fc.asyncProperty(steps, async given => {
          await emptyStore(url)
          for (const step of given) {
            if (step.kind === 'client') await saveClient(step.id, step.taxId)
            else if (step.kind === 'document') {
              const { id, reference, uid, status, client } = step
              await save(
                makeDocument(id, { reference, ...(uid !== null && { uid }), status, client_id: client }),
              )
            } else {
              const fields = {
                id: step.id,
                customer_id: customers[step.id] ?? '',
                customer_tax_id: step.taxId,
                issued_at: `${step.day}T00:00:00.000Z`,
                number: step.number,
                status: 'draft',
              } as const
              await apply(
                step.isDeleted ? gone(fields) : observe(fields, { ix_id: step.claims }, step.payments),
              )
            }
            await assertDerived(store, await readInvoices(), rules)
          }
        }),
        { numRuns: campaign(60, 600) },
      )
    })
  })

/** No document is tied twice, and each link is the one that follows from everything stored, without a look at the last one. */
async function assertDerived(store: WriteStore, invoices: readonly Invoice[], rules: LinkRules) {
  const tied = invoices.flatMap(({ ix_id }) => ix_id ?? [])
  assert.equal(new Set(tied).size, tied.length, 'each document is tied once')
  const known = await store.findDocuments({ ids: [1, 2, 3], references: [] })
  const everything = { documents: [1, 2, 3], payments: ['pi_1', 'pi_2'], numbers: ['N-1', 'N-2'] }
  const claimants = await store.findClaimants(everything)
  for (const { id, ix_id, ix_sync_state } of invoices) {
    const [linked] = await store.findLinkedById(id)
    const own = claimants.find(({ invoice }) => invoice.id === id) ?? {
      invoice: JSON.parse(linked?.summary ?? ''),
      claim: linked?.claim ?? noClaim,
      payments: [],
    }
    const fresh = { ...own, invoice: { ...own.invoice, ix_id: null } }
    const { fields } = deriveLink(fresh, known, rules, Date.now(), claimants)
    assert.deepEqual([id, ix_id, ix_sync_state], [id, fields.ix_id, fields.ix_sync_state])
  }
}
