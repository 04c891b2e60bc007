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
import { type Connector, createConnector } from '../sync/connector.ts'
import { createDocumentSync, type DocumentSync, type Swept } from '../sync/documents.ts'
import type { LinkRules } from '../sync/link.ts'
import { ageClaims } from '../sync/link-invoices.ts'
import {
  customerPatience,
  documentRound,
  eventsEvery,
  invoiceRounds,
  retryAside,
  type Tell,
} from '../sync/rhythm.ts'
import { createTimer, realClocks, runDue } from '../sync/schedule.ts'
import { CliError } from './cli-error.ts'

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
  /** Whether everything is to be listed again, whatever was listed before. */
  isFull?: boolean
}

/** Everything once: the whole account, what happened since, what may still change; then the documents likewise. */
export async function syncOnce(options: SyncOptions): Promise<void> {
  const { url, log, signal } = options
  const store = await openWriteStore(url)
  try {
    const steps = async () => {
      const connector = await connectStripe(options, store)
      await bringEverything(connector, store, options)
      const documents = await connectDocuments(options, store, Number.POSITIVE_INFINITY)
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
  const { url, stripe, webhooks, invoiceXpress, rules, log, signal } = options
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
    const told: Tell = (step, done) => tell(log, step, done)
    const rounds = await invoiceRounds({
      connector,
      store,
      clocks: realClocks,
      tell: told,
      isFull: options.isFull ?? false,
      // Otherwise the documents' own round does it.
      afterReread: async () => invoiceXpress === null && ageClaims(store, rules),
    })
    if (documents !== null) rounds.push(await documentRound(documents, store, realClocks, told))
    const following = rounds.map(steps => repeat(() => runDue(steps), log, signal))
    await Promise.all([
      Promise.race([Promise.all(following), graceAfter(signal)]),
      server && aborted(signal).then(() => closeServer(server)),
    ])
  } finally {
    await store.close()
  }
}

function connectStripe(options: SyncOptions, store: WriteStore): Promise<Connector> {
  const { stripe, keys, rules, log, signal, onProgress } = options
  const source = createBillingSource(stripe, undefined, keys)
  return createConnector({ source, store, rules, log, signal, ...(onProgress && { onProgress }) })
}

/** Null when no invoicing system is connected. */
async function connectDocuments(
  { invoiceXpress, rules, log, signal, onDocuments }: SyncOptions,
  store: WriteStore,
  fetchesPerRun?: number,
): Promise<DocumentSync | null> {
  if (invoiceXpress === null) return null
  const { createDocumentSource } = await import('../invoicexpress/document-source.ts')
  return createDocumentSync({
    source: createDocumentSource(invoiceXpress),
    store,
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

/** Everything that is there now. What happens meanwhile is followed too: the list of a large account takes hours. */
async function bringEverything(connector: Connector, store: WriteStore, options: SyncOptions): Promise<void> {
  const { log, signal, isFull = false } = options
  do {
    tell(log, 'backfill', await whileFollowing(connector, options, connector.backfill()))
    tell(log, 'catchUp', await connector.catchUp())
    // The events had a gap that only the list can close.
  } while (!(await connector.isListed()))
  signal.throwIfAborted()
  if (isFull) tell(log, 'relist', await whileFollowing(connector, options, connector.relist(true)))
  tell(log, 'rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
  await retryAside(connector, store, (step, done) => tell(log, step, done))
}

async function whileFollowing<T>(connector: Connector, options: SyncOptions, work: Promise<T>): Promise<T> {
  const done = new AbortController()
  const signal = AbortSignal.any([options.signal, done.signal])
  const timer = createTimer(eventsEvery, realClocks, eventsEvery)
  const steps = [{ timer, run: () => connector.catchUp(customerPatience) }]
  const following = repeat(() => runDue(steps), options.log, signal)
  try {
    const result = await work
    done.abort()
    await following
    return result
  } finally {
    done.abort()
  }
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {})
}

function tell(log: Logger, step: string, done: Applied | Swept): void {
  log.info({ step, ...done }, 'synchronized')
}
