import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import {
  readDatabaseUrl,
  readHost,
  readInvoiceXpress,
  readLinkRules,
  readLogLevel,
  readMetadataKeys,
  readPort,
  readRateLimit,
  readReadUrl,
  readShutdownDelay,
  readStripe,
} from '../settings/config.ts'
import {
  addSettings,
  invoiceXpressSettings,
  linkSettings,
  readFlags,
  stripeSettings,
} from '../settings/options.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog, logWaiting } from '../terminal/log.ts'
import { keepServing } from '../wiring/close-connections.ts'
import { delayAfter, leave, unlessAborted, waitForSignal } from '../wiring/signals.ts'
import { syncInThread } from '../wiring/sync-thread.ts'
import { readWebhooks } from './sync.ts'

export function upCommand(): Command {
  return addSettings(
    new Command('up').description(
      'Serve and synchronize in one process, for one machine. Creates or migrates the store.',
    ),
    'DATABASE_URL',
    'DATABASE_READ_URL',
    'HOST',
    'PORT',
    'RATE_LIMIT',
    'LOG_LEVEL',
    'SHUTDOWN_DELAY',
    ...stripeSettings,
    'STRIPE_WEBHOOK_SECRET',
    ...invoiceXpressSettings,
    'INVOICEXPRESS_PDF_ORIGINS',
    ...linkSettings,
  )
    .option('--webhooks <port>', "also receive Stripe's webhooks on this port (needs STRIPE_WEBHOOK_SECRET)")
    .action(up)
}

async function up(options: { webhooks?: string } & Record<string, unknown>): Promise<void> {
  const flags = readFlags(options)
  const url = readDatabaseUrl(flags)
  const host = readHost(flags)
  const port = readPort(flags)
  const rateLimit = readRateLimit(flags)
  const stripe = readStripe()
  const invoiceXpress = readInvoiceXpress()
  const rules = readLinkRules(invoiceXpress !== null)
  const keys = readMetadataKeys()
  const webhooks = readWebhooks(options.webhooks, host)
  if (stripe === null && webhooks !== null)
    throw new CliError('To receive webhooks, set STRIPE_API_KEY: what they tell of is fetched.')
  const logLevel = readLogLevel(flags)
  const log = createLog(logLevel)

  const stop = new AbortController()
  const shutdownDelayMs = readShutdownDelay(flags)
  const delay = waitForSignal().then(signal => {
    stop.abort()
    return delayAfter(signal, shutdownDelayMs)
  })
  const wait = { onWait: logWaiting(log), signal: stop.signal }
  await unlessAborted(stop.signal, migrateStore(url, undefined, wait))
  if (stop.signal.aborted) return end()
  const { startApi } = await import('../wiring/start-api.ts')
  const api = await startApi({ url: readReadUrl(flags), host, port, rateLimit, stripe, invoiceXpress, log })
  log.info({ address: api.address }, 'listening')
  const stopped = delay.then(async delayMs => {
    api.leave()
    if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
    await keepServing(delayMs)
    await api.stop()
  })
  if (stripe === null) log.warn('STRIPE_API_KEY is not set: serving what is stored, synchronizing nothing')
  else
    await syncInThread({ url, stripe, invoiceXpress, rules, keys, webhooks, logLevel }, stop.signal).catch(
      async error => {
        await api.stop()
        throw error
      },
    )
  await stopped
  end()

  function end(): void {
    log.info('stopped')
    leave()
  }
}
