/** The connector's wiring, and the rhythm in which it runs. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { openWriteStore } from '../store/open-store.ts'
import { createBillingSource } from '../stripe/billing-source.ts'
import type { StripeOptions } from '../stripe/client.ts'
import { createWebhookServer } from '../stripe/webhook.ts'
import type { Applied } from '../sync/apply.ts'
import { type Connector, createConnector } from '../sync/connector.ts'
import { CliError } from './cli-error.ts'

/** How often what happened is asked for: the bound on how late a change is seen without webhooks. */
const eventsEvery = 10_000
/** How often everything that may still change is looked at again. */
const unsettledEvery = 15 * 60_000
/** After a failure, so long until the next try. */
const patience = 5_000
/** After the signal, what is in flight has so long; what is left then is asked for again next time. */
const grace = 5_000

export interface SyncOptions {
  url: string
  stripe: StripeOptions
  /** Null: no webhooks are received. */
  webhooks: { host: string; port: number; secret: string } | null
  log: Logger
  signal: AbortSignal
  onProgress?(step: string, invoices: number, part: number | null): void
  /** Whether to find out, by some more questions, how long the way is. */
  estimate?: boolean
}

/** Everything once: the whole account, what happened since, what may still change. */
export async function syncOnce(options: SyncOptions): Promise<void> {
  const { url, stripe, log, signal, onProgress, estimate = false } = options
  const store = await openWriteStore(url)
  try {
    const connector = await createConnector({
      source: createBillingSource(stripe),
      store,
      log,
      signal,
      estimate,
      ...(onProgress && { onProgress }),
    })
    const steps = async () => {
      for (const step of ['backfill', 'catchUp', 'rereadUnsettled'] as const)
        tell(log, step, await connector[step]())
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
  const source = createBillingSource(stripe)
  const connector = await createConnector({ source, store, log, signal })
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
    await Promise.all([
      Promise.race([follow(connector, log, signal), graceAfter(signal)]),
      server && aborted(signal).then(() => closeServer(server)),
    ])
  } finally {
    await store.close()
  }
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

async function follow(connector: Connector, log: Logger, signal: AbortSignal): Promise<void> {
  let rereadAt = 0
  while (!signal.aborted) {
    try {
      tell(log, 'backfill', await connector.backfill())
      tell(log, 'catchUp', await connector.catchUp())
      if (Date.now() >= rereadAt) {
        tell(log, 'rereadUnsettled', await connector.rereadUnsettled())
        rereadAt = Date.now() + unsettledEvery
      }
      await pause(eventsEvery, signal)
    } catch (error) {
      if (signal.aborted) return
      log.error({ err: error }, 'sync failed; trying again')
      await pause(patience, signal)
    }
  }
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {})
}

function tell(log: Logger, step: string, applied: Applied): void {
  log.info({ step, ...applied }, 'synchronized')
}
