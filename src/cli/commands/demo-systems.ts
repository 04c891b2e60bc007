/** The systems of the demo: a local Stripe and a local InvoiceXpress that go on changing, synchronized into a store. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createDocuments } from '../../../sandbox/invoicexpress/account.ts'
import { startInvoiceXpressSandbox } from '../../../sandbox/invoicexpress/server.ts'
import { startStripeSandbox } from '../../../sandbox/stripe/server.ts'
import type { Invoice, InvoiceKey } from '../../domain/invoice.ts'
import { defaultRules } from '../../domain/link/link.ts'
import { createToken } from '../../http/access/token.ts'
import { createWebhookServer } from '../../http/stripe-webhook.ts'
import type { PageBrand } from '../../http/web-files.ts'
import { createDocumentSource } from '../../sources/invoicexpress/document-source.ts'
import { createBillingSource } from '../../sources/stripe/billing-source.ts'
import { defaultKeys } from '../../sources/stripe/map-claim.ts'
import { migrateStore, openWriteStore } from '../../store/engines.ts'
import { createStamps } from '../../store/stamps.ts'
import type { WriteStore } from '../../store/store.ts'
import { createDeletionGuard } from '../../sync/deletion-guard.ts'
import { createDocumentSync } from '../../sync/documents/documents.ts'
import { createConnector } from '../../sync/invoices/connector.ts'
import { chooseFirst, live, stage, stagedDays } from './demo-life.ts'

/** Delay of the demo's first change, and the interval of later changes. */
const firstChangeMs = 20_000
export const changeEveryMs = 10_000
/** A full read follows every 6th change, about once a minute. The page therefore shows no data older than about a minute. */
const stepsPerRound = 6
const dayMs = 86_400_000

export type DemoSystems = Awaited<ReturnType<typeof startDemoSystems>>

export async function startDemoSystems(url: string, log: Logger, onEvent: (line: string) => void) {
  const stopping = new AbortController()
  const sandboxes = await startSandboxes()
  const { stripe, invoiceXpress, first } = sandboxes
  await migrateStore(url)
  const store = await openWriteStore(url)
  const sync = await openSync(store, sandboxes, log, stopping.signal)
  await sync.readAll()
  const invoices = (await store.readInvoices(null, 10_000)).map(({ summary }): Invoice => JSON.parse(summary))
  const receiver = await receiveWebhooks(sandboxes, sync, log)
  const life = new DemoLife(sandboxes, sync, onEvent)
  let changes: Promise<void> | undefined

  const customers = describeCustomers(invoices, first)
  const { id, token, hash } = createToken()
  await store.saveToken({
    ...{ id, name: 'demo', hash, customers: customers.map(({ customer_id }) => customer_id) },
    ...{ created_at: Date.now(), expires_at: null, revoked_at: null },
  })
  return {
    stripe,
    invoiceXpress,
    token,
    customers,
    happen: (now?: number) => life.happen(now),
    synchronize: () => life.synchronize(),
    /** Starts changes at regular intervals. */
    startChanging() {
      changes = repeatChange(() => life.change(), stopping.signal)
    },
    /** Key of a paid invoice with lines and two PDFs. The invoice belongs to the last customer but one. */
    sample: pickSample(invoices, customers.at(-2)?.customer_id ?? ''),
    async stop() {
      stopping.abort()
      await changes
      receiver.close()
      receiver.closeAllConnections()
      await sandboxes.close()
      await store.close()
    },
  }
}

type Sandboxes = Awaited<ReturnType<typeof startSandboxes>>

async function startSandboxes() {
  // The demo starts at midnight in UTC, so that all demos of a day show the same data.
  const today = Math.floor(Date.now() / dayMs) * (dayMs / 1000)
  const began = today - (stagedDays * dayMs) / 1000
  const sandbox = await startStripeSandbox({ seed: 2026, invoices: 280, customers: 6, now: began })
  const first = chooseFirst(sandbox.account)
  const documents = createDocuments(sandbox.account, { seed: 2026 })
  stage(sandbox.account, documents, first, today)
  const ix = await startInvoiceXpressSandbox({ documents })
  return {
    sandbox,
    documents,
    first,
    stripe: { apiKey: 'sk_test_sandbox', base: sandbox.address },
    invoiceXpress: { account: null, apiKey: 'ix_test_sandbox', base: ix.address },
    async close() {
      await sandbox.close()
      await ix.close()
    },
  }
}

type DemoSync = Awaited<ReturnType<typeof openSync>>

async function openSync(
  store: WriteStore,
  { sandbox, stripe, invoiceXpress }: Sandboxes,
  log: Logger,
  signal: AbortSignal,
) {
  // The sandbox's clock is behind the real time. The timeout of the document state `creating` is extended by this difference.
  const creatingTimeoutMs = defaultRules.creatingTimeoutMs + Date.now() - sandbox.account.clock * 1000
  const common = {
    ...{ store, log, signal, rules: { ...defaultRules, creatingTimeoutMs } },
    guard: await createDeletionGuard(store, log, false),
    nextStamp: createStamps(await store.readLastObserved()),
  }
  const connector = await createConnector({ ...common, source: createBillingSource(stripe, defaultKeys) })
  const source = createDocumentSource(invoiceXpress)
  const documents = await createDocumentSync({ ...common, source, missesApartMs: 0 })
  const sweepMonths = async () => {
    while ((await documents.sweepMonth()) !== null);
  }
  const readDocuments = async () => {
    await documents.sweepRecent()
    return documents.refreshOpen()
  }
  return {
    connector,
    sweepMonths,
    readDocuments,
    async readAll() {
      await connector.backfill()
      await connector.catchUp()
      await sweepMonths()
      // The connector treats a document as deleted only after two reads have missed the document.
      for (let round = 0; round < 2; round++) await readDocuments()
    },
  }
}

/** Returns a server that receives the sandbox's webhooks. The connector applies their events. */
async function receiveWebhooks({ sandbox, stripe }: Sandboxes, { connector }: DemoSync, log: Logger) {
  const secret = 'whsec_demo'
  const receiver = createWebhookServer({ stripe, secret, apply: connector.applyNotification, log })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  sandbox.subscribe(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`, secret)
  return receiver
}

class DemoLife {
  private readonly sandboxes: Sandboxes
  private readonly sync: DemoSync
  private readonly onEvent: (line: string) => void
  private steps = 0
  /** Numbers of events and document changes that the connector has already followed. */
  private readonly seen: { events: number; documents: number }

  constructor(sandboxes: Sandboxes, sync: DemoSync, onEvent: (line: string) => void) {
    const { sandbox, documents } = sandboxes
    this.sandboxes = sandboxes
    this.sync = sync
    this.onEvent = onEvent
    this.seen = { events: sandbox.account.events.length, documents: documents.changes.length }
  }

  async change(): Promise<void> {
    this.happen()
    await this.synchronize()
  }

  happen(now = Date.now()): void {
    const { sandbox, documents, first } = this.sandboxes
    live(sandbox.account, documents, first, this.steps++, Math.floor(now / 1000))
    documents.follow()
  }

  /** Delivers the sandbox's events, and lets the connector read what changed. */
  async synchronize(): Promise<void> {
    const { onEvent, seen, sync } = this
    const { sandbox, documents } = this.sandboxes
    for (const { event, status } of await sandbox.deliver({ since: seen.events }))
      if (status === 200) onEvent(`webhook: ${event.type}, applied`)
    seen.events = sandbox.account.events.length
    // The webhooks have already applied all events. `catchUp` only updates the time of the last success.
    await sync.connector.catchUp()
    const isTime = this.steps % stepsPerRound === 0
    if (isTime) await sync.sweepMonths()
    if (!isTime && documents.changes.length === seen.documents) return
    seen.documents = documents.changes.length
    const { changed } = await sync.readDocuments()
    if (changed > 0) onEvent(`documents: ${changed} invoices changed`)
  }
}

/** Runs a step at each interval. After the signal, a running step still finishes. */
async function repeatChange(step: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let pauseMs = firstChangeMs; !signal.aborted; pauseMs = changeEveryMs) {
    await sleep(pauseMs, undefined, { signal })
      .then(
        () => step(),
        () => {},
      )
      .catch(() => {})
  }
}

/** The first customer comes first. The others follow by their number of invoices, largest first. */
function describeCustomers(invoices: readonly Invoice[], first: string) {
  return [...Map.groupBy(invoices, ({ customer_id }) => customer_id)]
    .map(([customer_id, its]) => {
      return { customer_id, name: its[0]?.display_name, currency: its[0]?.currency, invoices: its.length }
    })
    .sort(
      (a, b) => Number(b.customer_id === first) - Number(a.customer_id === first) || b.invoices - a.invoices,
    )
}

function pickSample(invoices: readonly Invoice[], customerId: string): InvoiceKey {
  const found = invoices.find(
    ({ customer_id, status, ix_id, ix_status }) =>
      customer_id === customerId && status === 'paid' && ix_id !== null && ix_status === 'settled',
  )
  if (found === undefined) throw new Error('the sandbox has no paid invoice with a document')
  return found
}

const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d4e89"/><path d="M6 22h20M8 22a8 8 0 0 1 16 0" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/><path d="M16 5v4M6.5 9.5l2.5 2.5M25.5 9.5 23 12" stroke="#ffc94d" stroke-width="2.5" stroke-linecap="round"/></svg>`

export const demoBrand: PageBrand = {
  name: 'Aurora Software',
  logo: { type: 'image/svg+xml', content: Buffer.from(logo) },
  accent: '#1d4e89',
  support: 'faturas@aurora.example',
  taxId: '509442013',
  address: 'Rua do Ensaio, 12, 3.º, 1200-109 Lisboa',
  timeZone: 'Europe/Lisbon',
}
