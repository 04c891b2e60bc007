import cluster from 'node:cluster'
import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import {
  readDatabaseUrl,
  readHost,
  readInvoiceXpress,
  readLogLevel,
  readPort,
  readRateLimit,
  readReadUrl,
  readShutdownDelay,
  readStripe,
  readWorkers,
} from '../settings/config.ts'
import { addSettings, invoiceXpressSettings, readFlags, stripeSettings } from '../settings/options.ts'
import { createLog } from '../terminal/log.ts'
import { keepServing } from '../wiring/close-connections.ts'
import { delayAfter, waitForSignal } from '../wiring/signals.ts'
import { runWorkers, serveAsWorker } from '../wiring/workers.ts'

export function serveCommand(): Command {
  return addSettings(
    new Command('serve').description('Serve the API. It reads the store and never writes to it.'),
    'DATABASE_URL',
    'DATABASE_READ_URL',
    'HOST',
    'PORT',
    'RATE_LIMIT',
    'LOG_LEVEL',
    'WORKERS',
    'SHUTDOWN_DELAY',
    ...stripeSettings,
    ...invoiceXpressSettings,
    'INVOICEXPRESS_PDF_ORIGINS',
  )
    .option('--migrate', 'first create the store, or bring its schema up to date')
    .action(serve)
}

async function serve(options: Record<string, unknown>): Promise<void> {
  const flags = readFlags(options)
  const log = createLog(readLogLevel(flags))
  const workers = readWorkers(flags)
  const api = {
    url: readReadUrl(flags),
    host: readHost(flags),
    port: readPort(flags),
    rateLimit: readRateLimit(flags),
    stripe: readStripe(),
    invoiceXpress: readInvoiceXpress(),
    workers,
    log,
  }
  // Loaded here alone, so that the commands that serve nothing start fast.
  const prepare = async () => (await import('../wiring/start-api.ts')).prepareApi(api)

  const shutdownDelayMs = readShutdownDelay(flags)
  const signal = waitForSignal()
  const delay = signal.then(name => delayAfter(name, shutdownDelayMs))
  if (cluster.isWorker) return serveAsWorker(prepare, delay)
  if (options.migrate === true) await migrateStore(readDatabaseUrl(flags))
  if (workers > 1) return runWorkers(workers, log, delay)
  const { address, leave, stop } = await (await prepare()).listen()
  log.info({ address }, 'listening')
  const delayMs = await delay
  leave()
  if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
  await keepServing(delayMs)
  await stop()
  log.info('stopped')
}
