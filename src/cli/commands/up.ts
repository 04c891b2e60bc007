import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import {
  adminOf,
  adminSettings,
  invoiceXpressOf,
  invoiceXpressSettings,
  linkRulesOf,
  linkSettings,
  providerOf,
  providerSettings,
  readUrlOf,
  stripeOf,
  stripeSettings,
} from '../settings/connections.ts'
import { addSettings } from '../settings/options.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog, logWaiting } from '../terminal/log.ts'
import { besideAdmin } from '../wiring/beside-admin.ts'
import { keepServing } from '../wiring/close-connections.ts'
import { delayAfter, leave, unlessAborted, waitForSignal } from '../wiring/signals.ts'
import { syncInThread } from '../wiring/sync-thread.ts'
import { readWebhooks } from './sync.ts'

const used = [
  'DATABASE_URL',
  'DATABASE_READ_URL',
  'HOST',
  'PORT',
  'PUBLIC_URL',
  'CORS_ORIGINS',
  ...providerSettings,
  'RATE_LIMIT',
  'LOG_LEVEL',
  'SHUTDOWN_DELAY',
  ...stripeSettings,
  'STRIPE_WEBHOOK_SECRET',
  ...invoiceXpressSettings,
  'INVOICEXPRESS_PDF_ORIGINS',
  ...linkSettings,
  'LINK_METADATA_KEYS',
  ...adminSettings,
] as const

export function upCommand(): Command {
  return addSettings(
    new Command('up').description(
      'Serve and synchronize in one process, for one machine. Creates or migrates the store.',
    ),
    used,
  )
    .option('--webhooks <port>', "also receive Stripe's webhooks on this port (needs STRIPE_WEBHOOK_SECRET)")
    .action(up)
}

async function up(options: { webhooks?: string } & Options): Promise<void> {
  const settings = readSettings(options, used)
  const { DATABASE_URL: url, HOST: host, PORT: port, RATE_LIMIT: rateLimit, LOG_LEVEL: logLevel } = settings
  const stripe = stripeOf(settings)
  const invoiceXpress = invoiceXpressOf(settings)
  const provider = providerOf(settings)
  const rules = linkRulesOf(settings, invoiceXpress !== null)
  const keys = settings.LINK_METADATA_KEYS
  const webhooks = readWebhooks(options.webhooks, settings)
  if (stripe === null && webhooks !== null)
    throw new CliError('STRIPE_API_KEY is required with --webhooks: changed invoices are fetched with it.')
  const admin = adminOf(settings)
  const log = createLog(logLevel)

  const stop = new AbortController()
  const delay = waitForSignal().then(signal => {
    stop.abort()
    return delayAfter(signal, settings.SHUTDOWN_DELAY)
  })
  const wait = { onWait: logWaiting(log), signal: stop.signal }
  await unlessAborted(stop.signal, migrateStore(url, undefined, wait))
  if (stop.signal.aborted) return end()
  await besideAdmin(admin, log, async serves => {
    const { startApi } = await import('../wiring/start-api.ts')
    const api = await startApi({
      ...{ url: readUrlOf(settings), host, port, rateLimit, stripe, invoiceXpress, log },
      ...{ provider, publicUrl: settings.PUBLIC_URL, corsOrigins: settings.CORS_ORIGINS ?? [] },
    })
    serves(api.address)
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
  })
  end()

  function end(): void {
    log.info('stopped')
    leave()
  }
}
