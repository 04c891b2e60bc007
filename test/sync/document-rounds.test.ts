/** What one round over the documents may claim, and what one bad record must not stop. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { IxDocument } from '../../sandbox/invoicexpress/objects.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import type { DocumentSync } from '../../src/sync/documents/documents.ts'
import { assertDocumentsTrue } from '../support/checks/document-truth.ts'
import { engines } from '../support/databases/engines.ts'
import { anyOrdinary, type DocumentRig, startDocuments, startOrdinary } from '../support/worlds/documents.ts'
import { readAll } from '../support/worlds/sync.ts'

const ordinary = { states: 'ordinary' } as const

async function sweepAll(sync: DocumentSync): Promise<void> {
  while ((await sync.sweepMonth()) !== null);
}

async function runOnce(sync: DocumentSync): Promise<void> {
  await sweepAll(sync)
  await sync.sweepRecent()
  await sync.refreshOpen()
}

/** Makes a record what InvoiceXpress should never send. */
function spoil({ documents }: DocumentRig, id: number, fields: Record<string, unknown>): void {
  const document = documents.documents.get(id) ?? assert.fail()
  documents.documents.set(id, { ...document, ...fields } as IxDocument)
}

const asideOf = async ({ store }: DocumentRig) =>
  (await store.listSetAside(100, 'invoicexpress')).map(({ kind, id, reason }) => `${kind} ${id}: ${reason}`)

for (const engine of engines)
  describe(`rounds over documents on ${engine.name}`, { concurrency: 3 }, () => {
    test('a missing document counts as missed once in a round, and its link ends in the next round', async t => {
      const rig = await startDocuments(t, engine, {
        invoices: 60,
        documents: ordinary,
        now: Math.floor(Date.now() / 1000),
      })
      await rig.syncAll()
      // An open one that is recent: every step looks at it.
      const open = [...rig.account.invoices.values()].filter(({ status, metadata, customer }) => {
        return status === 'open' && metadata.ix_id !== undefined && customer
      })
      const dayOf = (id: string) => rig.account.invoices.get(id)?.status_transitions.finalized_at ?? 0
      const [newest] = open.map(({ id }) => id).sort((a, b) => dayOf(b) - dayOf(a))
      const id = newest ?? assert.fail()
      const document = Number(rig.account.invoices.get(id)?.metadata.ix_id)
      rig.documents.change('vanish', document)
      const asked = () => rig.ix.requests.get('ix_document') ?? 0
      const before = asked()
      await runOnce(await rig.reconnect({ missesApartMs: 'one run' }))
      assert.ok(asked() > before, 'it was asked for')
      const once = await rig.invoice(id)
      assert.deepEqual([once.ix_sync_state, once.ix_id], ['synced', document])
      await runOnce(await rig.reconnect({ missesApartMs: 'one run' }))
      assert.equal((await rig.invoice(id)).ix_sync_state, 'failed')
    })

    test('an invalid listed document is set aside, reported once, and stored once it is valid', async t => {
      const rig = await startDocuments(t, engine, { invoices: 60, documents: ordinary, attempts: 2 })
      const [id, document] = anyOrdinary(rig)
      const { total } = rig.documents.documents.get(document) ?? assert.fail()
      spoil(rig, document, { total: 'many' })
      for (let round = 0; round < 2; round++) await rig.syncAll()
      assert.deepEqual(await asideOf(rig), [
        `document ${document}: InvoiceXpress sent a total that does not fit`,
      ])
      const told = rig.warned.filter(({ msg }) => msg === 'a record could not be read and was set aside')
      assert.equal(told.length, 1)
      assert.equal((await rig.invoice(id)).ix_sync_state, 'not_synced')
      spoil(rig, document, { total })
      await rig.sync.refreshOpen()
      assert.deepEqual(await asideOf(rig), [])
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
    })

    test('a month with unreadable documents does not stop the sweep', async t => {
      const rig = await startOrdinary(t, engine, { invoices: 60, attempts: 2 })
      const known = [...rig.documents.documents.values()]
      const [one = assert.fail(), other = assert.fail()] = known
      // Known, in no list any more, and not to be read by itself.
      spoil(rig, one.id, { date: '01/01/1999', status: null })
      // All that its month has.
      const isBeside = ({ id, date }: IxDocument) => id !== one.id && date.slice(3) === other.date.slice(3)
      for (const { id } of known.filter(isBeside)) rig.documents.documents.delete(id)
      rig.documents.documents.set(other.id, { ...other, currency: ['Euro'] as never })
      const before = (await rig.stream('ix:all'))?.succeeded_at ?? 0
      await sweepAll(rig.sync)
      const all = await rig.stream('ix:all')
      assert.deepEqual([all?.cursor, all?.error, (all?.succeeded_at ?? 0) > before], [null, null, true])
      assert.deepEqual((await asideOf(rig)).sort(), [
        `document ${one.id}: InvoiceXpress sent a document that does not fit: status is null`,
        `document ${other.id}: InvoiceXpress sent a document that does not fit: currency is a list`,
      ])
    })

    test('a key without the permission to read clients is reported once, and nothing fails', async t => {
      const rig = await startDocuments(t, engine, { invoices: 60, documents: ordinary })
      rig.ix.faults.set('ix_client', 'unauthorized')
      for (let round = 0; round < 3; round++) await rig.syncAll()
      const open = await rig.stream('ix:open')
      assert.deepEqual([open?.error, open?.succeeded_at !== null], [null, true])
      assert.equal(rig.warned.filter(({ msg }) => /may not read clients/.test(msg)).length, 1)
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
      rig.ix.faults.clear()
      await rig.sync.refreshOpen()
      const linked = await rig.store.readLinked(null, 1000, null)
      assert.ok(linked.some(({ client_tax_id }) => client_tax_id !== undefined))
      rig.ix.faults.set('*', 'unauthorized')
      await assert.rejects(rig.sync.refreshOpen(), /refused the key/)
    })

    test('an invalid client is set aside, and the other clients are stored', async t => {
      const rig = await startDocuments(t, engine, { invoices: 60, documents: ordinary, attempts: 2 })
      const [, document] = anyOrdinary(rig)
      const whose = rig.documents.documents.get(document)?.client.id ?? 0
      const bad = rig.documents.clients.get(whose) ?? assert.fail()
      rig.documents.clients.set(bad.id, { ...bad, fiscal_id: {} as never })
      await rig.syncAll()
      assert.deepEqual(await asideOf(rig), [
        `client ${bad.id}: InvoiceXpress sent a client that does not fit: fiscal_id is an object`,
      ])
      const linked = await rig.store.readLinked(null, 1000, null)
      for (const { document, client_tax_id } of linked)
        if (document?.document?.client_id)
          assert.equal(client_tax_id === undefined, document.document.client_id === bad.id)
      rig.documents.clients.set(bad.id, bad)
      await rig.sync.refreshOpen()
      assert.deepEqual(await asideOf(rig), [])
    })

    test('archived documents are found by every step', async t => {
      const now = Math.floor(Date.now() / 1000)
      const rig = await startDocuments(t, engine, { invoices: 80, documents: ordinary, now })
      for (const [id, document] of rig.documents.documents)
        rig.documents.documents.set(id, { ...document, archived: true })
      for (const { id, metadata } of rig.account.invoices.values())
        if (metadata.ix_id !== undefined) rig.account.setMetadata(id, { ix_id: '', ix_state: '' })
      await rig.connector.backfill()
      await rig.connector.catchUp()
      await rig.sync.refreshOpen()
      const stored = async () =>
        (await rig.store.readInForce(0, 1_000, null)).map(({ document }) => document?.status)
      assert.deepEqual([...new Set(await stored())], ['final'])
      await sweepAll(rig.sync)
      assert.ok((await stored()).includes('settled'))
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
      // Those of which lists leave fields out are asked for once they belong to an invoice.
      const partial = [...rig.documents.documents.keys()].filter(id => id % 7 === 0).length
      assert.ok((rig.ix.requests.get('ix_document') ?? 0) <= partial, 'the lists hold them')
    })

    test('lists of documents without an end', async t => {
      const rig = await startDocuments(t, engine, { invoices: 80, documents: ordinary, attempts: 1 })
      await rig.connector.backfill()
      for (const fault of ['looping_page', 'repeating_pages', 'endless_pages'] as const)
        await t.test(`${fault} is a failure after a limited number of requests`, async () => {
          const before = Date.now()
          rig.ix.requests.clear()
          rig.ix.faults.set('ix_list', fault)
          await assert.rejects(rig.sync.refreshOpen(), /repeats|does not end|does not fit/)
          const asked = rig.ix.requests.get('ix_list') ?? 0
          assert.ok(asked > 0 && asked <= 60, `${asked} requests`)
          const { failed_at, error } = (await rig.stream('ix:open')) ?? assert.fail()
          assert.ok(Number(failed_at) >= before && error)
        })
    })

    test('a round reports every invoice whose document changed, when many documents arrive at once', async t => {
      const rig = await startOrdinary(t, engine, { invoices: 60 })
      const open = [...rig.documents.documents.values()].filter(({ status }) => status === 'final')
      assert.ok(open.length > 6)
      for (const { id } of open) rig.documents.change('settle', id)
      const documents = new Set(open.map(({ id }) => id))
      const { changed } = await rig.sync.refreshOpen()
      const invoices = (await readAll(rig.store)).map(({ summary }): Invoice => JSON.parse(summary))
      assert.equal(changed, invoices.filter(({ ix_id }) => documents.has(ix_id ?? 0)).length)
    })
  })
