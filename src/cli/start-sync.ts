/** The connector's wiring, and the rhythm in which it runs. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { InvoiceXpressOptions } from '../invoicexpress/client.ts'
import { type Notification, SourceError } from '../sources.ts'
import type { WriteStore } from '../store/store.ts'
import { createBillingSource } from '../stripe/billing-source.ts'
import type { StripeOptions } from '../stripe/client.ts'
import type { MetadataKeys } from '../stripe/map-claim.ts'
import { createWebhookServer } from '../stripe/webhook.ts'
import type { Applied } from '../sync/apply.ts'
import { advice, tellHeld } from '../sync/brake.ts'
import { backfillStream, type Connector, createConnector } from '../sync/connector.ts'
import { allStream, createDocumentSync, type DocumentSync, type Swept } from '../sync/documents.ts'
import { LeaseLost } from '../sync/lease.ts'
import type { LinkRules } from '../sync/link.ts'
import { ageClaims } from '../sync/link-invoices.ts'
import { CliError } from './cli-error.ts'
import { type OpenConnector, openConnector } from './open-connector.ts'

/** How often what happened is asked for: the bound on how late a change is seen without webhooks. */
const eventsEvery = 10_000
/** How often everything that may still change is looked at again. */
const unsettledEvery = 15 * 60_000
/** How often new documents are looked for, those that still change are looked at, and all of them are. */
const recentEvery = 60_000
const openEvery = 5 * 60_000
const allEvery = 24 * 60 * 60_000
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
  /** Whether to wait, before everything once, for another process that synchronizes; otherwise it is an error. */
  wait?: boolean
  /** Whether what the brake holds back by now may go. */
  letThrough?: boolean
}

/** As the connector: with a store that is its own, until the signal or until another process takes over. */
type Opened = SyncOptions & OpenConnector

async function open(given: SyncOptions, isOnce: boolean): Promise<Opened> {
  const { wait = true, letThrough = false } = given
  return { ...given, ...(await openConnector({ ...given, isOnce, wait, letThrough })) }
}

/** Everything once: the whole account, what happened since, what may still change; then the documents likewise. */
export async function syncOnce(given: SyncOptions): Promise<void> {
  const options = await open(given, true)
  const { store, brake, log, signal } = options
  try {
    const steps = async () => {
      await options.settle()
      const connector = await connectStripe(options)
      tell(log, 'backfill', await connector.backfill())
      tell(log, 'catchUp', await connector.catchUp())
      tell(log, 'rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
      const documents = await connectDocuments(options, Number.POSITIVE_INFINITY)
      if (documents === null) await ageClaims(store, options.rules)
      else {
        while ((await documents.sweepMonth()) !== null);
        tell(log, 'sweepRecent', await documents.sweepRecent())
        tell(log, 'refreshOpen', await documents.refreshOpen())
      }
    }
    await Promise.race([steps(), graceAfter(signal).then(() => signal.throwIfAborted())])
    const held = tellHeld({ deletion: brake.held('deletion'), downgrade: brake.held('downgrade') })
    if (held !== null) throw new CliError(`The brake holds back what is implausible: ${held}; ${advice}.`)
  } finally {
    await store.close()
  }
}

/** Goes on until the signal, whatever fails meanwhile. Whenever another process takes over, it waits for its turn again. */
export async function syncOn(given: SyncOptions): Promise<void> {
  while (!given.signal.aborted) {
    try {
      await follow(await open(given, false))
    } catch (error) {
      if (error === given.signal.reason) return
      if (!(error instanceof LeaseLost)) throw error
    }
    if (!given.signal.aborted) given.log.error('another process took over the synchronization of this store')
  }
}

/** Goes on until the signal. */
async function follow(options: Opened): Promise<void> {
  const { store, stripe, webhooks, log, signal } = options
  const connector = await connectStripe(options)
  const documents = await connectDocuments(options)
  let isSettled = false
  const settled = Promise.withResolvers<void>()
  const apply = async (notification: Notification) => {
    if (!isSettled) await Promise.race([settled.promise, pause(patience, signal)])
    if (!isSettled) throw new SourceError('failed', 'It is not known yet whose records these are')
    return connector.applyNotification(notification)
  }
  const server = webhooks && createWebhookServer({ stripe, secret: webhooks.secret, apply, log })
  try {
    if (server !== null && webhooks !== null) {
      server.listen(webhooks.port, webhooks.host)
      await once(server, 'listening').catch(error => {
        throw new CliError(`Cannot receive webhooks on ${webhooks.host}:${webhooks.port}: ${error.message}`)
      })
      log.info({ address: server.address() }, 'receiving webhooks')
    }
    const followBoth = async () => {
      await options.settle()
      isSettled = true
      settled.resolve()
      await Promise.all([
        followInvoices(connector, options),
        documents && followDocuments(documents, options),
      ])
    }
    await Promise.all([
      Promise.race([followBoth(), graceAfter(signal)]),
      server && aborted(signal).then(() => closeServer(server)),
    ])
  } finally {
    server?.close()
    server?.closeAllConnections()
    await store.close()
  }
}

function connectStripe(options: Opened): Promise<Connector> {
  const { store, brake, stripe, keys, rules, log, signal, onProgress, estimate = false } = options
  const source = createBillingSource(stripe, undefined, keys)
  const common = { source, store, brake, rules, log, signal, estimate }
  return createConnector({ ...common, ...(onProgress && { onProgress }) })
}

/** Null when no invoicing system is connected. */
async function connectDocuments(
  { store, brake, invoiceXpress, rules, log, signal, onDocuments }: Opened,
  fetchesPerRun?: number,
): Promise<DocumentSync | null> {
  if (invoiceXpress === null) return null
  const { createDocumentSource } = await import('../invoicexpress/document-source.ts')
  return createDocumentSync({
    source: createDocumentSource(invoiceXpress),
    store,
    brake,
    rules,
    log,
    signal,
    ...(fetchesPerRun !== undefined && { fetchesPerRun }),
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

function followInvoices(connector: Connector, options: Opened): Promise<void> {
  const { store, log, signal, rules, invoiceXpress } = options
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

/**
 * Whatever is due most often goes first, and everything is read month by month in between: so a change is seen in time
 * however many documents there are.
 */
async function followDocuments(documents: DocumentSync, { store, log, signal }: Opened): Promise<void> {
  const all = (await store.listStreams()).find(({ name }) => name === allStream)
  const isWhole = all?.cursor === null && all.succeeded_at !== null
  const due = { recent: 0, open: 0, all: isWhole ? (all.succeeded_at ?? 0) + allEvery : 0 }
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
      } else if (now >= due.all && (await isBackfilled(store))) {
        const swept = await documents.sweepMonth()
        if (swept === null) due.all = now + allEvery
        else tell(log, 'sweepMonth', swept)
      } else return Math.max(0, Math.min(due.recent, due.open, Math.max(due.all, now + patience)) - now)
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
