/** An upstream, a store and the connector between them; and what the store must hold in the end. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { type Logger, pino } from 'pino'
import type Stripe from 'stripe'
import type { AccountOptions, StripeAccount } from '../../../sandbox/stripe/account.ts'
import type { StripeInvoice } from '../../../sandbox/stripe/objects.ts'
import { type StripeSandbox, startStripeSandbox } from '../../../sandbox/stripe/server.ts'
import type { Invoice, InvoiceKey, InvoiceStatus, Line } from '../../../src/domain/invoice.ts'
import { serializeLines, serializeSummary } from '../../../src/domain/invoice-json.ts'
import { defaultRules, type LinkRules } from '../../../src/domain/link/link.ts'
import { serializePaymentFacts } from '../../../src/domain/payment.ts'
import type { Pace } from '../../../src/sources/calls/paced-calls.ts'
import { type BillingSource, type InvoiceAnswer, SourceError } from '../../../src/sources/source.ts'
import { billingStreams } from '../../../src/sources/stream-names.ts'
import { createBillingSource } from '../../../src/sources/stripe/billing-source.ts'
import { readEvent } from '../../../src/sources/stripe/events.ts'
import type { PaymentItem } from '../../../src/sources/stripe/invoice-shape.ts'
import { defaultKeys } from '../../../src/sources/stripe/map-claim.ts'
import { mapInvoice, mapLine, percentageOf } from '../../../src/sources/stripe/map-invoice.ts'
import { mapPaymentFacts } from '../../../src/sources/stripe/map-payment.ts'
import { stripeIdentity } from '../../../src/sources/stripe/source-identity.ts'
import { openReadStore, openWriteStore } from '../../../src/store/engines.ts'
import { createStamps } from '../../../src/store/stamps.ts'
import type { ReadStore, StoredRecord, Stream, WriteStore } from '../../../src/store/store.ts'
import type { DeletionGuard } from '../../../src/sync/deletion-guard.ts'
import { type Connector, createConnector } from '../../../src/sync/invoices/connector.ts'
import { type Engine, runSql } from '../databases/engines.ts'
import { mapStored } from './map-stored.ts'
import { noGuard } from './no-guard.ts'

export const {
  backfill: backfillStream,
  events: eventsStream,
  relist: relistStream,
  unsettled: unsettledStream,
} = billingStreams(stripeIdentity)

/** Enough attempts to get over one failure, and few enough that giving up is quick. */
const quickPace: Pace = { perSecond: 10_000, attempts: 1, patienceMs: 20_000 }

/** A recent moment, in seconds: events reach back 30 days from now. */
export function recently(): number {
  return Math.floor(Date.now() / 1000) - 86_400 * 10
}

export interface Rig {
  sandbox: StripeSandbox
  account: StripeAccount
  source: BillingSource
  /** Where the store is. */
  url: string
  store: WriteStore
  reader: ReadStore
  connector: Connector
  /** What was logged, each entry as it was written. */
  logged: { level: number; msg: string }[]
  /** Another connector on the same store, as after a restart. */
  connect(options?: {
    source?: BillingSource
    store?: WriteStore
    signal?: AbortSignal
    rules?: LinkRules
    guard?: DeletionGuard
  }): Promise<Connector>
  stream(name: string): Promise<Stream | undefined>
}

export interface RigOptions extends AccountOptions {
  /** One made before, which no test changes; the options of accounts do not matter then. */
  account?: StripeAccount
  pace?: Pace
  timeout?: number
}

/** All of it goes away with the test. */
export async function startRig(t: TestContext, engine: Engine, options: RigOptions = {}): Promise<Rig> {
  const { pace = quickPace, timeout, ...sandboxOptions } = options
  const sandbox = await startStripeSandbox({ now: recently(), ...sandboxOptions })
  t.after(() => sandbox.close())
  const { store, reader, url } = await openStores(t, engine)
  const stripe = { apiKey: 'sk_test_sandbox', base: sandbox.address, ...(timeout && { timeoutMs: timeout }) }
  const source = createBillingSource(stripe, defaultKeys, pace)
  const { log, logged } = createLog()
  const connect: Rig['connect'] = async ({
    source: other = source,
    store: above = store,
    signal = new AbortController().signal,
    rules = defaultRules,
    guard = noGuard,
  } = {}) => {
    const nextStamp = createStamps(await above.readLastObserved())
    return createConnector({ source: other, store: above, log, signal, rules, guard, nextStamp })
  }
  return {
    sandbox,
    account: sandbox.account,
    source,
    url,
    store,
    reader,
    connector: await connect(),
    logged,
    connect,
    stream: async name => (await store.listStreams()).find(stream => stream.name === name),
  }
}

let notified = 0

/** Fetches an invoice because of an event about it; without an id, lists those of the customer. */
export function notify(connector: Connector, key: Pick<InvoiceKey, 'customer_id'> & Partial<InvoiceKey>) {
  const { customer_id, id = null } = key
  const type = id === null ? 'customer.updated' : 'invoice.updated'
  const created = Math.floor(Date.now() / 1_000)
  return connector.applyNotification({
    ...{ id: `evt_notified_${notified++}`, type, created, customer_id },
    invoice_id: id,
  })
}

export async function openStores(
  t: TestContext,
  engine: Engine,
): Promise<{ store: WriteStore; reader: ReadStore; url: string }> {
  const url = await engine.createStore(t)
  const [store, reader] = [await openWriteStore(url), await openReadStore(url)]
  t.after(async () => {
    await reader.close()
    await store.close()
  })
  return { store, reader, url }
}

/** As of now: an open reader knows it as it was a moment ago. */
export async function readFreshness({ url }: { url: string }): Promise<number | null> {
  const reader = await openReadStore(url)
  try {
    return (await reader.readFreshness()).synced_at
  } finally {
    await reader.close()
  }
}

export function createLog(): { log: Logger; logged: Rig['logged'] } {
  const logged: Rig['logged'] = []
  const write = (line: string) => logged.push(JSON.parse(line))
  return { log: pino({ level: 'debug' }, { write }), logged }
}

/** As if nothing had ever been stored: quicker than a new store. */
export async function emptyStore(url: string): Promise<void> {
  const tables = [
    'invoices',
    'tombstones',
    'invoice_lines',
    'invoice_payments',
    'account_entries',
    'customers',
    'changes',
    'commits',
    'streams',
    'links',
    'documents',
    'document_clients',
    'document_relations',
    'journal',
    'bound_accounts',
    'set_aside',
  ]
  if (!url.startsWith('sqlite:')) {
    const deletions = tables.map(table => `DELETE FROM fatura.${table};`).join('')
    await runSql(url, `${deletions} UPDATE fatura.observation SET last_stamp = 0`)
    return
  }
  const db = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 5_000 })
  const deletions = tables.map(table => `DELETE FROM ${table};`).join('')
  db.exec(`BEGIN IMMEDIATE; ${deletions} UPDATE observation SET last_stamp = 0; COMMIT`)
  db.close()
}

export async function readAll(store: WriteStore): Promise<StoredRecord[]> {
  const all: StoredRecord[] = []
  for (;;) {
    const last: InvoiceKey | null = all.at(-1) ?? null
    const some = await store.readInvoices(last, 500)
    all.push(...some)
    if (some.length < 500) return all
  }
}

/** An invoice of the account as the connector asks for it: with its customer, and here with all of its lines. */
export function renderInvoice(account: StripeAccount, invoice: StripeInvoice): Stripe.Invoice {
  const customer = account.customers.get(String(invoice.customer)) ?? invoice.customer
  return { ...invoice, customer } as unknown as Stripe.Invoice
}

function ratesOf(account: StripeAccount): Map<string, number> {
  const rates = [...account.taxRates.values()] as unknown as Stripe.TaxRate[]
  return new Map(rates.map(rate => [rate.id, percentageOf(rate)]))
}

function linesOf(invoice: StripeInvoice): ReturnType<typeof mapLine>[] {
  return invoice.lines.data.map(line => mapLine(line as unknown as Stripe.InvoiceLineItem))
}

/** All of an invoice's payments: on the wire, an answer carries the first ones. */
export function paymentsOf({ payments }: StripeInvoice): PaymentItem[] {
  return payments === undefined ? [] : (payments as { data: PaymentItem[] }).data
}

/**
 * What the store must hold, by key. An invoice keeps the name it was first seen finalized with; so of customers that
 * were renamed, `stored` tells that name.
 */
export function truthOf(account: StripeAccount, stored: readonly StoredRecord[] = []): StoredRecord[] {
  const rates = ratesOf(account)
  const before = new Map(stored.map(({ id, summary }) => [id, JSON.parse(summary) as Invoice]))
  const renamed = new Set(
    account.events.filter(({ type }) => type === 'customer.updated').map(({ data }) => data.object.id),
  )
  const records = [...account.invoices.values()].flatMap(invoice => {
    const previous = renamed.has(invoice.customer) ? (before.get(invoice.id) ?? null) : null
    const source = renderInvoice(account, invoice)
    const mapped = mapStored(source, rates, previous, linesOf(invoice))
    if ('refusal' in mapped) return []
    const { customer_id, id } = mapped.invoice
    const payment = mapPaymentFacts(source, mapped.invoice, rates, paymentsOf(invoice))
    const [summary, lines] = [serializeSummary(mapped.invoice), serializeLines(linesOf(invoice))]
    return [{ customer_id, id, summary, lines, payment: serializePaymentFacts(payment) }]
  })
  const keyOf = ({ customer_id, id }: InvoiceKey) => `${customer_id} ${id}`
  return records.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

/** Row by row, lines included. */
export async function assertTrue(account: StripeAccount, store: WriteStore): Promise<void> {
  const stored = await readAll(store)
  const truth = truthOf(account, stored)
  const pick = ({ customer_id, id, summary, lines, payment }: StoredRecord) => {
    return { customer_id, id, summary, lines, payment }
  }
  assert.deepEqual(
    stored.map(({ id }) => id),
    truth.map(({ id }) => id),
  )
  for (const [index, record] of stored.entries()) assert.deepEqual(pick(record), truth[index])
}

/** Whatever is stored is true: rows may be missing, none may be wrong. */
export async function assertNothingFalse(account: StripeAccount, store: WriteStore): Promise<void> {
  const stored = await readAll(store)
  const truth = new Map(truthOf(account, stored).map(record => [record.id, record]))
  for (const { customer_id, id, summary, lines, payment } of stored)
    assert.deepEqual({ customer_id, id, summary, lines, payment }, truth.get(id))
}

/**
 * The account without the wire: thousands of runs need no HTTP, and the protocol has tests of its own. What is answered
 * is what was true when it was asked.
 */
export function createDirectSource(account: StripeAccount, pageSize = 2): BillingSource {
  const rates = ratesOf(account)

  function observe(invoice: StripeInvoice): InvoiceAnswer {
    const rendered = renderInvoice(account, invoice)
    const lines = linesOf(invoice)
    return {
      id: invoice.id,
      customer_id: typeof invoice.customer === 'string' ? invoice.customer : null,
      found: map(rendered, lines, paymentsOf(invoice)),
    }
  }

  function map(
    source: Stripe.Invoice,
    lines: readonly Line[],
    payments: readonly PaymentItem[],
  ): InvoiceAnswer['found'] {
    const mapped = mapInvoice(source, rates, lines)
    if ('refusal' in mapped) return mapped
    const payment = mapPaymentFacts(source, mapped.invoice, rates, payments)
    return { invoice: mapped.invoice, lines, payment, unread: { ...mapped.unread, payments: false } }
  }

  function cut<T extends { id: string }>(items: readonly T[], after: string | null, size: number) {
    const start = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1
    if (after !== null && start === 0) throw new SourceError('missing', 'there is no such cursor')
    const page = items.slice(start, start + size)
    return { page, next: start + size < items.length ? (page.at(-1)?.id ?? null) : null }
  }

  return {
    ...stripeIdentity,
    eventsKeptDays: 30,
    async listInvoices(
      after,
      { customerId, status: wanted, from = 0, before = Number.POSITIVE_INFINITY } = {},
    ) {
      const ids = Array.from({ length: account.order.length }, (_, index) => account.order.at(index))
      ids.reverse()
      if (after !== null && !ids.includes(after)) throw new SourceError('missing', 'there is no such cursor')
      const invoices = ids
        .slice(after === null ? 0 : ids.indexOf(after) + 1)
        .map(id => account.invoices.get(id) as StripeInvoice)
        .filter(
          ({ customer, status, created }) =>
            (customerId === undefined || customer === customerId) &&
            (wanted === undefined || status === wanted) &&
            created >= from &&
            created < before,
        )
      const { page, next } = cut(invoices, null, pageSize)
      const [began = 0, reached = 0] = [page[0]?.created, page.at(-1)?.created]
      return { answers: page.map(observe), unfit: [], next, began, reached }
    },
    async fetchInvoice(id, customerId) {
      const invoice = account.invoices.get(id)
      return invoice === undefined ? { id, customer_id: customerId, found: null } : observe(invoice)
    },
    async listNotifications(since, after) {
      const events = account.events.filter(({ created }) => created >= since).reverse()
      const { page, next } = cut(events, after, 5)
      const notifications = page.flatMap(event => readEvent(event as unknown as Stripe.Event) ?? [])
      return { notifications, next, newest: page[0]?.created ?? null }
    },
    identify: async () => ({ id: 'acct_1SandboxFatura', mode: 'test' }),
  }
}

const ranks: Record<InvoiceStatus, number> = { draft: 0, open: 1, uncollectible: 2, paid: 3, void: 3 }

/** Rolls back every transaction once, after its work; it is then done again, as after a deadlock. */
export function rollBackOnce(store: WriteStore): WriteStore {
  const rolledBack = new Error('rolled back')
  return {
    ...store,
    async transaction(work) {
      const first = store.transaction(async tx => {
        await work(tx)
        throw rolledBack
      })
      await assert.rejects(first, error => error === rolledBack)
      return store.transaction(work)
    },
  }
}

/** Looks after every commit: no invoice goes back in its life, none that vanished comes back. */
export function watchStore(store: WriteStore): WriteStore & { settled(): Promise<void> } {
  const seen = new Map<string, InvoiceStatus>()
  const gone = new Set<string>()
  const running = new Set<Promise<unknown>>()
  let lastLook: Promise<unknown> = Promise.resolve()

  async function look(): Promise<void> {
    const present = new Map<string, Invoice>()
    for (const { id, summary } of await readAll(store)) present.set(id, JSON.parse(summary))
    for (const [id, { status }] of present) {
      const before = seen.get(id) ?? 'draft'
      assert.ok(!gone.has(id), `${id} came back ${status}`)
      assert.ok(ranks[status] >= ranks[before], `${id} went from ${before} to ${status}`)
      seen.set(id, status)
    }
    for (const id of seen.keys()) if (!present.has(id)) gone.add(id)
  }

  return {
    ...store,
    async transaction(work) {
      const ran = store.transaction(work)
      running.add(ran)
      try {
        const result = await ran
        // One look at a time: of two at once, the older could come to be compared last.
        const looked = lastLook.then(look)
        lastLook = looked.catch(() => {})
        await looked
        return result
      } finally {
        running.delete(ran)
      }
    },
    async settled() {
      await Promise.allSettled(running)
    },
  }
}

export interface HeldSource extends BillingSource {
  /** Lets one of the answers that are held go, the oldest being the first. */
  release(index: number): void
  releaseAll(): void
  /** As with the end of a process: what is held is never answered. */
  abandon(): void
}

/** When an answer comes: at once; late, being old by then; or the question arrives late, and the answer is new. */
export type Delay = 'none' | 'answer' | 'question'

/** Holds answers as told, one call after the other, in turns; none any more once all are released. */
export function holdSource(source: BillingSource, delays: readonly Delay[]): HeldSource {
  let held: (() => void)[] = []
  let turn = 0
  let isOver = false
  const wait = () => new Promise<void>(resolve => held.push(resolve))
  const delayed =
    <A extends unknown[], T>(ask: (...given: A) => Promise<T>) =>
    async (...given: A): Promise<T> => {
      const delay = isOver ? 'none' : delays[turn++ % delays.length]
      if (delay === 'question') await wait()
      const answer = await ask(...given)
      if (delay === 'answer') await wait()
      return answer
    }
  return {
    ...source,
    listInvoices: delayed(source.listInvoices),
    fetchInvoice: delayed(source.fetchInvoice),
    listNotifications: delayed(source.listNotifications),
    release: index => held.splice(index % Math.max(1, held.length), 1)[0]?.(),
    releaseAll() {
      isOver = true
      for (const go of held.splice(0)) go()
    },
    abandon() {
      held = []
    },
  }
}
