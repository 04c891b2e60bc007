import cluster from 'node:cluster'
import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import {
  adminOf,
  adminSettings,
  invoiceXpressOf,
  invoiceXpressSettings,
  providerOf,
  providerSettings,
  readUrlOf,
  stripeOf,
  stripeSettings,
} from '../settings/connections.ts'
import { addSettings } from '../settings/options.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { createLog } from '../terminal/log.ts'
import { besideAdmin } from '../wiring/beside-admin.ts'
import { keepServing } from '../wiring/close-connections.ts'
import { delayAfter, waitForSignal } from '../wiring/signals.ts'
import { runWorkers, serveAsWorker } from '../wiring/workers.ts'

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
  'WORKERS',
  'SHUTDOWN_DELAY',
  ...stripeSettings,
  ...invoiceXpressSettings,
  'INVOICEXPRESS_PDF_ORIGINS',
  ...adminSettings,
] as const

export function serveCommand(): Command {
  return addSettings(
    new Command('serve').description('Serve the API. It reads the store and never writes to it.'),
    used,
  )
    .option('--migrate', 'first create the store, or bring its schema up to date')
    .action(serve)
}

async function serve(options: { migrate?: true } & Options): Promise<void> {
  const settings = readSettings(options, used)
  const { WORKERS: workers, SHUTDOWN_DELAY: shutdownDelayMs } = settings
  const admin = adminOf(settings)
  const log = createLog(settings.LOG_LEVEL)
  const api = {
    url: readUrlOf(settings),
    host: settings.HOST,
    port: settings.PORT,
    rateLimit: settings.RATE_LIMIT,
    corsOrigins: settings.CORS_ORIGINS ?? [],
    provider: providerOf(settings),
    publicUrl: settings.PUBLIC_URL,
    stripe: stripeOf(settings),
    invoiceXpress: invoiceXpressOf(settings),
    workers,
    log,
  }
  // Loaded here alone, so that the commands that serve nothing start fast.
  const prepare = async () => (await import('../wiring/start-api.ts')).prepareApi(api)

  const signal = waitForSignal()
  const delay = signal.then(name => delayAfter(name, shutdownDelayMs))
  if (cluster.isWorker) return serveAsWorker(prepare, delay)
  if (options.migrate === true) await migrateStore(settings.DATABASE_URL)
  await besideAdmin(admin, log, async serves => {
    if (workers > 1) return runWorkers(workers, log, delay, serves)
    const { address, leave, stop } = await (await prepare()).listen()
    serves(address)
    log.info({ address }, 'listening')
    const delayMs = await delay
    leave()
    if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
    await keepServing(delayMs)
    await stop()
    log.info('stopped')
  })
}
