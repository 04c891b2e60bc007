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
import { StoreError, StoreReplaced } from '../../store/store.ts'
import { createBillingSource } from '../../stripe/billing-source.ts'
import type { StripeOptions } from '../../stripe/client.ts'
import type { MetadataKeys } from '../../stripe/map-claim.ts'
import { createWebhookServer } from '../../stripe/webhook.ts'
import type { Applied } from '../../sync/apply.ts'
import { type Connector, createConnector } from '../../sync/connector.ts'
import { advice, formatHeld } from '../../sync/deletion-guard.ts'
import { createDocumentSync, type DocumentSync, type Swept } from '../../sync/documents.ts'
import { LeaseLost } from '../../sync/lease.ts'
import { ageClaims } from '../../sync/link-invoices.ts'
import { documentRounds, invoiceRounds, type ReportStep } from '../../sync/rounds.ts'
import { createTimer, realClocks, runDue, type Step } from '../../sync/schedule.ts'
import { CliError } from '../terminal/cli-error.ts'
import { bringEverything } from './bring-everything.ts'
import { type OpenConnector, openConnector } from './open-connector.ts'
import { patience, pause, repeat } from './repeat.ts'

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
  /** Whether what the guard holds back by now may go. */
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
  const { store, guard, log, signal } = options
  try {
    const steps = async () => {
      await options.settle()
      const sources = await openSources(options)
      const connector = await connectStripe(options, sources)
      await bringEverything(connector, options, (step, done) => logStep(log, step, done))
      const documents = await connectDocuments(options, sources, true)
      if (documents === null) await ageClaims(store, { rules: options.rules, guard })
      else {
        while ((await documents.sweepMonth()) !== null);
        logStep(log, 'sweepRecent', await documents.sweepRecent())
        logStep(log, 'refreshOpen', await documents.refreshOpen())
      }
    }
    await Promise.race([steps(), graceAfter(signal).then(() => signal.throwIfAborted())])
    const held = formatHeld({ deletion: guard.held('deletion'), downgrade: guard.held('downgrade') })
    if (held !== null)
      throw new CliError(`The deletion guard holds back changes that look wrong: ${held}; ${advice}.`)
  } finally {
    await store.close()
  }
}

/** Goes on until the signal, whatever fails meanwhile. Whenever another process takes over, it waits for its turn again. */
export async function syncOn(given: SyncOptions): Promise<void> {
  const { log, signal } = given
  let wasOpen = false
  while (!signal.aborted) {
    try {
      const opened = await open(given, false)
      wasOpen = true
      await follow(opened)
      if (!signal.aborted) throw opened.signal.reason
    } catch (error) {
      if (error === signal.reason) return
      if (!(error instanceof StoreError)) throw error
      if (error instanceof LeaseLost) {
        log.error('another process took over the synchronization of this store')
        continue
      }
      // A store that could never be opened is for somebody to look at; one that was may be free, or back, a moment later.
      if (!wasOpen && !(error instanceof StoreReplaced)) throw error
      log.error({ err: error }, 'sync failed; trying again')
      await pause(patience, signal)
    }
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
      const rounds = [
        ...(await planRounds(connector, documents, options)),
        [measureDrift(options, sources, connector, documents)],
      ]
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
  { store, guard, invoiceXpress, rules, log, isFull = false }: Opened,
): Promise<Step[][]> {
  const reportStep: ReportStep = (step, done) => logStep(log, step, done)
  const common = { connector, store, clocks: realClocks, reportStep }
  const rounds = await invoiceRounds({
    ...common,
    isFull,
    // Otherwise the documents' own round does it.
    afterReread: async () => invoiceXpress === null && ageClaims(store, { rules, guard }),
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

function measureDrift(
  { store, rules, log, signal }: Opened,
  { payments, documents: source }: Sources,
  connector: Connector,
  documents: DocumentSync | null,
): Step {
  const measure = createDriftMeasure({
    ...{ store, payments, rules, documents: source?.atHalfPace ?? null },
    onDifference: ({ customer_id, id: invoice_id }, fields) =>
      log.warn({ customer_id, invoice_id, fields }, 'a stored invoice differs from its source'),
    async repair(key, itsDocuments) {
      await connector.refetch(key)
      await documents?.refetch(itsDocuments)
    },
    async repairNear(customerId, created) {
      const near = await connector.refetchNear(customerId, created)
      logStep(log, 'refetchNear', near)
      return near.changed + near.deleted
    },
    wait: milliseconds => sleep(milliseconds, undefined, { signal, ref: false }),
  })
  return {
    timer: createTimer(driftEvery, realClocks, driftEvery),
    // Before everything was listed, much is missing.
    run: async () => (await connector.isListed()) && measure(),
  }
}

function connectStripe(options: Opened, { payments: source }: Sources): Promise<Connector> {
  const { store, guard, rules, log, signal, onProgress } = options
  const common = { source, store, guard, rules, log, signal }
  return createConnector({ ...common, ...(onProgress && { onProgress }) })
}

/** Null when no invoicing system is connected. */
async function connectDocuments(
  { store, guard, rules, log, signal, onDocuments }: Opened,
  { documents: source }: Sources,
  isOnce = false,
): Promise<DocumentSync | null> {
  if (source === null) return null
  return createDocumentSync({
    source,
    store,
    guard,
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

function logStep(log: Logger, step: string, done: Applied | Swept): void {
  log.info({ step, ...done }, 'synchronized')
}
