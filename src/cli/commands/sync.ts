import { SourceError } from '../../sources/source.ts'
import { prepareStore } from '../../store/engines.ts'
import { adminOf, syncOf } from '../settings/connections.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { settingsOf } from '../settings/settings.ts'
import { withAdminPort } from '../start/admin-channel.ts'
import { leave, unlessAborted, waitForSignal } from '../start/signals.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog, logWaiting } from '../terminal/log.ts'
import { createProgress } from '../terminal/progress.ts'

const used = settingsOf('sync')

export const webhooksFlag = [
  '--webhooks <port>',
  "also receive Stripe's webhooks on this port (needs the setting STRIPE_WEBHOOK_SECRET)",
] as const

export const syncCommand = () =>
  new SettingsCommand('sync')
    .description(
      'Bring invoices from Stripe and their documents from InvoiceXpress into the store, and keep them up to date.',
    )
    .settings(used)
    .option(
      '--once',
      'stop when everything is synchronized (without this flag, the command runs until it gets a signal)',
    )
    .option('--full', 'read all invoices of the account again first, to find changes that no event reported')
    .option(...webhooksFlag)
    .option(
      '--no-wait',
      'with --once: if another process synchronizes this store, stop within seconds with exit code 1',
    )
    .option(
      '--let-through',
      'apply the changes that the deletion guard holds back now (it holds them back when many drafts or documents disappear at once)',
    )
    .notes(`The key in STRIPE_API_KEY needs permission to read invoices, customers, events and tax rates. It needs no other permission.
A run that was stopped continues where it was. Without INVOICEXPRESS_API_KEY, documents are not synchronized. "fatura status" shows the progress of each stream.`)
    .action(runSync)

async function runSync(options: { webhooks?: string } & Options): Promise<void> {
  const settings = readSettings(options, used)
  const { stripe, ...synchronized } = syncOf(settings, options.webhooks)
  if (stripe === null) throw new CliError('Set STRIPE_API_KEY to a Stripe key that may read invoices.')
  const { url, invoiceXpress, webhooks } = synchronized
  if (options.once === true && webhooks !== null) throw new CliError('Use --once or --webhooks, not both.')
  if (options.once !== true && !options.wait)
    throw new CliError('--no-wait can only be used together with --once.')
  const log = createLog(settings.LOG_LEVEL)
  const stop = new AbortController()
  void waitForSignal().then(() => stop.abort())
  await unlessAborted(stop.signal, prepareStore(url, { onWait: logWaiting(log), signal: stop.signal }))
  const common = {
    ...{ ...synchronized, stripe, log, signal: stop.signal },
    letThrough: options.letThrough === true,
    isFull: options.full === true,
  }
  if (options.once === true) return runOnce({ ...common, wait: options.wait === true })
  const store = { readUrl: url, operatorUrl: url, hasDocuments: invoiceXpress !== null }
  // `fatura sync` serves no customer links, so its admin port does not sign any.
  const admin = adminOf({ ...settings, CUSTOMER_LINK_KEY: null, PUBLIC_URL: null })
  const { syncOn } = await import('../start/start-sync.ts')
  await withAdminPort(admin, store, log, async channel => {
    channel.count({ serves: null })
    channel.runs()
    await syncOn(common)
  })
  leave()
}

type OnceOptions = Parameters<typeof import('../start/start-sync.ts')['syncOnce']>[0]

async function runOnce(options: Omit<OnceOptions, 'onProgress' | 'onDocuments'>): Promise<void> {
  const { syncOnce } = await import('../start/start-sync.ts')
  const progress = createProgress('invoices')
  const documents = createProgress('documents')
  try {
    await syncOnce({
      ...options,
      onProgress: progress.update,
      onDocuments: count => documents.update('read', count),
    })
  } catch (error) {
    if (options.signal.aborted) {
      leave()
      throw new CliError('Stopped before everything was synchronized. The next run continues from there.')
    }
    if (error instanceof SourceError)
      throw new CliError(`${error.message}. The next run continues from there.`)
    throw error
  } finally {
    progress.end()
    documents.end()
  }
}
