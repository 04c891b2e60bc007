import cluster from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { migrateStore } from '../../store/engines.ts'
import {
  adminOf,
  adminSettings,
  apiOf,
  apiSettings,
  invoiceXpressSettings,
  stripeSettings,
} from '../settings/connections.ts'
import { addSettings } from '../settings/options.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { createLog } from '../terminal/log.ts'
import { besideAdmin } from '../wiring/beside-admin.ts'
import { delayAfter, waitForSignal } from '../wiring/signals.ts'
import { runWorkers, serveAsWorker } from '../wiring/workers.ts'

const used = [
  ...apiSettings,
  'WORKERS',
  'SHUTDOWN_DELAY',
  'READY_MAX_LAG',
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
  const api = { ...apiOf(settings), workers, log }
  // Loaded here alone, so that the commands that serve nothing start fast.
  const prepare = async () => (await import('../wiring/start-api.ts')).prepareApi(api)

  const signal = waitForSignal()
  const delay = signal.then(name => delayAfter(name, shutdownDelayMs))
  if (cluster.isWorker) return serveAsWorker(prepare, delay, admin !== null)
  if (options.migrate === true) await migrateStore(settings.DATABASE_URL)
  // The role that serves may call the API's functions, and read nothing else.
  const store = { readUrl: api.url, operatorUrl: null, hasDocuments: api.invoiceXpress !== null }
  await besideAdmin(admin, store, log, async beside => {
    if (workers > 1) return runWorkers(workers, log, delay, beside)
    const running = await (await prepare()).listen()
    const { address, leave, stop } = running
    beside.serves(address)
    await beside.count({ serves: running, synchronizes: false })
    log.info({ address }, 'listening')
    const delayMs = await delay
    leave()
    if (delayMs > 0) log.info({ delay_ms: delayMs }, 'stopping')
    await sleep(delayMs, undefined, { ref: false })
    await stop()
    log.info('stopped')
  })
}
