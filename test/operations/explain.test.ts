/** `fatura explain`: all that is known of one invoice, in words, on every engine. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { explainNamed } from '../../src/cli/commands/explain.ts'
import { settingGroups } from '../../src/cli/settings/connections.ts'
import { readSettings } from '../../src/cli/settings/read-settings.ts'
import { type Claim, type Document, noClaim } from '../../src/domain/document.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import { defaultRules } from '../../src/domain/link/link.ts'
import type { JournalEntry } from '../../src/store/document-store.ts'
import { openOperatorStore } from '../../src/store/engines.ts'
import { observationStamp, type WriteStore, type WriteTransaction } from '../../src/store/store.ts'
import { relinkInvoices } from '../../src/sync/link-invoices.ts'
import { assertOneLine, createCli, type Outcome } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { linkedStore, makeDocument, observe } from '../support/worlds/linked-store.ts'
import { noGuard } from '../support/worlds/no-guard.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { refusalOf } from '../support/worlds/settings.ts'
import { openStores } from '../support/worlds/sync.ts'

const id = 'in_why'
const now = Date.parse('2026-03-10T12:00:00.000Z')

interface World {
  store: WriteStore
  run(args?: readonly string[], env?: Record<string, string>): Promise<Outcome>
  /** Its output for people; it must succeed. */
  text(env?: Record<string, string>): Promise<string>
  /** The same, within this process: for what is looked at on the way. */
  textHere(): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
  json(): Promise<any[]>
  // biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
  jsonHere(): Promise<any[]>
  save(invoice?: Partial<Invoice>, claim?: Partial<Claim> | null): Promise<void>
  saveDocument(fields?: Partial<Document>, write?: (tx: WriteTransaction) => Promise<void>): Promise<void>
  relink(): Promise<void>
}

async function createWorld(t: TestContext, engine: Engine): Promise<World> {
  const { store, url } = await openStores(t, engine)
  const cli = await createCli(t)
  let stamp = observationStamp(now)
  const run: World['run'] = (args = [id], env = {}) =>
    cli.run(['explain', ...args], { env: { DATABASE_URL: url, ...env } })
  const read = async (args: readonly string[], env = {}) => {
    const { code, stdout, stderr } = await run(args, env)
    assert.deepEqual([code, stderr], [0, ''])
    return stdout
  }
  const readHere = async (form: 'json' | 'text') => {
    const operator = await openOperatorStore(url)
    try {
      return await explainNamed(form, operator, id, readSettings({}, settingGroups.link, { envFile: false }))
    } finally {
      await operator.close()
    }
  }
  const parse = (lines: string) =>
    lines
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line))
  return {
    store,
    run,
    text: env => read([id], env),
    textHere: () => readHere('text'),
    json: async () => parse(await read([id, '--json'])),
    jsonHere: async () => parse(await readHere('json')),
    async save(fields = {}, claim = {}) {
      const invoice = makeInvoice({ id, number: 'A-1', ...fields })
      const record = { invoice, lines: null, ...(claim !== null && { claim: { ...noClaim, ...claim } }) }
      await store.transaction(tx => tx.saveInvoices([record], stamp++))
    },
    async saveDocument(fields = {}, write = async () => {}) {
      const document: Document = {
        id: 10,
        type: 'InvoiceReceipt',
        status: 'final',
        reference: id,
        number: '6/G',
        date: '2026-03-02',
        total: '123.0',
        currency: 'Euro',
        client_id: 7,
        ...fields,
      }
      await store.transaction(async tx => {
        await tx.saveDocuments([document], stamp++)
        await write(tx)
      })
    },
    async relink() {
      const wanted = { documents: [], invoices: [id] }
      await store.transaction(tx =>
        relinkInvoices(tx, wanted, 'list', { rules: defaultRules, guard: noGuard, now }),
      )
    },
  }
}

for (const engine of engines)
  describe(`fatura explain on ${engine.name}`, { concurrency: 2 }, () => {
    it('finds an invoice by its number, document ID, printed number or ATCUD, and shows both dashboards', async t => {
      const { store, save, saveDocument, relink } = await createWorld(t, engine)
      const settings = readSettings({}, settingGroups.link, { envFile: false })
      const explain = (name: string) => explainNamed('text', store, name, settings)
      await save({}, { state: 'synced', ix_id: 10 })
      await saveDocument({ series_number: 'G/6', atcud: 'ABCD1234-6' })
      await relink()
      await store.transaction(async tx => {
        await tx.saveBoundAccount({ system: 'stripe', account: 'acct_1 test', bound_at: 1 })
        await tx.saveBoundAccount({ system: 'invoicexpress', account: 'empresa', bound_at: 1 })
      })
      for (const name of ['A-1', '10', 'FR G/6', 'G/6', 'abcd1234-6']) {
        const stdout = await explain(name)
        assert.match(stdout, /^Invoice in_why of cus_ana/, name)
        assert.match(stdout, /^number +A-1 +FR G\/6\natcud +ABCD1234-6$/m)
        assert.match(stdout, /^https:\/\/dashboard\.stripe\.com\/test\/invoices\/in_why$/m)
        assert.match(stdout, /^https:\/\/empresa\.app\.invoicexpress\.com\/invoice_receipts\/10$/m)
      }
      for (const name of ['A', 'G', '1', '1234-6', '-'])
        await assert.rejects(explain(name), { message: /^There is no invoice \S+ in the store\./ }, name)
    })

    it('shows both sides, the reason for their link, and the events', async t => {
      const { store, text, json, save, saveDocument, relink } = await createWorld(t, engine)
      await save({ customer_email: 'secret@example.com' }, { state: 'synced', ix_id: 10 })
      await saveDocument({}, tx => tx.saveClient(7, '123456789', observationStamp(now)))
      await relink()
      const entries: JournalEntry[] = (['applied', 'overlapped', 'ignored'] as const).map(
        (outcome, index) => ({
          customer_id: 'cus_ana',
          id,
          cause: `evt_${index}`,
          type: 'invoice.paid',
          happened_at: now - 60_000,
          at: now + 1_000 + index,
          outcome,
          detail: `because ${index}`,
        }),
      )
      await store.transaction(tx => tx.saveEntries(entries))
      const shown = await text()
      assert.match(shown, /^Invoice in_why of cus_ana \(Ana Lima\)$/m)
      assert.match(shown, /^id +in_why +10$/m)
      assert.match(shown, /^number +A-1 +6\/G$/m)
      assert.match(shown, /^status +paid +final$/m)
      assert.match(shown, /^total +123\.00 eur +123\.0 Euro$/m)
      assert.match(shown, /^tax id +PT123456789 +123456789$/m)
      assert.match(shown, /^state +synced, created 2026-03-02T00:00:00\.000Z$/m)
      assert.match(
        shown,
        /Last read from Stripe: 2026-03-10T12:00:00\.000Z\. Its metadata there names: state synced, ix_id 10\./,
      )
      assert.match(
        shown,
        /^The document's state is synced, because there is a document claimed as 10, and it is final\.$/m,
      )
      assert.match(
        shown,
        /^ {2}10: InvoiceReceipt 6\/G, final, 123\.0 Euro \(tied, named in the metadata at Stripe, refers to it by \{id\}\); last answer 2026-03-10T12:00:00\.000Z$/m,
      )
      assert.match(
        shown,
        /2026-03-10T12:00:01\.002Z +ignored +invoice\.paid +evt_2 +because 2 \(happened 2026-03-10T11:59:00\.000Z\)\n.*overlapped.*\n.*applied.*\n.*applied +document +list \d+ +synced: there is a document/,
      )
      assert.match(shown, /Next checks:\n {2}The invoice is read again when an event reports/)
      assert.doesNotMatch(shown, /null|undefined|secret/)

      const [object, ...others] = await json()
      assert.deepEqual(others, [])
      assert.equal(object.invoice.ix_id, 10)
      assert.equal(object.claim.ix_id, 10)
      assert.equal(object.derived.fields.ix_sync_state, 'synced')
      assert.deepEqual([object.is_stale, object.deleted], [false, false])
      assert.equal(object.documents[0].document.number, '6/G')
      assert.equal(object.journal.length, 4)
      assert.equal(object.invoice.customer_email, undefined)
    })

    it('reports an unknown document and a missing journal', async t => {
      const { store, text, textHere, save } = await createWorld(t, engine)
      await save({ status: 'open', display_name: 'ana@lima.example' })
      assert.match(
        await textHere(),
        /^The document's state is not_synced, because no invoicing system is connected/m,
      )
      await store.transaction(tx =>
        tx.saveStream({ name: 'ix:all', cursor: null, succeeded_at: null, failed_at: now, error: 'E' }),
      )
      const shown = await text()
      assert.match(
        shown,
        /^The document's state is not_synced, because no document claims it, and none is recorded\.$/m,
      )
      assert.match(shown, /Its metadata there names: nothing\./)
      assert.match(
        shown,
        /^Documents: none\. No known document has one of these references or is named by the invoice\.$/m,
      )
      assert.match(shown, /^ {2}\{id\} +in_why\n {2}\{payment\} +none$/m)
      assert.match(shown, /^Journal: empty\. The invoice came from a list or an import/m)
      assert.match(
        shown,
        /each list of draft, open and uncollectible invoices \(stripe:unsettled, last success never\)/,
      )
      assert.doesNotMatch(shown, /ana@/, 'an address that stands for a name is left out too')
      assert.match(await text({ DOCUMENT_REFERENCE: 'Stripe {id}' }), /^ {2}Stripe \{id\} +Stripe in_why$/m)
    })

    it('shows the reference that links a document, and why other documents are not linked', async t => {
      const { store, text, json } = await createWorld(t, engine)
      const { apply, save } = linkedStore(store)
      const why = { id, customer_id: 'cus_ana', number: 'A-1', customer_tax_id: null }
      await apply(
        observe(why, {}, ['pi_1', 'pi_2']),
        observe({ id: 'in_b', customer_id: 'cus_b' }, {}, ['pi_2']),
      )
      await save(
        makeDocument(10, { reference: 'pi_1' }),
        makeDocument(11, { reference: 'PO 17', uid: 'pi_2' }),
        makeDocument(12, { reference: 'A-1', client_id: 7 }),
      )
      await store.transaction(tx => tx.saveSuccess('ix:all', now))
      const shown = await text()
      assert.match(shown, /because there is a document referring to pi_1, its payment, and it is settled\.$/m)
      assert.match(shown, /^ {2}\{payment\} +pi_1, pi_2$/m)
      assert.match(shown, /^ {2}10: .* \(tied, refers to it by \{payment\}\); last answer \S+$/m)
      assert.match(
        shown,
        /^ {2}11: .* \(its proprietary_uid names it by \{payment\}\); last answer \S+; document 11 names payment pi_2, which in_b has too: it is tied to none of them$/m,
      )
      assert.doesNotMatch(shown, /^ {2}12: /m)
      const numbers = await text({ DOCUMENT_REFERENCE: '{id},Order #{payment},{number}' })
      assert.match(
        numbers,
        /^The stored state is synced, but the state should now be not_synced, because document 12 names number A-1, but the customer has no tax ID to compare\./m,
      )
      assert.match(numbers, /^ {2}Order #\{payment\} +Order #pi_1, Order #pi_2\n {2}\{number\} +A-1$/m)
      const [{ references, names }] = await json()
      assert.deepEqual(references[1], { template: '{payment}', texts: ['pi_1', 'pi_2'] })
      assert.deepEqual(names[0].names, [
        { kind: 'payment', value: 'pi_1', template: '{payment}', field: 'reference' },
      ])
    })

    it('shows that an invoice was imported', async t => {
      const { text, save } = await createWorld(t, engine)
      await save({ ix_sync_state: 'synced', ix_id: 99, ix_status: 'settled' }, null)
      const shown = await text()
      assert.match(shown, /The invoice was imported together with the state of its document/)
      assert.match(shown, /^status +paid +settled$/m)
      assert.doesNotMatch(shown, /Next checks|because/)
    })

    it('reports a stored link that differs from the current rules, and names the fitting documents', async t => {
      const { store, text, jsonHere, save, saveDocument } = await createWorld(t, engine)
      await save()
      await saveDocument({ id: 12 })
      await saveDocument({ id: 11, status: 'canceled' })
      await store.transaction(tx =>
        tx.saveStream({ name: 'ix:all', cursor: null, succeeded_at: now, failed_at: null, error: null }),
      )
      const shown = await text()
      assert.match(
        shown,
        /^The stored state is not_synced, but the state should now be synced with document 12, final, because there is a document referring to in_why, and it is final\./m,
      )
      assert.match(shown, /^Several documents fit: 12, 11\./m)
      assert.match(shown, /ix:all, last success 2026-03-10T12:00:00\.000Z/)
      assert.equal((await jsonHere())[0].is_stale, true)
    })

    it('shows how often each document was missed in a row, and when it counts as gone', async t => {
      const { store, text, textHere, save, saveDocument, relink } = await createWorld(t, engine)
      await save({}, { state: 'synced', ix_id: 9 })
      await saveDocument({ id: 10 })
      const miss = (id: number) => store.transaction(tx => tx.missDocument(id, observationStamp(now) + 1_000))
      await miss(9)
      await miss(10)
      await relink()
      const once = await textHere()
      assert.match(
        once,
        /^ {2}9: never seen \(named in the metadata at Stripe\); last answer .*, missed once in a row$/m,
      )
      assert.match(
        once,
        /^ {2}10: InvoiceReceipt .* \(tied, refers to it by \{id\}\); .*, missed once in a row$/m,
      )
      assert.match(once, /The document's state is synced, because/)
      await miss(9)
      await miss(10)
      await relink()
      const twice = await text()
      assert.match(twice, /^ {2}9: never seen .*, missed 2 times in a row: gone$/m)
      assert.match(
        twice,
        /^The document's state is failed, because document 9 is recorded, but the invoicing system no longer/m,
      )
    })

    it('shows until when a document may be in the state creating', async t => {
      const { store, text, textHere, save, relink } = await createWorld(t, engine)
      const attempted_at = new Date(Date.now() - 60_000).toISOString()
      await save({}, { state: 'creating', attempted_at })
      await relink()
      assert.match(await textHere(), /No documents are read/)
      await store.transaction(tx =>
        tx.saveStream({ name: 'ix:open', cursor: null, succeeded_at: now, failed_at: null, error: null }),
      )
      const until = new Date(Date.parse(attempted_at) + 7_200_000).toISOString()
      const shown = await text({ LINK_CREATING_TIMEOUT: '2h' })
      assert.match(shown, /The document's state is creating, because it is recorded as creating since/)
      assert.match(shown, new RegExp(`is shown as failed from ${until} on`))
      assert.match(
        await text({ LINK_CREATING_TIMEOUT: '10s' }),
        /The stored state is creating, but .* now be failed/,
      )
    })

    it('shows every customer’s invoice with the same ID, and a deleted draft', async t => {
      const { store, text, textHere, jsonHere, save } = await createWorld(t, engine)
      await save({ customer_id: 'cus_a' })
      await save({ customer_id: 'cus_b', status: 'draft' })
      assert.match(await textHere(), /^2 customers have.*of cus_a .*of cus_b /s)
      await store.transaction(tx => tx.deleteInvoice('cus_b', id, observationStamp(now + 5_000)))
      const entry = { customer_id: 'cus_b', id, cause: 'evt_9', type: 'invoice.deleted', happened_at: null }
      await store.transaction(tx =>
        tx.saveEntries([{ ...entry, at: now, outcome: 'applied', detail: 'deleted' }]),
      )
      const shown = await text()
      assert.match(
        shown,
        /Invoice in_why of cus_b was a draft and is deleted\. Last seen: 2026-03-10T12:00:05\.000Z\./,
      )
      assert.match(shown, /applied +invoice\.deleted +evt_9 +deleted/)
      assert.deepEqual(
        (await jsonHere()).map(({ invoice, deleted }) => [invoice.customer_id, deleted]),
        [
          ['cus_a', false],
          ['cus_b', true],
        ],
      )
    })

    it('gives advice for an unknown ID', async t => {
      const { run } = await createWorld(t, engine)
      assertOneLine(await run(['in_nobody']), /no invoice in_nobody .*fatura status/)
      assertOneLine(await run(['in_nobody', '--json']), /no invoice/)
      assertOneLine(await run(['cus_1']), /There is no invoice cus_1 in the store/)
      assert.match(refusalOf('LINK_CREATING_TIMEOUT', '0'), /^LINK_CREATING_TIMEOUT/)
    })

    it('shows control characters of stored texts harmlessly', async t => {
      const { text, save } = await createWorld(t, engine)
      const evil = "\x1b[2J\nThe document's state is synced"
      await save({ display_name: evil, number: evil }, { state: 'failed', error: evil })
      const shown = await text()
      assert.doesNotMatch(shown, /\x1b|^The document's state is synced/m)
    })
  })
