/** A document has one owner: whatever is claimed and referenced, in whatever order it arrives, no two invoices are tied to one document. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { findDifferences } from '../../src/checks/reconcile.ts'
import { type Document, noClaim } from '../../src/document.ts'
import type { Invoice } from '../../src/invoice.ts'
import { deriveLink, referenceOf, usualRules } from '../../src/linking/link.ts'
import type { Observation } from '../../src/sources.ts'
import { openWriteStore } from '../../src/store/engines.ts'
import { observationStamp, type WriteStore, type WriteTransaction } from '../../src/store/store.ts'
import { stripeIdentity } from '../../src/stripe/source-identity.ts'
import { applyObservations } from '../../src/sync/apply.ts'
import { noGuard } from '../../src/sync/deletion-guard.ts'
import { relinkInvoices } from '../../src/sync/link-invoices.ts'
import { campaign } from '../support/campaign.ts'
import { engines } from '../support/engines.ts'
import { makeInvoice } from '../support/records.ts'
import { assertError, startService } from '../support/service.ts'
import { emptyStore, openStores, readAll } from '../support/sync.ts'

let stamp = observationStamp(Date.UTC(2026, 2, 10))

function makeDocument(id: number, fields: Partial<Document> = {}): Document {
  const usual = {
    type: 'Invoice',
    status: 'settled',
    number: '6/G',
    date: '2026-03-03',
    total: '123.00',
  } as const
  return { id, ...usual, reference: null, currency: 'Euro', client_id: null, ...fields }
}

/** As the payment platform is asked for it: with what is recorded there. */
function observe(
  fields: Partial<Invoice> & Pick<Invoice, 'id' | 'customer_id'>,
  ix_id: number | null,
): Observation {
  const ofDocument = ({ ix_sync_state, ix_id, ix_status, ix_created_at }: Invoice) => {
    return { ix_sync_state, ix_id, ix_status, ix_created_at }
  }
  return {
    id: fields.id,
    customer_id: fields.customer_id,
    map: previous => ({
      invoice: { ...makeInvoice(fields), ...(previous && ofDocument(previous)) },
      lines: null,
      claim: { ...noClaim, ix_id },
    }),
  }
}

const apply = (store: WriteStore, ...observations: Observation[]) =>
  store.transaction(tx => applyObservations(tx, observations, stamp++))

/** As a round over the documents stores what it read. */
function save(store: WriteStore, ...documents: Document[]): Promise<unknown> {
  return store.transaction(async tx => {
    await tx.saveDocuments(documents, stamp++)
    await relink(tx, documents)
  })
}

function relink(tx: WriteTransaction, documents: readonly Document[]): Promise<unknown> {
  const wanted = {
    documents: documents.map(({ id }) => id),
    invoices: documents.flatMap(({ reference }) => reference ?? []),
  }
  return relinkInvoices(tx, wanted, 'test', { rules: usualRules, guard: noGuard })
}

async function readInvoices(store: WriteStore): Promise<Invoice[]> {
  return (await readAll(store)).map(({ summary }) => JSON.parse(summary))
}

for (const engine of engines)
  describe(`a document has one owner on ${engine.name}`, () => {
    it('another customer who claims a document that names an invoice gets neither its id nor its PDF', async t => {
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
      await apply(store, observe(dup, 77), observe(old, 77), observe(revision, 77))
      await save(store, makeDocument(77, { reference: 'in_old' }))
      const pathOf = ({ customer_id, id }: typeof old) => `/api/v1/client/${customer_id}/invoice/${id}`
      assert.equal((await get(`${pathOf(old)}/ix/download`)).status, 200)
      for (const other of [dup, revision]) {
        const { json } = await get(pathOf(other))
        assert.deepEqual([json.ix_sync_state, json.ix_id, json.downloads.ix], ['failed', null, null])
        assertError(await get(`${pathOf(other)}/ix/download`), 404, 'document_not_found')
        const [linked] = await store.findLinkedById(other.id)
        assert.ok(linked !== undefined)
        const known = await store.findDocuments({ ids: [77], references: [] })
        const claimants = await store.findClaimants([77])
        const found = findDifferences(linked, known, usualRules, stripeIdentity, Date.now(), claimants)
        assert.deepEqual(
          found.map(({ kind, detail }) => [kind, detail]),
          [['claim_contradicted', 'document 77 is recorded, but its reference names in_old']],
        )
      }
    })

    it('an invoice that loses its claim, or is deleted, leaves the document to the next that claims it', async t => {
      const { store } = await openStores(t, engine)
      const first = { id: 'in_z', customer_id: 'cus_a', issued_at: '2026-01-01T00:00:00.000Z' }
      const second = { id: 'in_a', customer_id: 'cus_b', issued_at: '2026-01-02T00:00:00.000Z' }
      const ownerOf = async () =>
        (await readInvoices(store)).filter(({ ix_id }) => ix_id === 77).map(({ id }) => id)
      await save(store, makeDocument(77))
      await apply(store, observe(second, 77))
      assert.deepEqual(await ownerOf(), ['in_a'], 'nobody else claims it yet')
      await apply(store, observe({ ...first, status: 'draft' }, 77))
      assert.deepEqual(await ownerOf(), ['in_z'], 'issued first')
      await apply(store, observe({ ...first, status: 'draft' }, null))
      assert.deepEqual(await ownerOf(), ['in_a'])
      await apply(store, observe({ ...first, status: 'draft' }, 77))
      await apply(store, { id: first.id, customer_id: first.customer_id, map: null })
      assert.deepEqual(await ownerOf(), ['in_a'])
    })

    it('an invoice whose tax ID is not that of the client loses the document as soon as another one gets it', async t => {
      const { store } = await openStores(t, engine)
      const first = { id: 'in_a', customer_id: 'cus_a', issued_at: '2026-01-01T00:00:00.000Z' }
      const second = { id: 'in_b', customer_id: 'cus_b', issued_at: '2026-01-02T00:00:00.000Z' }
      await apply(store, observe({ ...first, customer_tax_id: 'PT111111111' }, 77))
      await apply(store, observe({ ...second, customer_tax_id: 'PT222222222' }, 77))
      const named = makeDocument(78, { reference: 'in_b' })
      await save(store, makeDocument(77, { client_id: 9 }), named)
      const ties = async () =>
        Object.fromEntries((await readInvoices(store)).map(({ id, ix_id }) => [id, ix_id]))
      assert.deepEqual(await ties(), { in_a: 77, in_b: 78 })
      await store.transaction(tx => tx.saveClient(9, '222222222', stamp++))
      await save(store, named)
      assert.deepEqual(await ties(), { in_a: null, in_b: 77 })
    })

    it('two invoices that two processes store at the same moment do not both get the document they claim', async t => {
      const { store, url } = await openStores(t, engine)
      const others = await Promise.all(Array.from({ length: 4 }, () => openWriteStore(url)))
      const ids = Array.from({ length: 20 }, (_, index) => index + 1)
      await save(store, ...ids.map(id => makeDocument(id)))
      for (const ix_id of ids)
        await Promise.all(
          others.map((other, index) =>
            apply(
              other,
              observe({ id: `in_${ix_id}_${index}`, customer_id: `cus_${ix_id}_${index}` }, ix_id),
            ),
          ),
        )
      for (const other of others) await other.close()
      const tied = (await readInvoices(store)).flatMap(({ ix_id }) => ix_id ?? [])
      assert.deepEqual(
        tied.sort((a, b) => a - b),
        ids,
      )
    })

    it('whatever is claimed, referenced, changed and deleted, in any order, no document is reached by two', async t => {
      const { store, url } = await openStores(t, engine)
      const days = ['2026-01-01', '2026-01-02']
      const taxIds = ['PT123456789', 'PT509442013', null]
      const invoice = fc.record({
        kind: fc.constant('invoice' as const),
        id: fc.constantFrom('in_a', 'in_b', 'in_c', 'in_d'),
        day: fc.constantFrom(...days),
        taxId: fc.constantFrom(...taxIds),
        claims: fc.constantFrom(1, 2, 3, null),
        isDeleted: fc.integer({ min: 0, max: 5 }).map(drawn => drawn === 0),
      })
      const document = fc.record({
        kind: fc.constant('document' as const),
        id: fc.constantFrom(1, 2, 3),
        reference: fc.constantFrom('in_a', 'in_b', 'in_unknown', 'PO 12', null, null),
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
            if (step.kind === 'client')
              await store.transaction(tx => tx.saveClient(step.id, step.taxId, stamp++))
            else if (step.kind === 'document')
              await save(
                store,
                makeDocument(step.id, {
                  reference: step.reference,
                  status: step.status,
                  client_id: step.client,
                }),
              )
            else {
              const customer_id = customers[step.id] ?? ''
              const fields = {
                id: step.id,
                customer_id,
                customer_tax_id: step.taxId,
                issued_at: `${step.day}T00:00:00.000Z`,
                status: 'draft',
              } as const
              await apply(
                store,
                step.isDeleted ? { id: step.id, customer_id, map: null } : observe(fields, step.claims),
              )
            }
            const tied = (await readInvoices(store)).flatMap(({ ix_id }) => ix_id ?? [])
            assert.equal(new Set(tied).size, tied.length, 'each document is tied once')
          }
          // A round over all documents brings what follows from all that is stored, whatever came first.
          const all = await store.findDocuments({ ids: [1, 2, 3], references: [] })
          await store.transaction(tx =>
            relink(
              tx,
              all.flatMap(({ document }) => document ?? []),
            ),
          )
          const claimants = await store.findClaimants([1, 2, 3])
          for (const invoice of await readInvoices(store)) {
            const [linked] = await store.findLinkedById(invoice.id)
            const reference = referenceOf(invoice.id, usualRules)
            const known = all.filter(
              ({ id, document }) => id === linked?.claim?.ix_id || document?.reference === reference,
            )
            const link = deriveLink(
              { ...invoice, ix_id: null },
              linked?.claim ?? noClaim,
              known,
              usualRules,
              Date.now(),
              claimants,
            )
            assert.deepEqual(
              [invoice.ix_id, invoice.ix_sync_state],
              [link.fields.ix_id, link.fields.ix_sync_state],
            )
          }
        }),
        { numRuns: campaign(60, 2_000) },
      )
    })
  })
