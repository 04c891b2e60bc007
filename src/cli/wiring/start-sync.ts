/** The connector's wiring, and the rhythm in which it runs. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createDriftMeasure, driftEvery } from '../../drift/measure-drift.ts'
import type { InvoiceXpressOptions } from '../../invoicexpress/client.ts'
import type { PacedDocumentSource } from '../../invoicexpress/document-source.ts'
import type { LinkRules } from '../../linking/link.ts'
import { type BillingSource, type Notification, SourceError } from '../../sources.ts'
import { StoreError } from '../../store/store.ts'
import { createBillingSource } from '../../stripe/billing-source.ts'
import type { StripeOptions } from '../../stripe/client.ts'
import type { MetadataKeys } from '../../stripe/map-claim.ts'
import { createWebhookServer } from '../../stripe/webhook.ts'
import type { Applied } from '../../sync/apply.ts'
import { advice, tellHeld } from '../../sync/brake.ts'
import { type Connector, createConnector } from '../../sync/connector.ts'
import { createDocumentSync, type DocumentSync, type Swept } from '../../sync/documents.ts'
import { eventsEvery } from '../../sync/intervals.ts'
import { LeaseLost } from '../../sync/lease.ts'
import { ageClaims } from '../../sync/link-invoices.ts'
import { customerPatience, documentRounds, invoiceRounds, retryAside, type Tell } from '../../sync/rhythm.ts'
import { createTimer, realClocks, runDue, type Step } from '../../sync/schedule.ts'
import { CliError } from '../terminal/cli-error.ts'
import { type OpenConnector, openConnector } from './open-connector.ts'

/** How long to wait after a failure. */
const patience = 5_000
/** How long calls in flight may take after the signal. What is left then is asked for next time. */
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
      const sources = await openSources(options)
      const connector = await connectStripe(options, sources)
      await bringEverything(connector, options)
      const documents = await connectDocuments(options, sources, true)
      if (documents === null) await ageClaims(store, options.rules, brake)
      else {
        while ((await documents.sweepMonth()) !== null);
        tell(log, 'sweepRecent', await documents.sweepRecent())
        tell(log, 'refreshOpen', await documents.refreshOpen())
      }
    }
    await Promise.race([steps(), graceAfter(signal).then(() => signal.throwIfAborted())])
    const held = tellHeld({ deletion: brake.held('deletion'), downgrade: brake.held('downgrade') })
    if (held !== null) throw new CliError(`The brake holds back changes that look wrong: ${held}; ${advice}.`)
  } finally {
    await store.close()
  }
}

/** Goes on until the signal, whatever fails meanwhile. Whenever another process takes over, it waits for its turn again. */
export async function syncOn(given: SyncOptions): Promise<void> {
  while (!given.signal.aborted) {
    let opened: Opened | undefined
    try {
      opened = await open(given, false)
      await follow(opened)
    } catch (error) {
      if (error === given.signal.reason) return
      if (!(error instanceof StoreError)) throw error
      if (!(error instanceof LeaseLost)) {
        // A store that could not be opened is for somebody to look at; one that was may be free, or back, a moment later.
        if (opened === undefined) throw error
        given.log.error({ err: error }, 'sync failed; trying again')
        await pause(patience, given.signal)
        continue
      }
    }
    if (!given.signal.aborted) given.log.error('another process took over the synchronization of this store')
  }
}

/** Goes on until the signal. */
async function follow(options: Opened): Promise<void> {
  const { store, stripe, webhooks, log, signal } = options
  const sources = await openSources(options)
  const connector = await connectStripe(options, sources)
  const documents = await connectDocuments(options, sources)
  let isSettled = false
  const settled = Promise.withResolvers<void>()
  const apply = async (notification: Notification) => {
    if (!isSettled) await Promise.race([settled.promise, pause(patience, signal)])
    if (!isSettled) throw new SourceError('failed', 'The accounts are not checked yet')
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
    const followAll = async () => {
      await options.settle()
      isSettled = true
      settled.resolve()
      const rounds = [...(await planRounds(connector, documents, options)), [measureDrift(options, sources)]]
      await Promise.all(rounds.map(steps => repeat(() => runDue(steps), log, signal)))
    }
    await Promise.all([
      Promise.race([followAll(), graceAfter(signal)]),
      server && aborted(signal).then(() => closeServer(server)),
    ])
  } finally {
    server?.close()
    server?.closeAllConnections()
    await store.close()
  }
}

/** What goes on side by side, each with steps of its own. */
async function planRounds(
  connector: Connector,
  documents: DocumentSync | null,
  { store, brake, invoiceXpress, rules, log, isFull = false }: Opened,
): Promise<Step[][]> {
  const told: Tell = (step, done) => tell(log, step, done)
  const common = { connector, store, clocks: realClocks, tell: told }
  const rounds = await invoiceRounds({
    ...common,
    isFull,
    // Otherwise the documents' own round does it.
    afterReread: async () => invoiceXpress === null && ageClaims(store, rules, brake),
  })
  return documents === null ? rounds : [...rounds, ...(await documentRounds(documents, common))]
}

interface Sources {
  payments: BillingSource
  /** Null: no invoicing system is connected. */
  documents: PacedDocumentSource | null
}

async function openSources({ stripe, keys, invoiceXpress }: SyncOptions): Promise<Sources> {
  const payments = createBillingSource(stripe, undefined, keys)
  if (invoiceXpress === null) return { payments, documents: null }
  const { createDocumentSource } = await import('../../invoicexpress/document-source.ts')
  return { payments, documents: createDocumentSource(invoiceXpress) }
}

function measureDrift({ store, rules, log, signal }: Opened, { payments, documents }: Sources): Step {
  const measure = createDriftMeasure({
    ...{ store, payments, rules, documents: documents?.atHalfPace ?? null },
    onDifference: ({ customer_id, id: invoice_id }, fields) =>
      log.warn({ customer_id, invoice_id, fields }, 'a stored invoice differs from its source'),
    wait: milliseconds => sleep(milliseconds, undefined, { signal, ref: false }),
  })
  return { timer: createTimer(driftEvery, realClocks, driftEvery), run: measure }
}

function connectStripe(options: Opened, { payments: source }: Sources): Promise<Connector> {
  const { store, brake, rules, log, signal, onProgress } = options
  const common = { source, store, brake, rules, log, signal }
  return createConnector({ ...common, ...(onProgress && { onProgress }) })
}

/** Null when no invoicing system is connected. */
async function connectDocuments(
  { store, brake, rules, log, signal, onDocuments }: Opened,
  { documents: source }: Sources,
  isOnce = false,
): Promise<DocumentSync | null> {
  if (source === null) return null
  return createDocumentSync({
    source,
    store,
    brake,
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
async function bringEverything(connector: Connector, options: Opened): Promise<void> {
  const { log, signal, isFull = false } = options
  do {
    tell(log, 'backfill', await whileFollowing(connector, options, connector.backfill()))
    tell(log, 'catchUp', await connector.catchUp())
    // The events had a gap that only the list can close.
  } while (!(await connector.isListed()))
  signal.throwIfAborted()
  if (isFull) tell(log, 'relist', await whileFollowing(connector, options, connector.relist(true)))
  tell(log, 'rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
  await retryAside(connector, (step, done) => tell(log, step, done))
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
