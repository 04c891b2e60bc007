/** From the payment platform to the store: whatever happens on the way, both end equal. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type Stripe from 'stripe'
import type { StripeAccount } from '../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../sandbox/stripe/objects.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import type { PaymentFacts } from '../../src/domain/payment.ts'
import { type BillingSource, SourceError } from '../../src/sources/source.ts'
import { readEvent } from '../../src/sources/stripe/events.ts'
import type { StoredRecord, Stream } from '../../src/store/store.ts'
import { partsAtOnce } from '../../src/sync/invoices/list-account.ts'
import { readListCursor, wholeList, writeListCursor } from '../../src/sync/invoices/ranges.ts'
import { engines } from '../support/databases/engines.ts'
import {
  assertNothingFalse,
  assertTrue,
  backfillStream,
  createDirectSource,
  eventsStream,
  type Rig,
  readAll,
  readFreshness,
  relistStream,
  startRig,
  truthOf,
  unsettledStream,
} from '../support/worlds/sync.ts'

const day = 86_400

/** What the API tells of a customer: the freshness of its records, and how many there are. */
async function listOf({ reader }: Rig, customer_id: string) {
  return reader.listInvoices({ customer_id, page: 1, page_size: 50 })
}

function read({ summary }: StoredRecord): Invoice {
  return JSON.parse(summary)
}

/** The account in pages of ten, without the wire: for tests of how a long list is read, which is no shorter for that. */
function inSmallPages(account: StripeAccount): { source: BillingSource; readonly asked: number } {
  const source = createDirectSource(account, 10)
  let asked = 0
  return {
    source: {
      ...source,
      listInvoices(...given) {
        asked++
        return source.listInvoices(...given)
      },
    },
    get asked() {
      return asked
    },
  }
}

/** Whatever waits for nothing but the store gets on. */
const turn = () => new Promise(resolve => setImmediate(resolve))

/** A rig whose store already has everything that the account has. */
async function startSynced(
  ...args: Parameters<typeof startRig>
): Promise<Awaited<ReturnType<typeof startRig>>> {
  const rig = await startRig(...args)
  await rig.connector.backfill()
  await rig.connector.catchUp()
  return rig
}

for (const engine of engines) {
  describe(`sync of invoices on ${engine.name}`, { concurrency: 3 }, () => {
    test('a backfill of 700 invoices stores exactly the rows of the account', async t => {
      const rig = await startRig(t, engine, { invoices: 700, seed: 4 })
      const { account, sandbox, store, connector } = rig
      const applied = await connector.backfill()
      await assertTrue(account, store)
      const truth = truthOf(account)
      const refused = account.invoices.size - truth.length
      assert.ok(refused > 0)
      assert.deepEqual(applied, {
        changed: truth.length,
        deleted: 0,
        overlapped: 0,
        // A page that was asked for before its part was cut is read by two.
        refused: { no_customer: Math.max(refused, Math.min(applied.refused.no_customer ?? 0, refused + 30)) },
      })
      assert.ok(truth.some(({ lines }) => JSON.parse(lines ?? '[]').length > 100))
      // Its 7 pages; 7 questions how far back it reaches; and at most two more for every part.
      assert.ok(Number(sandbox.requests.get('list_invoices')) <= 30)

      // At its end it asks for nothing more; nor does a catch-up fetch anything when nothing happened.
      const [once, again] = [new Map(sandbox.requests), await rig.connect()]
      assert.equal((await again.backfill()).changed, 0)
      assert.deepEqual(sandbox.requests, once)
      assert.equal((await again.catchUp()).changed, 0)
      assert.deepEqual(sandbox.requests, new Map([...once, ['list_events', 2]]))
    })

    test('a failed backfill continues where it stopped, and counts as a success only at its end', async t => {
      const rig = await startRig(t, engine, { invoices: 250, lines: 1, seed: 5 })
      const { account, sandbox, store, source } = rig
      for (const pages of [1, 2]) {
        let count = 0
        const failing: BillingSource = {
          ...source,
          async listInvoices(after, only, urgency) {
            if (++count > 1) sandbox.faults.set('list_invoices', 'error_500')
            return source.listInvoices(after, only, urgency)
          },
        }
        const began = Date.now()
        await assert.rejects((await rig.connect({ source: failing })).backfill(), SourceError)
        sandbox.faults.clear()
        const stream = await rig.stream(backfillStream)
        assert.equal(stream?.succeeded_at, null)
        assert.ok(Number(stream?.failed_at) >= began)
        assert.match(String(stream?.error), /Stripe answered/)
        assert.equal(await readFreshness(rig), null)
        assert.equal((await readAll(store)).length > 0, true)
        await assertNothingFalse(account, store)
        assert.ok(stream?.cursor, `there is a cursor after page ${pages}`)
      }
      const asked = Number(sandbox.requests.get('list_invoices'))
      const connector = await rig.connect()
      await connector.backfill()
      // Two of three pages were committed before.
      assert.equal(Number(sandbox.requests.get('list_invoices')) - asked, 1)
      await assertTrue(account, store)
      const { succeeded_at, failed_at, error, cursor } = (await rig.stream(backfillStream)) ?? {}
      assert.ok(Number(succeeded_at) > 0)
      assert.deepEqual([failed_at, error, cursor], [null, null, null])
      // What happened while it ran is not known yet.
      assert.equal(await readFreshness(rig), null)
      await connector.catchUp()
      assert.ok(Number(await readFreshness(rig)) > 0)
    })

    test('a backfill that is aborted at any page continues from that page', async t => {
      for (const pages of [1, 2]) {
        const rig = await startRig(t, engine, { invoices: 25, lines: 1, seed: pages })
        const list = inSmallPages(rig.account)
        const stop = new AbortController()
        const source: BillingSource = {
          ...list.source,
          listInvoices(...given) {
            if (list.asked + 1 === pages) stop.abort()
            return list.source.listInvoices(...given)
          },
        }
        await assert.rejects((await rig.connect({ source, signal: stop.signal })).backfill(), /abort/i)
        // Being stopped is no failure.
        assert.equal((await rig.stream(backfillStream))?.failed_at, null)
        assert.equal((await rig.stream(backfillStream))?.succeeded_at, null)
        assert.equal(list.asked, pages)
        await (await rig.connect({ source: list.source })).backfill()
        assert.equal(list.asked, 3)
        await assertTrue(rig.account, rig.store)
      }
    })

    test('a backfill whose cursor was deleted begins again', async t => {
      const rig = await startRig(t, engine, { invoices: 30, lines: 1, seed: 6 })
      const { account, store } = rig
      const id = account.change('create')
      const ranges = [{ ...wholeList, after: id }]
      const none = { succeeded_at: null, failed_at: null, error: null }
      await store.transaction(async tx => {
        await tx.saveStream({ ...none, name: eventsStream, cursor: String(account.clock) })
        await tx.saveStream({
          ...none,
          name: backfillStream,
          cursor: writeListCursor({ since: 1, begunAt: null, isForced: false, ranges }),
        })
      })
      account.change('delete', id)
      await rig.connector.backfill()
      await assertTrue(account, store)
      assert.ok(rig.logged.some(({ msg }) => /the list starts again/.test(msg)))
    })

    test('events bring changes, deleted drafts and renamed customers', async t => {
      const rig = await startSynced(t, engine, { invoices: 80, lines: 1, seed: 1 })
      const { account, store, connector, reader } = rig
      const kinds = new Set<string>()
      for (const days of [0.1, 0.4, 1.5]) {
        const before = account.events.length
        account.advance(days * day)
        for (const { type } of account.events.slice(before)) kinds.add(type)
        await connector.catchUp()
        await assertTrue(account, store)
      }
      for (const type of ['created', 'finalized', 'paid', 'voided', 'deleted', 'upcoming'])
        assert.ok(kinds.has(`invoice.${type}`), type)
      assert.ok(kinds.has('customer.updated'))

      const draft = (await readAll(store)).map(read).find(({ status }) => status === 'draft') as Invoice
      const before = await listOf(rig, draft.customer_id)
      account.change('delete', draft.id)
      const { deleted } = await connector.catchUp()
      assert.equal(deleted, 1)
      const after = await listOf(rig, draft.customer_id)
      assert.equal(after.total, before.total - 1)
      assert.ok(after.version > before.version)
      assert.ok(!after.summaries.includes(draft.id))
      assert.equal(await reader.findInvoice(draft.customer_id, draft.id), null)
      await assertTrue(account, store)
    })

    test('drafts and company names follow a renamed customer, and finalized invoices keep the name', async t => {
      const rig = await startRig(t, engine, { invoices: 80, lines: 1, seed: 2 })
      const { account, store, connector } = rig
      await connector.backfill()
      const before = (await readAll(store)).map(read)
      const owner = before.find(({ customer_id, status, company_name }) => {
        const theirs = before.filter(other => other.customer_id === customer_id)
        return status === 'draft' && company_name !== null && theirs.some(other => other.status === 'paid')
      })
      assert.ok(owner !== undefined)
      account.renameCustomer(owner.customer_id, 'Nova Era')
      await connector.catchUp()
      await assertTrue(account, store)
      for (const invoice of (await readAll(store)).map(read)) {
        const old = before.find(({ id }) => id === invoice.id) as Invoice
        if (invoice.customer_id !== owner.customer_id) assert.deepEqual(invoice, old)
        else {
          assert.equal(invoice.company_name, 'Nova Era, Lda.')
          const isDraft = invoice.status === 'draft'
          assert.equal(invoice.customer_name, isDraft ? 'Nova Era' : old.customer_name)
          assert.equal(invoice.display_name, isDraft ? 'Nova Era, Lda.' : old.display_name)
        }
      }
    })

    test('reading unsettled invoices again finds changes and deletions that no event announced', async t => {
      const rig = await startSynced(t, engine, { invoices: 80, lines: 1, seed: 9 })
      const { account, store, connector } = rig
      const told = account.events.length
      const late = (await readAll(store)).map(read).find(({ status }) => status === 'uncollectible')
      account.change('pay', late?.id)
      for (const kind of ['finalize', 'pay', 'void', 'uncollectible', 'delete', 'delete', 'update'] as const)
        account.change(kind)
      account.events.splice(told)
      assert.equal((await connector.catchUp()).changed, 0)
      await assert.rejects(assertTrue(account, store))
      const applied = await connector.rereadUnsettled()
      assert.equal(applied.deleted, 2)
      assert.ok(applied.changed >= 4)
      await assertTrue(account, store)
      // Those that are still as they were are listed; only the others are asked for one by one.
      assert.ok(Number(rig.sandbox.requests.get('retrieve_invoice')) <= 8)
      assert.ok(Number((await rig.stream(unsettledStream))?.succeeded_at) > 0)
    })

    test('a large list is read in parallel parts, and continues after an interruption at any page', {
      timeout: 600_000,
    }, async t => {
      const rig = await startRig(t, engine, { invoices: 300, lines: 1, seed: 31 })
      const { account, store } = rig
      const list = inSmallPages(account)
      let underWay = 0
      const [sideBySide, pagesUnsplit] = [4, 5]
      const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
      const stop = new AbortController()
      const counting: BillingSource = {
        ...list.source,
        async listInvoices(...given) {
          if (++underWay === sideBySide) openGate()
          const answer = list.source.listInvoices(...given)
          if (list.asked === 25) stop.abort()
          // Once the list is known to be long, nothing is answered until so many are asked for.
          if (list.asked > pagesUnsplit) await gate
          return answer.finally(() => underWay--)
        },
      }
      await assert.rejects(
        (await rig.connect({ source: counting, signal: stop.signal })).backfill(),
        /abort/i,
      )
      const { ranges } = readListCursor((await rig.stream(backfillStream))?.cursor ?? null)
      assert.ok(ranges.length >= 4, `${ranges.length} parts are left`)
      await assertNothingFalse(account, store)
      const before = (await readAll(store)).length
      assert.ok(before > 100)
      const { changed } = await (await rig.connect({ source: list.source })).backfill()
      // Nothing is lost, and what was stored is not read again but for a page of a part.
      assert.equal(before + changed, truthOf(account).length)
      await assertTrue(account, store)
      assert.ok(list.asked < 90, `${list.asked} pages`)
    })

    test('an invalid record is set aside, and all other records are stored', async t => {
      const rig = await startRig(t, engine, { invoices: 130, lines: 1, seed: 33 })
      const { account, store, connector } = rig
      const ids = [account.order.at(120), account.order.at(40)]
      const sound = ids.map(id => account.invoices.get(id) as StripeInvoice)
      const [bad, worse] = sound as [StripeInvoice, StripeInvoice]
      account.invoices.set(bad.id, { ...bad, total: 'many' as unknown as number })
      const [line] = worse.lines.data
      const lines = { ...worse.lines, data: [{ ...line, amount: null, subtotal: null }] }
      account.invoices.set(worse.id, { ...worse, lines } as unknown as StripeInvoice)
      await connector.backfill()
      const stored = new Set((await readAll(store)).map(({ id }) => id))
      assert.ok((await rig.stream(backfillStream))?.succeeded_at)
      const unfit = () => store.listSetAside(10, 'stripe', { kind: 'invoice' })
      const aside = await unfit()
      assert.deepEqual(aside.map(({ id }) => id).sort(), ids.toSorted())
      for (const { kind, reason, tries } of aside) {
        assert.deepEqual([kind, tries], ['invoice', 1])
        assert.match(reason, /does not fit|do not fit/)
      }
      await connector.retrySetAside('all')
      assert.deepEqual(
        (await unfit()).map(({ tries }) => tries),
        [2, 2],
      )
      for (const invoice of sound) account.invoices.set(invoice.id, invoice)
      assert.equal(stored.size, truthOf(account).length - 2)
      await connector.retrySetAside('all')
      assert.deepEqual(await unfit(), [])
      await assertTrue(account, store)
    })

    test('a list whose pages form a circle ends with an error', async t => {
      const rig = await startRig(t, engine, { invoices: 20, lines: 1, seed: 34 })
      let [asked, isListing] = [0, true]
      const page = await rig.source.listInvoices(null)
      const events = await rig.source.listNotifications(0, null)
      const turning = () => (++asked % 2 === 0 ? 'in_a' : 'in_b')
      const source: BillingSource = {
        ...rig.source,
        listInvoices: async () => ({ ...page, next: turning() }),
        listNotifications: async () => (isListing ? events : { ...events, next: turning() }),
      }
      const connector = await rig.connect({ source })
      await assert.rejects(connector.backfill(), /circle/)
      isListing = false
      await assert.rejects(connector.catchUp(), /circle/)
      assert.ok(asked < 10, `${asked} pages`)
    })

    test('each run reads a limited part of a full list until the list is complete', async t => {
      const rig = await startRig(t, engine, { invoices: 160, lines: 1, seed: 36 })
      const { account, store } = rig
      const source = createDirectSource(account, 2)
      await (await rig.connect({ source })).backfill()
      const listed = (await rig.stream(relistStream))?.succeeded_at
      for (const invoice of account.invoices.values()) if (invoice.status === 'paid') invoice.status = 'void'
      let runs = 0
      for (let isUnderWay = true; isUnderWay; runs++) {
        let asked = 0
        const listInvoices: BillingSource['listInvoices'] = (...given) => {
          asked++
          return source.listInvoices(...given)
        }
        const connector = await rig.connect({ source: { ...source, listInvoices } })
        await connector.relist(false, 6)
        assert.ok(asked <= 6 + partsAtOnce, `${asked} pages`)
        const relist = await rig.stream(relistStream)
        isUnderWay = relist?.cursor !== null
        assert.equal(relist?.succeeded_at === listed, isUnderWay)
      }
      assert.ok(runs >= 3, `${runs} runs`)
      await assertTrue(account, store)
    })

    test('a slow and interrupted full list finds changes that no event announced', async t => {
      const rig = await startSynced(t, engine, { invoices: 220, lines: 1, seed: 35 })
      const { account, store } = rig
      const listed = (await rig.stream(relistStream))?.succeeded_at
      assert.ok(listed, 'the backfill is a list of everything')
      const told = account.events.length
      const lost = account.change('create')
      account.change('finalize', lost)
      account.change('pay', lost)
      const paid = (await readAll(store)).map(read).find(({ status }) => status === 'paid')
      account.setMetadata(paid?.id ?? '', { ix_state: 'failed' })
      account.change('delete')
      account.events.splice(told)
      const stop = new AbortController()
      let asked = 0
      const source: BillingSource = {
        ...rig.source,
        async listInvoices(after, filter, urgency) {
          assert.equal(urgency, 'slowly')
          if (++asked === 2) stop.abort()
          return rig.source.listInvoices(after, filter, urgency)
        },
      }
      await assert.rejects((await rig.connect({ source, signal: stop.signal })).relist(false), /abort/i)
      // A list that is under way takes nothing back of the last one, nor of how fresh the records are.
      const { cursor, succeeded_at } = (await rig.stream(relistStream)) as Stream
      assert.ok(cursor !== null)
      assert.equal(succeeded_at, listed)
      assert.ok(Number(await readFreshness(rig)) > 0)
      const { deleted } = await (await rig.connect()).relist(false)
      assert.equal(deleted, 1)
      assert.equal(rig.sandbox.requests.get('list_invoices'), 3 + 3)
      assert.ok(Number((await rig.stream(relistStream))?.succeeded_at) > Number(listed))
      const found = (await readAll(store)).map(read)
      assert.equal(found.find(({ id }) => id === paid?.id)?.ix_sync_state, 'failed')
      assert.deepEqual(
        found.map(({ id, status }) => [id, status]),
        truthOf(account, await readAll(store)).map(record => [record.id, read(record).status]),
      )
    })

    test('partial payments and credit notes of open and paid invoices arrive by their own events', async t => {
      const { account, connector, store } = await startSynced(t, engine, { invoices: 60, lines: 1, seed: 38 })
      const paid = [...account.invoices.values()].find(
        ({ status, amount_paid }) => status === 'paid' && amount_paid > 0,
      )
      const open = account.change('finalize')
      await connector.catchUp()
      const told = account.events.length
      account.change('pay_part', open)
      account.change('credit', open)
      account.change('credit', paid?.id)
      const types = account.events.slice(told).map(({ type }) => type)
      assert.deepEqual(types, ['invoice_payment.paid', 'credit_note.created', 'credit_note.created'])
      await connector.catchUp()
      await assertTrue(account, store)
      const facts = new Map(
        (await readAll(store)).map(({ id, payment }) => [id, JSON.parse(payment) as PaymentFacts]),
      )
      assert.ok(Number(facts.get(open)?.pre_payment_credit_cents) > 0)
      assert.ok(Number(facts.get(open)?.amount_paid_cents) > 0)
      assert.ok(Number(facts.get(paid?.id ?? '')?.post_payment_credit_cents) > 0)
    })

    test('a customer event leads to a list only when a stored field changed', async t => {
      const rig = await startSynced(t, engine, { invoices: 230, lines: 1, seed: 36, customers: 2 })
      const { account, connector, sandbox } = rig
      const customer = [...account.customers.values()].find(({ deleted }) => !deleted)
      assert.ok(customer)
      account.renameCustomer(customer.id, 'Outra')
      const renamed = account.events.pop() as (typeof account.events)[number]
      const tell = async (previous_attributes: Record<string, unknown>) => {
        const id = `evt_${Object.keys(previous_attributes).join('_')}`
        account.events.push({ ...renamed, id, data: { ...renamed.data, previous_attributes } })
        sandbox.requests.clear()
        await connector.catchUp()
        return sandbox.requests.get('list_invoices') ?? 0
      }
      assert.equal(await tell({ balance: 0, invoice_settings: {}, delinquent: false }), 0)
      assert.equal(await tell({ name: 'Antes', email: 'a@b.example' }), 1)
      const all = [...account.invoices.values()].filter(invoice => invoice.customer === customer.id).length
      assert.ok(all > 100)
      assert.equal(await tell({ business_name: 'Antes, Lda.' }), Math.ceil(all / 100))
    })

    test('several notifications of one invoice share one request that begins after the last of them', async t => {
      const rig = await startRig(t, engine, { invoices: 20, lines: 1, seed: 37 })
      const { account, store, connector } = rig
      await connector.backfill()
      let fetched = 0
      const { promise: gate, resolve: open } = Promise.withResolvers<void>()
      const source: BillingSource = {
        ...rig.source,
        async fetchInvoice(...given) {
          fetched++
          const answer = await rig.source.fetchInvoice(...given)
          await gate
          return answer
        },
      }
      const other = await rig.connect({ source })
      const id = account.change('finalize')
      for (let count = 0; count < 8; count++) account.change('update', id)
      account.change('pay', id)
      const told = account.events.flatMap(event => readEvent(event as unknown as Stripe.Event) ?? [])
      assert.ok(told.length >= 10)
      const applying = told.map(notification => other.applyNotification(notification))
      await turn()
      open()
      await Promise.all(applying)
      assert.equal(fetched, 2)
      await assertTrue(account, store)
      // Each is told of.
      const { customer_id } = read((await readAll(store)).find(row => row.id === id) as StoredRecord)
      assert.equal((await store.readJournal({ customer_id, id })).length, told.length)
      // What was applied already is not fetched for again, whichever way it comes.
      await other.catchUp()
      await Promise.all(told.map(notification => other.applyNotification(notification)))
      assert.equal(fetched, 2)
    })

    test('a finalized invoice that is not found is kept, because only drafts can be deleted', async t => {
      const { account, store, connector } = await startRig(t, engine, { invoices: 60, lines: 1, seed: 11 })
      await connector.backfill()
      const before = await readAll(store)
      const lost = before.map(read).filter(({ status }) => status === 'open')
      assert.ok(lost.length > 0)
      for (const { id } of lost) {
        account.order.remove(account.invoices.get(id) as StripeInvoice)
        account.invoices.delete(id)
      }
      const { refused, deleted } = await connector.rereadUnsettled()
      assert.deepEqual([refused.missing, deleted], [lost.length, 0])
      assert.deepEqual(await readAll(store), before)
    })

    const nothing = { changed: 0, deleted: 0, overlapped: 0, refused: {} }

    test('a deletion event without a customer deletes the draft and no other invoice', async t => {
      const { account, store, connector } = await startRig(t, engine, { invoices: 60, lines: 1, seed: 12 })
      await connector.backfill()
      const before = await readAll(store)
      const [draft, open] = ['draft', 'open'].map(
        status => before.map(read).find(invoice => invoice.status === status) ?? assert.fail(),
      )
      let told = 0
      const tell = (invoice_id: string) => {
        const event = { id: `evt_${told++}`, type: 'v1.invoice.deleted', created: account.clock }
        return connector.applyNotification({ ...event, invoice_id, customer_id: null })
      }
      account.change('delete', draft?.id)
      account.invoices.delete(String(open?.id))
      assert.equal((await tell(String(draft?.id))).deleted, 1)
      // Told again, and told of one that was never stored or that is no draft.
      assert.deepEqual(await tell(String(draft?.id)), nothing)
      assert.deepEqual(await tell('in_never'), nothing)
      assert.deepEqual(await tell(String(open?.id)), { ...nothing, refused: { missing: 1 } })
      assert.deepEqual(
        await readAll(store),
        before.filter(({ id }) => id !== draft?.id),
      )
    })

    test('a gap of over 30 days in the events is reported and closed by a full list', async t => {
      const rig = await startSynced(t, engine, { invoices: 120, lines: 1, seed: 12 })
      const { account, store, connector, sandbox, logged } = rig
      const now = Date.now
      let shiftMs = 0
      t.mock.method(Date, 'now', () => now() + shiftMs)
      const pass = (days: number) => {
        account.clock += days * day
        shiftMs += days * day * 1_000
        for (const kind of ['create', 'finalize', 'pay', 'update', 'delete'] as const) account.change(kind)
      }
      pass(27)
      await connector.catchUp()
      assert.ok(!logged.some(({ msg }) => /all invoices are listed again/.test(msg)))
      await connector.rereadUnsettled()
      await assertTrue(account, store)

      pass(40)
      sandbox.faults.set('list_invoices', 'error_500')
      await connector.catchUp()
      assert.equal(await connector.isListed(), false)
      await assert.rejects(connector.backfill(), SourceError)
      sandbox.faults.clear()
      assert.ok(logged.some(({ msg, level }) => level === 40 && /all invoices are listed again/.test(msg)))
      // The list that closes the gap did not even begin: that is not forgotten, nor is it a success.
      assert.equal((await rig.stream(backfillStream))?.succeeded_at, null)
      assert.equal(await readFreshness(rig), null)
      const next = await rig.connect()
      await next.backfill()
      await next.catchUp()
      await assertTrue(account, store)

      // No event is left that shows what happened.
      logged.length = 0
      const [draft] = (await readAll(store)).filter(({ summary }) => JSON.parse(summary).status === 'draft')
      assert.ok(draft !== undefined)
      account.change('delete', draft.id)
      account.clock += 40 * day
      shiftMs += 40 * day * 1_000
      await next.catchUp()
      await next.backfill()
      await next.catchUp()
      assert.equal(logged.filter(({ msg }) => /all invoices are listed again/.test(msg)).length, 1)
      // The deleted draft is in no list, and its event is gone.
      await assertTrue(account, store)
      assert.ok(Number(await readFreshness(rig)) > 0)
    })
  })

  // It changes the clock of this process: nothing else may run meanwhile.
  test(`a clock that is changed by a day does not harm the sync, on ${engine.name}`, async t => {
    const rig = await startRig(t, engine, { invoices: 60, lines: 1, seed: 13 })
    const { account, store } = rig
    const now = Date.now
    let shift = 0
    t.mock.method(Date, 'now', () => now() + shift)
    await rig.connector.backfill()
    // First without a restart, then with one each time.
    for (const connect of [async () => rig.connector, rig.connect])
      for (shift of [-day * 1000, day * 1000, 0, -day * 1000]) {
        const connector = await connect()
        const observed = await store.readLastObserved()
        for (const kind of ['create', 'finalize', 'pay', 'update', 'delete'] as const) account.change(kind)
        await connector.catchUp()
        await assertTrue(account, store)
        assert.ok((await store.readLastObserved()) > observed)
      }
    assert.ok(!rig.logged.some(({ msg }) => /all invoices are listed again/.test(msg)))
  })
}
