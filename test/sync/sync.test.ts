/** From the payment platform to the store: whatever happens on the way, both end equal. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import type Stripe from 'stripe'
import type { Invoice } from '../../src/invoice.ts'
import { type Fault, faultNames } from '../../src/sandbox/faults.ts'
import { createAccount, type StripeAccount } from '../../src/sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../src/sandbox/stripe/objects.ts'
import { type BillingSource, type Observation, SourceError } from '../../src/sources.ts'
import type { StoredRecord, Stream, WriteStore } from '../../src/store/store.ts'
import { readEvent } from '../../src/stripe/billing-source.ts'
import { type Applied, applyObservations } from '../../src/sync/apply.ts'
import { type Connector, createConnector } from '../../src/sync/connector.ts'
import { readCursor } from '../../src/sync/ranges.ts'
import { campaign } from '../support/campaign.ts'
import { type Engine, engines } from '../support/engines.ts'
import { makeRecord } from '../support/records.ts'
import {
  assertNothingFalse,
  assertTrue,
  backfillStream,
  createDirectSource,
  createLog,
  type Delay,
  emptyStore,
  eventsStream,
  holdSource,
  openStores,
  type Rig,
  readAll,
  recently,
  relistStream,
  startRig,
  truthOf,
  unsettledStream,
  watchStore,
} from '../support/sync.ts'

const day = 86_400
const sqlite = engines.find(({ name }) => name === 'sqlite') as Engine

/** What the API tells of a customer: the freshness of its records, and how many there are. */
async function listOf({ reader }: Rig, customer_id: string) {
  return reader.listInvoices({ customer_id, page: 1, page_size: 50 })
}

function read({ summary }: StoredRecord): Invoice {
  return JSON.parse(summary)
}

/** On SQLite a run takes milliseconds. */
const runs: Record<string, number> = {
  sqlite: campaign(200, 5_000),
  postgres: campaign(30, 500),
  citus: campaign(30, 100),
}

const kinds = ['create', 'finalize', 'pay', 'void', 'uncollectible', 'delete', 'update'] as const

const runKinds = ['backfill', 'catchUp', 'rereadUnsettled', 'relist'] as const

const someStep = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      kind: fc.constantFrom(...kinds),
      pick: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rename' as const), pick: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(0, 1, 400) }),
  },
  // Any event at any time: in whatever order, twice, or never.
  { weight: 6, arbitrary: fc.record({ do: fc.constant('webhook' as const), pick: fc.nat(4) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('release' as const), pick: fc.nat(8) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(...runKinds),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
)

const someHistory = fc.record({
  seed: fc.nat(1_000_000),
  // With the many, the list is read in parts.
  invoices: fc.oneof(
    { weight: 30, arbitrary: fc.integer({ min: 1, max: 3 }) },
    { weight: 1, arbitrary: fc.constant(30) },
  ),
  isListed: fc.boolean(),
  steps: fc.array(someStep, { minLength: 8, maxLength: 20, size: 'max' }),
  delays: fc.array(fc.constantFrom<Delay>('none', 'answer', 'question'), {
    minLength: 1,
    maxLength: 12,
  }),
})
type History = typeof someHistory extends fc.Arbitrary<infer T> ? T : never

/**
 * One process: webhooks at any time, and runs of every kind side by side, one of each. Where a run or a webhook waits for
 * an answer, other steps go on. In the end everything is answered, and each kind of run is done once more.
 */
async function runHistory(account: StripeAccount, store: ReturnType<typeof watchStore>, history: History) {
  const counts = { webhooks: 0, superseded: 0, deleted: 0, restarts: 0 }
  const direct = createDirectSource(account)
  const { log } = createLog()
  const signal = new AbortController().signal
  const start = () => {
    const source = holdSource(direct, history.delays)
    return createConnector({ source, store, log, signal }).then(connector => ({ source, connector }))
  }
  // Three that are young, whatever the account began with: there is something to happen to.
  for (const kind of ['create', 'create', 'create', 'finalize'] as const) account.change(kind)
  if (history.isListed) await (await createConnector({ source: direct, store, log, signal })).backfill()
  let { source, connector } = await start()
  const running = new Map<string, Promise<void>>()
  let webhooks: Promise<void>[] = []
  const count = ({ superseded, deleted }: Applied) => {
    counts.superseded += superseded
    counts.deleted += deleted
  }

  for (const step of history.steps) {
    if (step.do === 'change') change(account, step.kind, step.pick)
    else if (step.do === 'rename') rename(account, step.pick)
    else if (step.do === 'wait') account.clock += step.seconds
    else if (step.do === 'release') source.release(step.pick)
    else if (step.do === 'webhook') {
      const event = account.events.at(-1 - step.pick)
      const notification = event && readEvent(event as unknown as Stripe.Event)
      if (notification) {
        counts.webhooks++
        webhooks.push(connector.applyNotification(notification).then(count))
      }
    } else if (step.do === 'restart') {
      source.abandon()
      await store.settled()
      ;({ source, connector } = await start())
      running.clear()
      webhooks = []
      counts.restarts++
    } else if (!running.has(step.do)) {
      const mine = runOf(connector, step.do).then(count)
      running.set(step.do, mine)
      mine
        .finally(() => {
          if (running.get(step.do) === mine) running.delete(step.do)
        })
        .catch(() => {})
    }
    await turn()
  }
  source.releaseAll()
  await Promise.all([...running.values(), ...webhooks])
  for (const step of ['backfill', 'catchUp', 'rereadUnsettled'] as const) count(await connector[step]())
  return counts
}

function runOf(connector: Connector, kind: (typeof runKinds)[number]): Promise<Applied> {
  return kind === 'relist' ? connector.relist(true) : connector[kind]()
}

/** Whatever waits for nothing but the store gets on. */
const turn = () => new Promise(resolve => setImmediate(resolve))

/** Of those that allow it; nothing when there is none. */
function change(account: StripeAccount, kind: (typeof kinds)[number], index: number): void {
  const from = {
    finalize: ['draft'],
    pay: ['open', 'uncollectible'],
    void: ['open', 'uncollectible'],
    uncollectible: ['open'],
    delete: ['draft'],
    update: ['draft', 'open'],
  }
  if (kind === 'create') return void account.change(kind)
  const fitting = [...account.invoices.values()].filter(({ status }) => from[kind].includes(status))
  const invoice = fitting[index % fitting.length]
  if (invoice !== undefined) account.change(kind, invoice.id)
}

function rename(account: StripeAccount, index: number): void {
  const living = [...account.customers.values()].filter(({ deleted }) => !deleted)
  const customer = living[index % living.length]
  if (customer !== undefined) account.renameCustomer(customer.id, `Firma ${account.events.length}`)
}

for (const engine of engines) {
  describe(`sync on ${engine.name}`, () => {
    test('a backfill of 1,500 invoices ends equal to the account, row by row', async t => {
      const rig = await startRig(t, engine, { invoices: 1_500, seed: 4 })
      const { account, sandbox, store, connector } = rig
      const applied = await connector.backfill()
      await assertTrue(account, store)
      const truth = truthOf(account)
      const refused = account.invoices.size - truth.length
      assert.ok(refused > 0)
      assert.deepEqual(applied, {
        changed: truth.length,
        deleted: 0,
        superseded: 0,
        // A page that was asked for before its part was cut is read by two.
        refused: { no_customer: Math.max(refused, Math.min(applied.refused.no_customer ?? 0, refused + 60)) },
      })
      assert.ok(truth.some(({ lines }) => JSON.parse(lines ?? '[]').length > 100))
      // Its 15 pages; 15 questions how far back it reaches; and at most two more for every part.
      assert.ok(Number(sandbox.requests.get('list_invoices')) <= 62)

      // At its end it asks for nothing more; nor does a catch-up fetch anything when nothing happened.
      const [once, again] = [new Map(sandbox.requests), await rig.connect()]
      assert.equal((await again.backfill()).changed, 0)
      assert.deepEqual(sandbox.requests, once)
      assert.equal((await again.catchUp()).changed, 0)
      assert.deepEqual(sandbox.requests, new Map([...once, ['list_events', 2]]))
    })

    test('a backfill that fails goes on where it was cut off, and is no success until its end', async t => {
      const rig = await startRig(t, engine, { invoices: 450, seed: 5 })
      const { account, sandbox, store, source } = rig
      const customer = truthOf(account)[0]?.customer_id as string
      for (const pages of [1, 2, 3]) {
        let count = 0
        const failing: BillingSource = {
          ...source,
          async listInvoices(after, only, urgency) {
            if (++count > 1) sandbox.faults.set('list_invoices', 'error_500')
            return source.listInvoices(after, only, urgency)
          },
        }
        await assert.rejects((await rig.connect({ source: failing })).backfill(), SourceError)
        sandbox.faults.clear()
        const stream = await rig.stream(backfillStream)
        assert.equal(stream?.succeeded_at, null)
        assert.ok(Number(stream?.failed_at) > Date.now() - 60_000)
        assert.match(String(stream?.error), /Stripe answered/)
        assert.equal((await listOf(rig, customer)).synced_at, null)
        assert.equal((await readAll(store)).length > 0, true)
        await assertNothingFalse(account, store)
        assert.ok(stream?.cursor, `there is a cursor after page ${pages}`)
      }
      const asked = Number(sandbox.requests.get('list_invoices'))
      const connector = await rig.connect()
      await connector.backfill()
      // Three of five pages were committed before.
      assert.equal(Number(sandbox.requests.get('list_invoices')) - asked, 2)
      await assertTrue(account, store)
      const { succeeded_at, failed_at, error, cursor } = (await rig.stream(backfillStream)) ?? {}
      assert.ok(Number(succeeded_at) > 0)
      assert.deepEqual([failed_at, error, cursor], [null, null, null])
      // What happened while it ran is not known yet.
      assert.equal((await listOf(rig, customer)).synced_at, null)
      await connector.catchUp()
      assert.ok(Number((await listOf(rig, customer)).synced_at) > 0)
    })

    test('a backfill that is aborted at any page goes on from there', async t => {
      for (const pages of [1, 2, 4]) {
        const rig = await startRig(t, engine, { invoices: 450, seed: pages })
        const stop = new AbortController()
        let count = 0
        const source: BillingSource = {
          ...rig.source,
          async listInvoices(after, customer) {
            if (++count === pages) stop.abort()
            return rig.source.listInvoices(after, customer)
          },
        }
        await assert.rejects((await rig.connect({ source, signal: stop.signal })).backfill(), /abort/i)
        // Being stopped is no failure.
        assert.equal((await rig.stream(backfillStream))?.failed_at, null)
        assert.equal((await rig.stream(backfillStream))?.succeeded_at, null)
        const asked = Number(rig.sandbox.requests.get('list_invoices'))
        assert.equal(asked, pages)
        await (await rig.connect()).backfill()
        assert.equal(rig.sandbox.requests.get('list_invoices'), 5)
        await assertTrue(rig.account, rig.store)
      }
    })

    test('a backfill whose cursor was deleted meanwhile begins again', async t => {
      const rig = await startRig(t, engine, { invoices: 150, seed: 6 })
      const { account, store } = rig
      const id = account.change('create')
      // As a version before lists had parts left it.
      const none = { succeeded_at: null, failed_at: null, error: null }
      await store.transaction(async tx => {
        await tx.saveStream({ ...none, name: eventsStream, cursor: String(account.clock) })
        await tx.saveStream({ ...none, name: backfillStream, cursor: id })
      })
      account.change('delete', id)
      await rig.connector.backfill()
      await assertTrue(account, store)
      assert.ok(rig.logged.some(({ msg }) => /listing from the beginning/.test(msg)))
    })

    test('events bring whatever happened: changes, deleted drafts, renamed customers', async t => {
      const rig = await startRig(t, engine, { invoices: 300, seed: 7 })
      const { account, store, connector, reader } = rig
      await connector.backfill()
      await connector.catchUp()
      const kinds = new Set<string>()
      for (const days of [0.2, 1, 2, 3]) {
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
      assert.ok(!Buffer.from(after.summaries).includes(draft.id))
      assert.equal(await reader.findInvoice(draft.customer_id, draft.id), null)
      await assertTrue(account, store)
    })

    test('a renamed customer is followed by drafts, and by company names; finalized ones keep their name', async t => {
      const rig = await startRig(t, engine, { invoices: 300, seed: 8 })
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

    test('what happens during a backfill is not missed', async t => {
      const rig = await startRig(t, engine, { invoices: 450, seed: 9 })
      const { account, store } = rig
      let pages = 0
      const source: BillingSource = {
        ...rig.source,
        async listInvoices(after, customer) {
          const page = await rig.source.listInvoices(after, customer)
          // After the platform answered, and before it is stored: new ones, changed ones and deleted ones.
          if (customer?.customerId === undefined && customer?.status === undefined) account.advance(day / 2)
          pages++
          return page
        },
      }
      const connector = await rig.connect({ source })
      await connector.backfill()
      assert.ok(pages >= 5)
      await connector.catchUp()
      await assertTrue(account, store)
    })

    test('looking again at what is unsettled finds what no event told, deletions included', async t => {
      const rig = await startRig(t, engine, { invoices: 300, seed: 10 })
      const { account, store, connector } = rig
      await connector.backfill()
      await connector.catchUp()
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

    test('a large list is read in parts side by side; cut off anywhere, it goes on there', async t => {
      const rig = await startRig(t, engine, { invoices: 3_000, seed: 31 })
      const { account, store, source } = rig
      let [underWay, most, asked] = [0, 0, 0]
      const stop = new AbortController()
      const counting: BillingSource = {
        ...source,
        async listInvoices(...given) {
          most = Math.max(most, ++underWay)
          if (++asked === 25) stop.abort()
          // As long as an answer takes: side by side is what this is about, and not how fast the sandbox is.
          await sleep(50)
          return source.listInvoices(...given).finally(() => underWay--)
        },
      }
      await assert.rejects(
        (await rig.connect({ source: counting, signal: stop.signal })).backfill(),
        /abort/i,
      )
      // How many there come to be by then depends on how fast pages are stored.
      assert.ok(most >= 4, `${most} at once`)
      const { ranges } = readCursor((await rig.stream(backfillStream))?.cursor ?? null)
      assert.ok(ranges.length >= 4, `${ranges.length} parts are left`)
      await assertNothingFalse(account, store)
      const before = (await readAll(store)).length
      assert.ok(before > 1_000)
      const { changed } = await (await rig.connect()).backfill()
      // Nothing is lost, and what was stored is not read again but for a page of a part.
      assert.equal(before + changed, truthOf(account).length)
      await assertTrue(account, store)
      assert.ok(Number(rig.sandbox.requests.get('list_invoices')) < 90)
    })

    test('a cursor from before lists had parts is understood', async t => {
      const rig = await startRig(t, engine, { invoices: 450, seed: 32 })
      const none = { succeeded_at: null, failed_at: null, error: null }
      await rig.store.transaction(async tx => {
        await tx.saveStream({ ...none, name: eventsStream, cursor: String(rig.account.clock) })
        await tx.saveStream({ ...none, name: backfillStream, cursor: rig.account.order.at(200) })
      })
      await rig.connector.backfill()
      assert.equal(rig.sandbox.requests.get('list_invoices'), 2)
      const older = new Set(Array.from({ length: 200 }, (_, place) => rig.account.order.at(place)))
      const expected = truthOf(rig.account).filter(({ id }) => older.has(id))
      assert.deepEqual(
        (await readAll(rig.store)).map(({ id }) => id),
        expected.map(({ id }) => id),
      )
    })

    test('one record that does not fit is set aside, and nothing else waits for it', async t => {
      const rig = await startRig(t, engine, { invoices: 250, seed: 33 })
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
      const aside = await store.listSetAside(10, 'stripe')
      assert.deepEqual(aside.map(({ id }) => id).sort(), ids.toSorted())
      for (const { kind, reason, tries } of aside) {
        assert.deepEqual([kind, tries], ['invoice', 1])
        assert.match(reason, /does not fit|do not fit/)
      }
      await connector.retrySetAside()
      assert.deepEqual(
        (await store.listSetAside(10)).map(({ tries }) => tries),
        [2, 2],
      )
      for (const invoice of sound) account.invoices.set(invoice.id, invoice)
      assert.equal(stored.size, truthOf(account).length - 2)
      await connector.retrySetAside()
      assert.deepEqual(await store.listSetAside(10), [])
      await assertTrue(account, store)
    })

    test('pages that lead in a circle end with an error', async t => {
      const rig = await startRig(t, engine, { invoices: 20, seed: 34 })
      let asked = 0
      const page = await rig.source.listInvoices(null)
      const events = await rig.source.listNotifications(0, null)
      const turning = () => (++asked % 2 === 0 ? 'in_a' : 'in_b')
      const source: BillingSource = {
        ...rig.source,
        listInvoices: async () => ({ ...page, next: turning() }),
        listNotifications: async (since, after) =>
          since === 0 && after === null ? events : { ...events, next: turning() },
      }
      const connector = await rig.connect({ source })
      await assert.rejects(connector.backfill(), /circle/)
      await assert.rejects(connector.catchUp(), /circle/)
      assert.ok(asked < 10, `${asked} pages`)
    })

    test('what no event told is found when everything is listed again, slowly and wherever it was cut off', async t => {
      const rig = await startRig(t, engine, { invoices: 350, seed: 35 })
      const { account, store, connector } = rig
      await connector.backfill()
      await connector.catchUp()
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
      assert.ok(Number((await listOf(rig, String(paid?.customer_id))).synced_at) > 0)
      const { deleted } = await (await rig.connect()).relist(false)
      assert.equal(deleted, 1)
      assert.equal(rig.sandbox.requests.get('list_invoices'), 4 + 4)
      assert.ok(Number((await rig.stream(relistStream))?.succeeded_at) > Number(listed))
      const found = (await readAll(store)).map(read)
      assert.equal(found.find(({ id }) => id === paid?.id)?.ix_sync_state, 'failed')
      assert.deepEqual(
        found.map(({ id, status }) => [id, status]),
        truthOf(account, await readAll(store)).map(record => [record.id, read(record).status]),
      )
    })

    test('a customer whose kept fields stay is not listed; drafts alone are when only they follow', async t => {
      const rig = await startRig(t, engine, { invoices: 300, seed: 36, customers: 2 })
      const { account, connector, sandbox } = rig
      await connector.backfill()
      await connector.catchUp()
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

    test('several notifications of one invoice share a look that began after the last of them', async t => {
      const rig = await startRig(t, engine, { invoices: 20, seed: 37 })
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

    test('a finalized invoice that is not found is kept: only drafts can be deleted', async t => {
      const { account, store, connector } = await startRig(t, engine, { invoices: 60, seed: 11 })
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

    const nothing = { changed: 0, deleted: 0, superseded: 0, refused: {} }

    test('a deletion that does not tell whose invoice it was takes the draft away, and no other', async t => {
      const { account, store, connector } = await startRig(t, engine, { invoices: 60, seed: 11 })
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
      assert.deepEqual(await tell(String(draft?.id)), { ...nothing, refused: { no_customer: 1 } })
      assert.deepEqual(await tell('in_never'), { ...nothing, refused: { no_customer: 1 } })
      assert.deepEqual(await tell(String(open?.id)), { ...nothing, refused: { missing: 1 } })
      assert.deepEqual(
        await readAll(store),
        before.filter(({ id }) => id !== draft?.id),
      )
    })

    test('a gap of over 30 days is closed by listing everything again, and is told', async t => {
      const rig = await startRig(t, engine, { invoices: 120, seed: 12 })
      const { account, store, connector, sandbox, logged } = rig
      await connector.backfill()
      await connector.catchUp()
      const pass = (days: number) => {
        account.clock += days * day
        for (const kind of ['create', 'finalize', 'pay', 'update', 'delete'] as const) account.change(kind)
      }
      pass(28)
      await connector.catchUp()
      assert.ok(!logged.some(({ msg }) => /listing everything again/.test(msg)))
      await connector.rereadUnsettled()
      await assertTrue(account, store)

      const customer = truthOf(account)[0]?.customer_id as string
      pass(40)
      sandbox.faults.set('list_invoices', 'error_500')
      await connector.catchUp()
      assert.equal(await connector.isListed(), false)
      await assert.rejects(connector.backfill(), SourceError)
      sandbox.faults.clear()
      assert.ok(logged.some(({ msg, level }) => level === 40 && /listing everything again/.test(msg)))
      // The list that closes the gap did not even begin: that is not forgotten, nor is it a success.
      assert.equal((await rig.stream(backfillStream))?.succeeded_at, null)
      assert.equal((await listOf(rig, customer)).synced_at, null)
      const next = await rig.connect()
      await next.backfill()
      await next.catchUp()
      await next.rereadUnsettled()
      await assertTrue(account, store)

      logged.length = 0
      pass(40)
      account.clock += 40 * day
      await next.catchUp()
      await next.backfill()
      await next.catchUp()
      await next.rereadUnsettled()
      assert.equal(logged.filter(({ msg }) => /listing everything again/.test(msg)).length, 1)
      await assertTrue(account, store)
      assert.ok(Number((await listOf(rig, customer)).synced_at) > 0)
    })

    test('a clock that is set back or ahead by a day does no harm', async t => {
      const rig = await startRig(t, engine, { invoices: 60, seed: 13 })
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
      assert.ok(!rig.logged.some(({ msg }) => /listing everything again/.test(msg)))
    })

    test('of equal moments, none leads back: neither in a life nor from its end', async t => {
      const { store, url } = await openStores(t, engine)
      const someLife = fc.record({
        statuses: fc.subarray(['draft', 'open', 'uncollectible', 'paid', 'gone'] as const, { minLength: 2 }),
        stamps: fc.array(fc.nat(2), { minLength: 5, maxLength: 5 }),
        order: fc.shuffledSubarray([0, 1, 2, 3, 4, 0, 1, 2, 3, 4], { minLength: 10 }),
      })
      await fc.assert(
        fc.asyncProperty(someLife, async ({ statuses, stamps, order }) => {
          await emptyStore(url)
          // Only a draft can be deleted.
          const life = statuses.at(-1) === 'gone' ? (['draft', 'gone'] as const) : statuses
          const moments = stamps.slice(0, life.length).sort()
          const watched = watchStore(store)
          for (const index of order.filter(index => index < life.length)) {
            const status = life[index]
            const map =
              status === undefined || status === 'gone' ? null : () => makeRecord({ id: 'in_1', status })
            const observation = { id: 'in_1', customer_id: 'cus_ana', map } as Observation
            await watched.transaction(tx =>
              applyObservations(tx, [observation], 1_000 + Number(moments[index])),
            )
          }
          const [stored] = await readAll(store)
          assert.equal(stored ? read(stored).status : 'gone', life.at(-1))
        }),
        { numRuns: engine.name === 'sqlite' ? campaign(50, 2_000) : campaign(15, 200), seed: 2026 },
      )
    })

    test(`${runs[engine.name]} interleavings of changes, webhooks, late answers and restarts all end equal, and none leads back`, async t => {
      const { store, url } = await openStores(t, engine)
      const done = { webhooks: 0, superseded: 0, deleted: 0, restarts: 0 }
      await fc.assert(
        fc.asyncProperty(someHistory, async history => {
          await emptyStore(url)
          const account = createAccount({
            invoices: history.invoices,
            customers: 2,
            seed: history.seed,
            now: recently(),
          })
          const counts = await runHistory(account, watchStore(store), history)
          for (const name of ['webhooks', 'superseded', 'deleted', 'restarts'] as const)
            done[name] += counts[name]
          await assertTrue(account, store)
        }),
        { numRuns: runs[engine.name] ?? 0, seed: 2026, endOnFailure: true },
      )
      for (const [name, count] of Object.entries(done))
        assert.ok(count > Number(runs[engine.name]) / 10, `${count} ${name}`)
    })
  })
}

/** What asks on each route, once everything was listed. */
const askers = {
  list_invoices: 'backfill',
  list_lines: 'backfill',
  retrieve_tax_rate: 'backfill',
  list_events: 'catchUp',
  retrieve_invoice: 'rereadUnsettled',
} as const

/** Those that no attempt gets past. The others change the answer, and not every change matters to who asked. */
const fatal: readonly Fault[] = [
  'hang',
  'too_many',
  'error_500',
  'error_503',
  'truncated',
  'garbled',
  'slow_body',
  'reset',
  'redirect',
  'gateway_404',
]

// What an upstream answers is the same to every engine.
describe('sync with a bad upstream', { concurrency: 13 }, () => {
  for (const [route, step] of Object.entries(askers) as [
    keyof typeof askers,
    (typeof askers)[keyof typeof askers],
  ][])
    for (const fault of faultNames)
      test(`${fault} at ${route}: passes, or is told; no row is wrong`, async t => {
        const pace = { perSecond: 10_000, attempts: 1, patienceMs: 4_000 }
        const rig = await startRig(t, sqlite, { invoices: 110, seed: 14, pace, timeout: 5_000 })
        const { account, store, connector, sandbox } = rig
        if (step !== 'backfill') {
          await connector.backfill()
          for (const kind of ['finalize', 'pay', 'delete', 'update'] as const) account.change(kind)
        }
        const before = await readAll(store)
        const stream = `stripe:${{ backfill: 'backfill', catchUp: 'events', rereadUnsettled: 'unsettled' }[step]}`

        // 64 MB a time: once is enough.
        if (fault !== 'huge') {
          sandbox.faults.set(route, fault, { retryAfter: '0' })
          const failure = await connector[step]().then(
            () => null,
            error => error,
          )
          assert.ok(Number(sandbox.requests.get(route)) > 0)
          if (failure !== null || fatal.includes(fault)) {
            assert.ok(failure instanceof SourceError, String(failure))
            const { failed_at, error } = (await rig.stream(stream)) as Stream
            assert.ok(Number(failed_at) > 0)
            assert.equal(error, failure.message)
          }
          if (fatal.includes(fault) && step === 'catchUp') assert.deepEqual(await readAll(store), before)
          if (step === 'rereadUnsettled') await assertBeforeOrTrue(account, store, before)
          if (step === 'backfill') await assertNothingFalse(account, store)
        }

        sandbox.faults.clear()
        sandbox.faults.set(route, fault, { times: 1, retryAfter: '0' })
        await connector[step]()
        assert.equal((await rig.stream(stream))?.error, null)
        // What did not fit was set aside, and is tried again.
        sandbox.faults.clear()
        await connector.retrySetAside()
        await assertTrue(account, store)
        assert.deepEqual(await store.countSetAside(), [])
        assert.equal(sandbox.requests.get('redirected'), undefined)
      })
})

/** Each row is as it was, or as it is by now. */
async function assertBeforeOrTrue(
  account: StripeAccount,
  store: WriteStore,
  before: readonly StoredRecord[],
): Promise<void> {
  const stored = await readAll(store)
  const allowed = new Set([...before, ...truthOf(account, stored)].map(({ id, summary }) => id + summary))
  for (const { id, summary } of stored) assert.ok(allowed.has(id + summary), id)
}
