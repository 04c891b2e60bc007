import { migrateStore } from '../../store/engines.ts'
import { adminOf, apiOf, syncOf } from '../settings/connections.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { settingsOf } from '../settings/settings.ts'
import { withAdminPort } from '../start/admin-channel.ts'
import { delayAfter, leave, unlessAborted, waitForSignal } from '../start/signals.ts'
import { syncInThread } from '../start/sync-thread.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog, logWaiting } from '../terminal/log.ts'
import { webhooksFlag } from './sync.ts'

const used = settingsOf('up')

export const upCommand = () =>
  new SettingsCommand('up')
    .description('Serve the API and synchronize in one process. The store is created or migrated first.')
    .settings(used)
    .option(...webhooksFlag)
    .action(up)

async function up(options: { webhooks?: string } & Options): Promise<void> {
  const settings = readSettings(options, used)
  const served = apiOf(settings)
  const { stripe, ...synchronized } = syncOf(settings, options.webhooks)
  if (stripe === null && synchronized.webhooks !== null)
    throw new CliError(
      '--webhooks needs STRIPE_API_KEY, because changed invoices are read with it. Set STRIPE_API_KEY.',
    )
  const { url, invoiceXpress } = synchronized
  const admin = adminOf(settings)
  const logLevel = settings.LOG_LEVEL
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
  await withAdminPort(admin, store, log, async channel => {
    const { startApi, serveUntil } = await import('../start/start-api.ts')
    const api = await startApi({ ...served, log })
    channel.serves(api)
    channel.count({ serves: api })
    const stopped = serveUntil(delay, api, log)
    if (stripe === null)
      log.warn('STRIPE_API_KEY is not set, so stored invoices are served and nothing is synchronized')
    else {
      const options = { ...synchronized, stripe, logLevel, isMeasured: admin !== null }
      await syncInThread(options, stop.signal, channel).catch(async error => {
        await api.stop()
        throw error
      })
    }
    await stopped
  })
  end()

  function end(): void {
    log.info('stopped')
    leave()
  }
}
