/** From the two systems to one store: documents are found, followed and given up as the convention says. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Invoice } from '../src/invoice.ts'
import { createDocumentSource } from '../src/invoicexpress/document-source.ts'
import {
  createDocuments,
  type DocumentAccount,
  type DocumentOptions,
} from '../src/sandbox/invoicexpress-account.ts'
import {
  type InvoiceXpressSandbox,
  type InvoiceXpressOptions as SandboxOptions,
  startInvoiceXpressSandbox,
} from '../src/sandbox/invoicexpress-server.ts'
import { createDocumentSync, type DocumentSync, type DocumentSyncOptions } from '../src/sync/documents.ts'
import { type LinkRules, usualRules } from '../src/sync/link.ts'
import { assertDocumentsTrue, differingFields } from './support/document-truth.ts'
import { type Engine, engines } from './support/engines.ts'
import { createLog, type Rig, type RigOptions, readAll, startRig } from './support/sync.ts'

interface DocumentRig extends Rig {
  documents: DocumentAccount
  ix: InvoiceXpressSandbox
  sync: DocumentSync
  /** All of both systems, once. */
  syncAll(): Promise<void>
  reconnect(options?: Partial<DocumentSyncOptions>): Promise<DocumentSync>
  invoice(id: string): Promise<Invoice>
  /** Those whose document is not as it should be. */
  unusual(): Promise<Invoice[]>
  warned: { level: number; msg: string }[]
}

const key = 'canary_key_of_invoicexpress'

async function startDocuments(
  t: TestContext,
  engine: Engine,
  options: RigOptions & {
    documents?: DocumentOptions
    ix?: Partial<SandboxOptions>
    rules?: Partial<LinkRules>
    attempts?: number
  } = {},
): Promise<DocumentRig> {
  const { documents: wanted, ix: server, rules: given, attempts = 4, ...rest } = options
  const rig = await startRig(t, engine, rest)
  const documents = createDocuments(rig.account, wanted)
  const ix = await startInvoiceXpressSandbox({ documents, apiKey: key, ...server })
  t.after(() => ix.close())
  const source = createDocumentSource(
    { account: null, apiKey: key, base: ix.address, timeout: 700 },
    { perSecond: 10_000, attempts, patience: 5_000 },
  )
  const { log, logged: warned } = createLog()
  const rules = { ...usualRules, ...given }
  const reconnect: DocumentRig['reconnect'] = more =>
    createDocumentSync({
      source,
      store: rig.store,
      rules,
      log,
      signal: new AbortController().signal,
      fetchesPerRun: Number.POSITIVE_INFINITY,
      ...more,
    })
  const connector = await rig.connect({ rules })
  const sync = await reconnect()
  t.after(() => assert.ok(!JSON.stringify([warned, rig.logged]).includes(key), 'the key is in a log line'))
  return {
    ...rig,
    connector,
    documents,
    ix,
    sync,
    warned,
    reconnect,
    async syncAll() {
      await connector.backfill()
      await connector.catchUp()
      while ((await sync.sweepMonth()) !== null);
      await sync.sweepRecent()
      await sync.refreshOpen()
    },
    async unusual() {
      const records = await readAll(rig.store)
      return records.filter(({ id }) => documents.states.has(id)).map(({ summary }) => JSON.parse(summary))
    },
    async invoice(id) {
      const [found] = await rig.store.findLinkedById(id)
      assert.ok(found !== undefined, `there is no ${id}`)
      return JSON.parse(found.summary)
    },
  }
}

/** The id of an invoice that is as it should be, with its document. */
function anyOrdinary({ account, documents }: DocumentRig, status = 'paid'): [string, number] {
  for (const { id, metadata, status: found } of account.invoices.values())
    if (found === status && !documents.states.has(id) && metadata.ix_id !== undefined)
      return [id, Number(metadata.ix_id)]
  throw new Error(`no ordinary ${status} invoice`)
}

for (const engine of engines)
  describe(`documents on ${engine.name}`, { concurrency: 3 }, () => {
    test('every state of documents and claims converges to the truth, as told by the convention', async t => {
      const rig = await startDocuments(t, engine, { invoices: 600, now: Math.floor(Date.now() / 1000) })
      await rig.syncAll()
      // What is claimed and not there counts as gone only when it was missed twice.
      await rig.sync.refreshOpen()
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
      const states = new Set((await rig.unusual()).map(({ ix_sync_state }) => ix_sync_state))
      assert.deepEqual([...states].sort(), ['creating', 'failed', 'ignored', 'not_synced', 'synced'])
    })

    test('with lag and faults on both systems, it converges to the same truth', async t => {
      const rig = await startDocuments(t, engine, {
        invoices: 200,
        ix: { lag: 300, chaos: 0.1 },
        attempts: 8,
      })
      for (let round = 0; round < 3; round++) {
        rig.account.advance(86_400)
        rig.documents.follow()
        await rig.syncAll().catch(() => {})
      }
      rig.ix.faults.clear()
      rig.ix.faults.setChaos(0)
      await new Promise(resolve => setTimeout(resolve, 350))
      await rig.syncAll()
      await rig.sync.refreshOpen()
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
    })

    test('what happens to documents is seen: created, settled, canceled, referring elsewhere', async t => {
      const rig = await startDocuments(t, engine, { invoices: 120, documents: { states: 'ordinary' } })
      await rig.syncAll()
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
    })

    test('invoices finalized, paid and voided meanwhile get, settle and cancel their documents', async t => {
      const rig = await startDocuments(t, engine, { invoices: 80, documents: { states: 'ordinary' } })
      await rig.syncAll()
      rig.account.advance(5 * 86_400)
      assert.ok(rig.documents.follow() > 0)
      await rig.connector.catchUp()
      while ((await rig.sync.sweepMonth()) !== null);
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
    })

    test('a document that is gone is missed twice before its invoice gives it up, and then failed', async t => {
      const rig = await startDocuments(t, engine, { invoices: 60, documents: { states: 'ordinary' } })
      await rig.syncAll()
      const [id, document] = anyOrdinary(rig, 'open')
      rig.documents.change('vanish', document)
      await rig.sync.refreshOpen()
      const once = await rig.invoice(id)
      assert.deepEqual([once.ix_sync_state, once.ix_id], ['synced', document])
      await rig.sync.refreshOpen()
      const twice = await rig.invoice(id)
      assert.deepEqual([twice.ix_sync_state, twice.ix_id, twice.ix_status], ['failed', null, null])
    })

    for (const fault of ['unauthorized', 'too_many', 'error_500', 'hang', 'error_in_200', 'garbled'] as const)
      test(`${fault} keeps the last known state, however often`, async t => {
        const rig = await startDocuments(t, engine, {
          invoices: 40,
          documents: { states: 'ordinary' },
          attempts: 1,
        })
        await rig.syncAll()
        const [id, document] = anyOrdinary(rig, 'open')
        rig.documents.change('vanish', document)
        // That something is not there is told by the status: what else such an answer says does not matter.
        rig.ix.faults.set(fault === 'garbled' ? 'ix_list' : 'ix_document', fault, { retryAfter: '0' })
        for (let round = 0; round < 3; round++) await assert.rejects(rig.sync.refreshOpen())
        const kept = await rig.invoice(id)
        assert.deepEqual([kept.ix_sync_state, kept.ix_id], ['synced', document])
        const stream = await rig.stream('ix:open')
        assert.ok(stream?.failed_at !== null && stream?.error, 'the failure is told')
      })

    test('several documents for one invoice: the best is chosen, and it is logged', async t => {
      const rig = await startDocuments(t, engine, { invoices: 600 })
      await rig.syncAll()
      const logged = rig.warned.filter(({ msg }) => msg === 'several documents for one invoice')
      assert.ok(logged.length > 0)
      const before = logged.length
      await rig.syncAll()
      const after = rig.warned.filter(({ msg }) => msg === 'several documents for one invoice')
      assert.equal(after.length, before, 'it is told once, not at every round')
    })

    test('a run has a budget: what it does not get to, the next ones do', async t => {
      const rig = await startDocuments(t, engine, { invoices: 120, documents: { states: 'ordinary' } })
      await rig.syncAll()
      const open = [...rig.documents.documents.values()].filter(({ status }) => status === 'final')
      assert.ok(open.length > 6)
      for (const { id } of open) rig.documents.change('settle', id)
      const small = await rig.reconnect({ fetchesPerRun: 3 })
      for (let round = 0; round * 3 < open.length; round++) await small.refreshOpen()
      await small.refreshOpen()
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
    })

    test('a list that changes while it is read is read again; nothing is passed over', async t => {
      const rig = await startDocuments(t, engine, { invoices: 300, documents: { states: 'ordinary' } })
      await rig.connector.backfill()
      const [, document] = anyOrdinary(rig)
      const pages = rig.ix.requests
      const watch = setInterval(() => {
        if ((pages.get('ix_list') ?? 0) > 3) {
          clearInterval(watch)
          rig.documents.change('vanish', document)
        }
      }, 1)
      await rig.syncAll()
      clearInterval(watch)
      for (let round = 0; round < 2; round++) await rig.sync.refreshOpen()
      while ((await rig.sync.sweepMonth()) !== null);
      await assertDocumentsTrue(rig.store, rig.account, rig.documents)
    })

    test('a claim that something is in the making is failed once it is too old, without any event', async t => {
      const rig = await startDocuments(t, engine, {
        invoices: 600,
        rules: { creatingAtMost: 10 * 365 * 86_400_000 },
      })
      await rig.syncAll()
      const creating = async () => {
        const found = await rig.unusual()
        return found.filter(({ ix_sync_state }) => ix_sync_state === 'creating').length
      }
      assert.ok((await creating()) > 0)
      const strict = await rig.reconnect({ rules: { ...usualRules, creatingAtMost: 0 } })
      await strict.refreshOpen()
      assert.equal(await creating(), 0)
    })

    test('rules for what needs no document: zero totals, and what was issued before a day', async t => {
      const rig = await startDocuments(t, engine, {
        invoices: 60,
        documents: { states: 'ordinary' },
        rules: { ignoreBefore: '2999-01-01' },
      })
      await rig.syncAll()
      for (const { status, id } of rig.account.invoices.values())
        if (status === 'draft' && rig.account.customers.has(String(rig.account.invoices.get(id)?.customer)))
          assert.equal((await rig.invoice(id)).ix_sync_state, 'ignored', id)
    })

    test('the reference’s pattern is the convention’s: with another one, nothing is linked by mistake', async t => {
      const rig = await startDocuments(t, engine, {
        invoices: 60,
        documents: { states: 'ordinary' },
        rules: { reference: 'stripe:{id}' },
      })
      await rig.syncAll()
      const [id, document] = anyOrdinary(rig)
      assert.equal((await rig.invoice(id)).ix_id, document, 'what is claimed is linked all the same')
      rig.account.setMetadata(id, { ix_id: '', ix_state: '' })
      await rig.connector.catchUp()
      assert.equal((await rig.invoice(id)).ix_id, null)
      rig.documents.change('refer', document, `stripe:${id}`)
      while ((await rig.sync.sweepMonth()) !== null);
      assert.equal((await rig.invoice(id)).ix_id, document)
    })

    test('the tax ids of those who have documents are read, and never leave with an invoice', async t => {
      const rig = await startDocuments(t, engine, { invoices: 60, documents: { states: 'ordinary' } })
      await rig.syncAll()
      const linked = await rig.store.readLinked(null, 1000, null)
      const read = linked.filter(({ client_tax_id }) => client_tax_id !== undefined)
      assert.equal(read.length, linked.filter(({ document }) => document !== null).length)
      for (const { document, client_tax_id } of read) {
        const client = rig.documents.clients.get(document?.document?.client_id ?? 0)
        assert.equal(client_tax_id, client?.fiscal_id || null)
      }
    })

    test('freshness follows the documents too: it is not told before all were read once', async t => {
      const rig = await startDocuments(t, engine, { invoices: 30, documents: { states: 'ordinary' } })
      await rig.connector.backfill()
      await rig.connector.catchUp()
      await rig.sync.sweepRecent()
      await rig.sync.refreshOpen()
      await rig.sync.sweepMonth()
      assert.equal((await rig.reader.readSnapshot('cus_any')).synced_at, null)
      while ((await rig.sync.sweepMonth()) !== null);
      assert.ok((await rig.reader.readSnapshot('cus_any')).synced_at !== null)
    })

    test('events and documents may come in any order, and at once: the link is found', async t => {
      const rig = await startDocuments(t, engine, { invoices: 100, documents: { states: 'ordinary' } })
      await Promise.all([
        rig.connector.backfill(),
        (async () => {
          while ((await rig.sync.sweepMonth()) !== null);
        })(),
      ])
      while ((await rig.sync.sweepMonth()) !== null);
      assert.deepEqual(await differingFields(rig.store, rig.account, rig.documents), {})
    })
  })
