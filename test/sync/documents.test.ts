/** From the two systems to one store: documents are found, followed and given up as the convention says. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertDocumentsTrue } from '../support/checks/document-truth.ts'
import { engines } from '../support/databases/engines.ts'
import { anyOrdinary, startDocuments, startOrdinary } from '../support/worlds/documents.ts'
import { templates } from '../support/worlds/linking.ts'

const everyFault = [['unauthorized', 'too_many', 'error_503', 'garbled'], ['hang']] as const

describe('the sync of documents', { concurrency: engines.length }, () => {
  for (const engine of engines)
    describe(`on ${engine.name}`, { concurrency: 3 }, () => {
      test('ends with the true state for every combination of document and claim', async t => {
        const rig = await startDocuments(t, engine, { invoices: 120, now: Math.floor(Date.now() / 1000) })
        await rig.syncAll()
        // What is claimed and not there counts as gone only when it was missed twice.
        await rig.sync.refreshOpen()
        await assertDocumentsTrue(rig.store, rig.account, rig.documents)
        const states = new Set((await rig.unusual()).map(({ ix_sync_state }) => ix_sync_state))
        assert.deepEqual([...states].sort(), ['creating', 'failed', 'ignored', 'not_synced', 'synced'])
      })

      test('ordinary documents that were all read once', async t => {
        const rig = await startOrdinary(t, engine, { invoices: 60 })

        await t.test('lead to stored tax IDs of their clients, which no invoice shows', async () => {
          const linked = await rig.store.readLinked(null, 1000, null)
          const read = linked.filter(({ client_tax_id }) => client_tax_id !== undefined)
          assert.equal(read.length, linked.filter(({ document }) => document !== null).length)
          for (const { document, client_tax_id } of read) {
            const client = rig.documents.clients.get(document?.document?.client_id ?? 0)
            assert.equal(client_tax_id, client?.fiscal_id || null)
          }
        })

        await t.test(
          'are followed when they are created, settled, canceled or given another reference',
          async () => {
            await assertDocumentsTrue(rig.store, rig.account, rig.documents)
            const [open, openDocument] = anyOrdinary(rig, 'open')
            rig.documents.change('settle', openDocument)
            await rig.sync.refreshOpen()
            assert.equal((await rig.invoice(open)).ix_status, 'settled')
            const [paid, paidDocument] = anyOrdinary(rig)
            rig.documents.change('cancel', paidDocument)
            while ((await rig.sync.sweepMonth()) !== null);
            const canceled = await rig.invoice(paid)
            assert.deepEqual([canceled.ix_sync_state, canceled.ix_status], ['synced', 'canceled'])
            await assertDocumentsTrue(rig.store, rig.account, rig.documents)
          },
        )

        await t.test('are read up to the limit of a run, and the next runs read the rest', async () => {
          const open = [...rig.documents.documents.values()].filter(({ status }) => status === 'final')
          assert.ok(open.length > 6)
          for (const { id } of open) rig.documents.change('settle', id)
          const small = await rig.reconnect({ fetchesPerRun: 3 })
          for (let round = 0; round * 3 < open.length; round++) await small.refreshOpen()
          await small.refreshOpen()
          await assertDocumentsTrue(rig.store, rig.account, rig.documents)
        })
      })

      test('a missing document keeps its invoice at the first miss, and fails it at the second', async t => {
        const rig = await startOrdinary(t, engine, { invoices: 60 })
        const [id, document] = anyOrdinary(rig, 'open')
        rig.documents.change('vanish', document)
        await rig.sync.refreshOpen()
        const once = await rig.invoice(id)
        assert.deepEqual([once.ix_sync_state, once.ix_id], ['synced', document])
        await rig.sync.refreshOpen()
        const twice = await rig.invoice(id)
        assert.deepEqual([twice.ix_sync_state, twice.ix_id, twice.ix_status], ['failed', null, null])
      })

      // Those that no answer is waited for share both systems, and the document that is gone. What is answered is the same to
      // every engine: what it does to the store is seen on each of them with one.
      for (const faults of engine.name === 'sqlite' ? everyFault : ([['error_503']] as const))
        test(`a missing document during ${faults.join(', ')}`, async t => {
          const rig = await startOrdinary(t, engine, {
            invoices: 40,
            attempts: 1,
          })
          const [id, document] = anyOrdinary(rig, 'open')
          rig.documents.change('vanish', document)
          for (const fault of faults)
            await t.test(`${fault} keeps the last known state, however often it occurs`, async () => {
              const before = Date.now()
              // That something is not there is told by the status: what else such an answer says does not matter.
              rig.ix.faults.clear()
              rig.ix.faults.set(fault === 'garbled' ? 'ix_list' : 'ix_document', fault, { retryAfter: '0' })
              // Only its deadline ends the wait for an answer that never comes.
              const sync = fault === 'hang' ? await rig.reconnectImpatient(300) : rig.sync
              for (let round = 0; round < 3; round++) await assert.rejects(sync.refreshOpen())
              const kept = await rig.invoice(id)
              assert.deepEqual([kept.ix_sync_state, kept.ix_id], ['synced', document])
              const stream = await rig.stream('ix:open')
              assert.ok(Number(stream?.failed_at) >= before && stream?.error, 'the failure is told')
            })
        })

      for (const fault of engine.name === 'sqlite'
        ? (['error_500', 'error_in_200'] as const)
        : (['error_500'] as const))
        test(`${fault} for one document keeps its last known state and sets the document aside`, async t => {
          const rig = await startOrdinary(t, engine, {
            invoices: 40,
            attempts: 1,
          })
          const [id, document] = anyOrdinary(rig, 'open')
          rig.documents.change('vanish', document)
          rig.ix.faults.set('ix_document', fault)
          for (let round = 0; round < 3; round++) await rig.sync.refreshOpen()
          const kept = await rig.invoice(id)
          assert.deepEqual([kept.ix_sync_state, kept.ix_id], ['synced', document])
          const [aside] = await rig.store.listSetAside(10, 'invoicexpress')
          assert.deepEqual([aside?.kind, aside?.id, aside?.tries], ['document', String(document), 3])
          rig.ix.faults.clear()
          await rig.sync.refreshOpen()
          assert.deepEqual(await rig.store.listSetAside(10, 'invoicexpress'), [])
          await rig.sync.refreshOpen()
          assert.equal((await rig.invoice(id)).ix_sync_state, 'failed')
        })

      test('failures of many documents at once count as a failure of InvoiceXpress', async t => {
        const rig = await startOrdinary(t, engine, {
          invoices: 70,
          attempts: 2,
        })
        const open = [...rig.documents.documents.values()].filter(({ status }) => status === 'final')
        assert.ok(open.length >= 10)
        for (const { id } of open) rig.documents.change('vanish', id)
        rig.ix.faults.set('ix_document', 'error_500')
        await assert.rejects(rig.sync.refreshOpen(), /none of them could be read/)
      })

      test('the best of several documents of one invoice is chosen and logged', async t => {
        const rig = await startDocuments(t, engine, { invoices: 120 })
        await rig.syncAll()
        const logged = rig.warned.filter(({ msg }) => msg === 'several documents name one invoice')
        assert.ok(logged.length > 0)
        const before = logged.length
        await rig.syncAll()
        const after = rig.warned.filter(({ msg }) => msg === 'several documents name one invoice')
        assert.equal(after.length, before, 'it is told once, not at every round')
      })

      test('invoices with a total of zero, or before the day of LINK_IGNORE_BEFORE, need no document', async t => {
        const rig = await startOrdinary(t, engine, {
          invoices: 40,
          rules: { ignoreBefore: '2999-01-01' },
        })
        for (const { status, id } of rig.account.invoices.values())
          if (status === 'draft' && rig.account.customers.has(String(rig.account.invoices.get(id)?.customer)))
            assert.equal((await rig.invoice(id)).ix_sync_state, 'ignored', id)
      })

      test('a document is linked by its invoice’s PaymentIntent, or by its number and client', async t => {
        const rules = templates('{id}', '{payment}', '{number}')
        const rig = await startOrdinary(t, engine, { invoices: 60, rules })
        const { account, documents, sync, connector } = rig
        const [open, openDocument] = anyOrdinary(rig, 'open')
        const [paid, paidDocument] = anyOrdinary(rig)
        for (const id of [open, paid]) account.setMetadata(id, { ix_id: '', ix_state: '' })
        const { payments } = account.invoices.get(open) ?? assert.fail()
        documents.change('refer', openDocument, payments.data[0]?.payment.payment_intent)
        const { number } = account.invoices.get(paid) ?? assert.fail()
        documents.change('refer', paidDocument, number)
        const { client } = documents.documents.get(paidDocument) ?? assert.fail()
        const { fiscal_id } = documents.clients.get(client.id) ?? assert.fail()
        const setTaxId = (value: string) => {
          const invoice = account.invoices.get(paid) ?? assert.fail()
          account.invoices.set(paid, { ...invoice, customer_tax_ids: [{ type: 'pt_nif', value }] })
        }
        setTaxId('501964843')
        await connector.catchUp()
        while ((await sync.sweepMonth()) !== null);
        await sync.refreshOpen()
        assert.deepEqual(
          [(await rig.invoice(open)).ix_id, (await rig.invoice(paid)).ix_id],
          [openDocument, null],
        )
        setTaxId(fiscal_id ?? assert.fail())
        account.setMetadata(paid, { note: 'another tax ID' })
        await connector.catchUp()
        assert.equal((await rig.invoice(paid)).ix_id, paidDocument)
      })

      test('no document is linked when its reference fits another pattern than the configured one', async t => {
        const rig = await startOrdinary(t, engine, {
          invoices: 40,
          rules: templates('stripe:{id}'),
        })
        const [id, document] = anyOrdinary(rig)
        assert.equal((await rig.invoice(id)).ix_id, document, 'what is claimed is linked all the same')
        rig.account.setMetadata(id, { ix_id: '', ix_state: '' })
        await rig.connector.catchUp()
        assert.equal((await rig.invoice(id)).ix_id, null)
        rig.documents.change('refer', document, `stripe:${id}`)
        while ((await rig.sync.sweepMonth()) !== null);
        assert.equal((await rig.invoice(id)).ix_id, document)
      })
    })
})
