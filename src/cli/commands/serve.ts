import { migrateStore } from '../../store/engines.ts'
import { adminOf, apiOf } from '../settings/connections.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { settingsOf } from '../settings/settings.ts'
import { withAdminPort } from '../start/admin-channel.ts'
import { delayAfter, unlessAborted, waitForSignal } from '../start/signals.ts'
import { createLog, logWaiting } from '../terminal/log.ts'

const used = settingsOf('serve')

export const serveCommand = () =>
  new SettingsCommand('serve')
    .description('Serve the API. It reads the store and never writes to it.')
    .settings(used)
    .option('--migrate', 'create the store or bring its schema up to date before serving')
    .action(serve)

async function serve(options: { migrate?: true } & Options): Promise<void> {
  const settings = readSettings(options, used)
  const admin = adminOf(settings)
  const log = createLog(settings.LOG_LEVEL)
  const api = { ...apiOf(settings), sharesPort: settings.REUSE_PORT, log }

  const stop = new AbortController()
  const delay = waitForSignal().then(signal => {
    stop.abort()
    return delayAfter(signal, settings.SHUTDOWN_DELAY)
  })
  if (options.migrate === true) {
    const wait = { onWait: logWaiting(log), signal: stop.signal }
    await unlessAborted(stop.signal, migrateStore(settings.DATABASE_URL, undefined, wait))
    if (stop.signal.aborted) return log.info('stopped')
  }
  // `operatorUrl` is null, because the database role of `serve` may only call the API's functions.
  const store = { readUrl: api.url, operatorUrl: null, hasDocuments: api.invoiceXpress !== null }
  await withAdminPort(admin, store, log, async channel => {
    // The HTTP server is loaded only here, so that other commands start fast.
    const { startApi, serveUntil } = await import('../start/start-api.ts')
    const running = await startApi(api)
    channel.serves(running)
    channel.count({ serves: running })
    await serveUntil(delay, running, log)
    log.info('stopped')
  })
}
