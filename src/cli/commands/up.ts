import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import {
  adminOf,
  adminSettings,
  apiOf,
  apiSettings,
  invoiceXpressSettings,
  linkRulesOf,
  linkSettings,
  stripeSettings,
} from '../settings/connections.ts'
import { addSettings } from '../settings/options.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog, logWaiting } from '../terminal/log.ts'
import { besideAdmin } from '../wiring/beside-admin.ts'
import { delayAfter, leave, unlessAborted, waitForSignal } from '../wiring/signals.ts'
import { syncInThread } from '../wiring/sync-thread.ts'
import { readWebhooks } from './sync.ts'

const used = [
  ...apiSettings,
  'SHUTDOWN_DELAY',
  'READY_MAX_LAG',
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
  const { DATABASE_URL: url, LOG_LEVEL: logLevel } = settings
  const served = apiOf(settings)
  const { stripe, invoiceXpress } = served
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
  const store = { readUrl: served.url, operatorUrl: url, hasDocuments: invoiceXpress !== null }
  await besideAdmin(admin, store, log, async beside => {
    const { startApi } = await import('../wiring/start-api.ts')
    const api = await startApi({ ...served, log })
    beside.serves(api.address)
    await beside.count({ serves: api, synchronizes: false })
    log.info({ address: api.address }, 'listening')
    const stopped = delay.then(async delayMs => {
      api.leave()
      if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
      await sleep(delayMs, undefined, { ref: false })
      await api.stop()
    })
    if (stripe === null) log.warn('STRIPE_API_KEY is not set: serving what is stored, synchronizing nothing')
    else
      await syncInThread(
        { url, stripe, invoiceXpress, rules, keys, webhooks, logLevel, isMeasured: admin !== null },
        stop.signal,
        beside,
      ).catch(async error => {
        await api.stop()
        throw error
      })
    await stopped
  })
  end()

  function end(): void {
    log.info('stopped')
    leave()
  }
}
