/** The connector's wiring, and the rhythm in which it runs. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { InvoiceXpressOptions } from '../invoicexpress/client.ts'
import { openWriteStore } from '../store/open-store.ts'
import type { WriteStore } from '../store/store.ts'
import { createBillingSource } from '../stripe/billing-source.ts'
import type { StripeOptions } from '../stripe/client.ts'
import type { MetadataKeys } from '../stripe/map-claim.ts'
import { createWebhookServer } from '../stripe/webhook.ts'
import type { Applied } from '../sync/apply.ts'
import { backfillStream, type Connector, createConnector } from '../sync/connector.ts'
import { allStream, createDocumentSync, type DocumentSync, type Swept } from '../sync/documents.ts'
import type { LinkRules } from '../sync/link.ts'
import { ageClaims } from '../sync/link-invoices.ts'
import { CliError } from './cli-error.ts'

/** How often what happened is asked for: the bound on how late a change is seen without webhooks. */
const eventsEvery = 10_000
/** How often everything that may still change is looked at again. */
const unsettledEvery = 15 * 60_000
/** How often new documents are looked for, and those that still change are looked at. */
const recentEvery = 60_000
const openEvery = 5 * 60_000
/** How often all documents are read, from one beginning to the next: as soon as possible where it takes longer. */
const allEvery = 5 * 60_000
/** After a failure, so long until the next try. */
const patience = 5_000
/** After the signal, what is in flight has so long; what is left then is asked for again next time. */
const grace = 5_000

export interface SyncOptions {
  url: string
  stripe: StripeOptions
  /** Null: no invoicing system is connected. */
  invoiceXpress: InvoiceXpressOptions | null
  rules: LinkRules
  keys: MetadataKeys
  /** Null: no webhooks are received. */
  webhooks: { host: string; port: number; secret: string } | null
  log: Logger
  signal: AbortSignal
  onProgress?(step: string, invoices: number, part: number | null): void
  onDocuments?(documents: number): void
  /** Whether to find out, by some more questions, how long the way is. */
  estimate?: boolean
}

/** Everything once: the whole account, what happened since, what may still change; then the documents likewise. */
export async function syncOnce(options: SyncOptions): Promise<void> {
  const { url, log, signal } = options
  const store = await openWriteStore(url)
  try {
    const steps = async () => {
      const connector = await connectStripe(options, store)
      tell(log, 'backfill', await connector.backfill())
      tell(log, 'catchUp', await connector.catchUp())
      tell(log, 'rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
      const documents = await connectDocuments(options, store, true)
      if (documents === null) await ageClaims(store, options.rules)
      else {
        while ((await documents.sweepMonth()) !== null);
        tell(log, 'sweepRecent', await documents.sweepRecent())
        tell(log, 'refreshOpen', await documents.refreshOpen())
      }
    }
    await Promise.race([steps(), graceAfter(signal).then(() => signal.throwIfAborted())])
  } finally {
    await store.close()
  }
}

/** Goes on until the signal, whatever fails meanwhile. */
export async function syncOn(options: SyncOptions): Promise<void> {
  const { url, stripe, webhooks, log, signal } = options
  const store = await openWriteStore(url)
  const connector = await connectStripe(options, store)
  const documents = await connectDocuments(options, store)
  const server =
    webhooks &&
    createWebhookServer({ stripe, secret: webhooks.secret, apply: connector.applyNotification, log })
  try {
    if (server !== null && webhooks !== null) {
      server.listen(webhooks.port, webhooks.host)
      await once(server, 'listening').catch(error => {
        throw new CliError(`Cannot receive webhooks on ${webhooks.host}:${webhooks.port}: ${error.message}`)
      })
      log.info({ address: server.address() }, 'receiving webhooks')
    }
    const following = [
      followInvoices(connector, store, options),
      documents && followDocuments(documents, options),
      documents && followAllDocuments(documents, store, options),
    ]
    await Promise.all([
      Promise.race([Promise.all(following), graceAfter(signal)]),
      server && aborted(signal).then(() => closeServer(server)),
    ])
  } finally {
    await store.close()
  }
}

function connectStripe(options: SyncOptions, store: WriteStore): Promise<Connector> {
  const { stripe, keys, rules, log, signal, onProgress, estimate = false } = options
  const source = createBillingSource(stripe, undefined, keys)
  return createConnector({ source, store, rules, log, signal, estimate, ...(onProgress && { onProgress }) })
}

/** Null when no invoicing system is connected. */
async function connectDocuments(
  { invoiceXpress, rules, log, signal, onDocuments }: SyncOptions,
  store: WriteStore,
  isOnce = false,
): Promise<DocumentSync | null> {
  if (invoiceXpress === null) return null
  const { createDocumentSource } = await import('../invoicexpress/document-source.ts')
  const source = createDocumentSource(invoiceXpress)
  return createDocumentSync({
    source,
    store,
    rules,
    log,
    signal,
    // What goes on beside other rounds leaves them half of the pace.
    ...(isOnce
      ? { isOneRound: true, fetchesPerRun: Number.POSITIVE_INFINITY }
      : { sweepSource: source.atHalfPace }),
    ...(onDocuments && { onProgress: onDocuments }),
  })
}

/** A call to Stripe cannot be called off, and would keep the process for minutes: it is left behind. */
export function leave(): void {
  setTimeout(() => process.exit(), 100).unref()
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

async function graceAfter(signal: AbortSignal): Promise<void> {
  await aborted(signal)
  await sleep(grace, undefined, { ref: false })
}

/** Lets the webhooks in flight finish, as far as they do in time. */
async function closeServer(server: Server): Promise<void> {
  const letGo = setInterval(() => server.closeIdleConnections(), 50)
  const cutOff = setTimeout(() => server.closeAllConnections(), grace)
  server.close()
  await once(server, 'close')
  clearInterval(letGo)
  clearTimeout(cutOff)
}

/** Repeats a step until the signal, after a pause that it resolves with; sooner when it failed. */
async function repeat(step: () => Promise<number>, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await pause(await step(), signal)
    } catch (error) {
      if (signal.aborted) return
      log.error({ err: error }, 'sync failed; trying again')
      await pause(patience, signal)
    }
  }
}

function followInvoices(connector: Connector, store: WriteStore, options: SyncOptions): Promise<void> {
  const { log, signal, rules, invoiceXpress } = options
  let rereadAt = 0
  // What the first round has just listed needs no second look.
  let unlessSince: number | undefined = connector.startedAt
  return repeat(
    async () => {
      tell(log, 'backfill', await connector.backfill())
      tell(log, 'catchUp', await connector.catchUp())
      if (Date.now() < rereadAt) return eventsEvery
      tell(log, 'rereadUnsettled', await connector.rereadUnsettled(unlessSince))
      unlessSince = undefined
      // Otherwise the documents' own round does it.
      if (invoiceXpress === null) await ageClaims(store, rules)
      rereadAt = Date.now() + unsettledEvery
      return eventsEvery
    },
    log,
    signal,
  )
}

/** Whatever is due most often goes first: so a change is seen in time however many documents there are. */
function followDocuments(documents: DocumentSync, { log, signal }: SyncOptions): Promise<void> {
  const due = { recent: 0, open: 0 }
  return repeat(
    async () => {
      const now = Date.now()
      // A step's next turn is settled before it runs: one that fails must not keep the others from theirs.
      if (now >= due.recent) {
        due.recent = now + recentEvery
        tell(log, 'sweepRecent', await documents.sweepRecent())
      } else if (now >= due.open) {
        due.open = now + openEvery
        tell(log, 'refreshOpen', await documents.refreshOpen())
      } else return Math.min(due.recent, due.open) - now
      return 0
    },
    log,
    signal,
  )
}

/** Everything month by month, beside the rounds that are due more often. */
async function followAllDocuments(
  documents: DocumentSync,
  store: WriteStore,
  { log, signal }: SyncOptions,
): Promise<void> {
  return repeat(
    async () => {
      if (!(await isBackfilled(store))) return patience
      const all = (await store.listStreams()).find(({ name }) => name === allStream)
      // Between two sweeps; one that was cut off goes on at once.
      if (all?.cursor === null && all.succeeded_at !== null) {
        const left = all.succeeded_at + allEvery - Date.now()
        if (left > 0) return Math.min(left, allEvery)
      }
      const swept = await documents.sweepMonth()
      if (swept !== null) tell(log, 'sweepMonth', swept)
      return 0
    },
    log,
    signal,
  )
}

/** How far back documents are read is told by the invoices: all of them must be there. */
async function isBackfilled(store: WriteStore): Promise<boolean> {
  const streams = await store.listStreams()
  return streams.some(({ name, succeeded_at }) => name === backfillStream && succeeded_at !== null)
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {})
}

function tell(log: Logger, step: string, done: Applied | Swept): void {
  log.info({ step, ...done }, 'synchronized')
}
