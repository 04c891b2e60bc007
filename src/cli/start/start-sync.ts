/** Wires the connector, for a single run or for rounds until a signal. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { deliverChanges } from '../../export/webhooks/deliver-changes.ts'
import { closeGently } from '../../http/server/close-connections.ts'
import { listenOnSockets, noMoreSockets } from '../../http/server/more-sockets.ts'
import { createWebhookServer } from '../../http/stripe-webhook.ts'
import { createDocumentSource } from '../../sources/invoicexpress/document-source.ts'
import { type Notification, SourceError } from '../../sources/source.ts'
import { createBillingSource } from '../../sources/stripe/billing-source.ts'
import { createStamps } from '../../store/stamps.ts'
import { StoreError, StoreReplaced } from '../../store/store.ts'
import { advice, formatHeld } from '../../sync/deletion-guard.ts'
import { createDocumentSync, roundsApartMs } from '../../sync/documents/documents.ts'
import { createConnector } from '../../sync/invoices/connector.ts'
import { LeaseLost } from '../../sync/lease.ts'
import { ageClaims } from '../../sync/link-invoices.ts'
import { pruneChanges, pruneEveryMs } from '../../sync/prune-changes.ts'
import { documentQuestions, invoiceQuestions } from '../../sync/questions.ts'
import { readState } from '../../sync/read-state.ts'
import { createRounds, type ReportStep } from '../../sync/rounds.ts'
import { every, everyMs, pause, realClocks, repeat, retryPauseMs, runDue } from '../../sync/schedule.ts'
import { syncInvoices } from '../../sync/sync-invoices.ts'
import { WrittenPlace } from '../../sync/written-place.ts'
import { CliError } from '../terminal/cli-error.ts'
import { openConnector, type SyncOptions } from './open-connector.ts'

/** Time after the signal for running calls. Calls that take longer are repeated by the next run. */
const graceMs = 5_000

/** A connector with its own store. It is usable until the signal, or until another process takes over. */
type Opened = Awaited<ReturnType<typeof openConnector>>

/** Synchronizes once. Invoices come first: the whole account, new events and unsettled invoices. Documents come second. */
export async function syncOnce(given: SyncOptions): Promise<void> {
  const options = await openConnector(given, true, new WrittenPlace())
  const { store, log, signal } = options
  const reportStep = logStep(log)
  try {
    const steps = async () => {
      await options.settle()
      const { connector, documents } = await connect(options, true)
      await syncInvoices(connector, options, reportStep)
      if (documents === null) await ageClaims(store, options)
      else {
        while ((await documents.sweepMonth()) !== null);
        reportStep('sweepRecent', await documents.sweepRecent())
        reportStep('refreshOpen', await documents.refreshOpen())
      }
    }
    await Promise.race([steps(), graceAfter(signal).then(() => signal.throwIfAborted())])
    await pruneChanges(store, options.changesKeptMs)
    const held = formatHeld((await readState(store)).held)
    if (held !== null)
      throw new CliError(`The deletion guard holds back changes that look wrong: ${held}. ${advice}.`)
  } finally {
    await store.close()
  }
}

/**
 * Synchronizes until the signal, also after failures. When another process takes over the lease, this process waits for the lease again.
 */
export async function syncOn(given: SyncOptions): Promise<void> {
  const { log, signal } = given
  const written = new WrittenPlace()
  let wasOpen = false
  while (!signal.aborted) {
    try {
      // Only the first opening allows losses that the deletion guard holds back. This process may open the store again later.
      const opened = await openConnector(
        { ...given, letThrough: given.letThrough === true && !wasOpen },
        false,
        written,
      )
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
      // A store that never opened needs the operator. A store that was open before may become available again soon.
      if (!wasOpen && !(error instanceof StoreReplaced)) throw error
      log.error({ err: error }, 'sync failed; trying again')
      await pause(retryPauseMs, signal)
    }
  }
}

async function follow(options: Opened): Promise<void> {
  const { store, stripe, webhooks, log, signal, isFull = false } = options
  const { connector, documents } = await connect(options)
  let isSettled = false
  const settled = Promise.withResolvers<void>()
  const apply = async (notification: Notification) => {
    if (!isSettled) await Promise.race([settled.promise, pause(retryPauseMs, signal)])
    if (!isSettled) throw new SourceError('failed', 'The accounts are not checked yet')
    return connector.applyNotification(notification)
  }
  const server = webhooks && createWebhookServer({ stripe, secret: webhooks.secret, apply, log })
  let sockets = noMoreSockets
  try {
    if (server !== null && webhooks !== null) {
      sockets = await listenOnSockets(server, webhooks).catch(error => {
        throw new CliError(`Cannot receive webhooks on ${webhooks.host}:${webhooks.port}: ${error.message}`)
      })
      log.info({ address: server.address() }, 'receiving webhooks')
    }
    const followAll = async () => {
      await options.settle()
      isSettled = true
      settled.resolve()
      if (isFull) await connector.forceRelist()
      const questions = [
        ...invoiceQuestions(connector),
        ...(documents === null ? [] : documentQuestions(documents)),
      ]
      const { isListed } = connector
      // Each entry is a list of steps. The steps of one list run one after the other, and the lists run at the same time.
      const rounds = [
        ...(await createRounds(questions, { store, clocks: realClocks, reportStep: logStep(log), isListed })),
        [every(pruneEveryMs, realClocks, () => pruneChanges(store, options.changesKeptMs))],
        // This step is only needed without an invoicing system. With one, a step that reads documents calls `ageClaims`.
        ...(documents === null
          ? [[every(everyMs.unsettled, realClocks, () => ageClaims(store, options))]]
          : []),
      ]
      await Promise.all(rounds.map(steps => repeat(() => runDue(steps), log, signal)))
    }
    await Promise.all([
      Promise.race([followAll(), graceAfter(signal)]),
      // Deliveries of outgoing webhooks do not depend on Stripe or InvoiceXpress.
      Promise.race([
        deliverChanges({ store, allowPrivate: options.outgoingWebhooksPrivate, log, signal }),
        graceAfter(signal),
      ]),
      server && aborted(signal).then(() => closeGently(server, undefined, sockets)),
    ])
  } finally {
    server?.close()
    void sockets.close()
    server?.closeAllConnections()
    await store.close()
  }
}

async function connect(options: Opened, isOnce = false) {
  const { stripe, keys, invoiceXpress, store, guard, rules, log, signal, onProgress, onDocuments } = options
  const nextStamp = createStamps(await store.readLastObserved())
  const common = { store, guard, rules, log, signal, nextStamp }
  const payments = createBillingSource(stripe, keys)
  const source = invoiceXpress && createDocumentSource(invoiceXpress)
  return {
    connector: await createConnector({ ...common, source: payments, ...(onProgress && { onProgress }) }),
    documents:
      source &&
      (await createDocumentSync({
        ...common,
        source,
        ...(isOnce
          ? { missesApartMs: 'one run', fetchesPerRun: Number.POSITIVE_INFINITY }
          : { missesApartMs: roundsApartMs, sweepSource: source.atHalfPace }),
        ...(onDocuments && { onProgress: onDocuments }),
      })),
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

async function graceAfter(signal: AbortSignal): Promise<void> {
  await aborted(signal)
  await sleep(graceMs, undefined, { ref: false })
}

function logStep(log: Logger): ReportStep {
  return (step, done) => log.info({ step, ...done }, 'synchronized')
}
