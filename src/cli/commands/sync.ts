import { Command } from 'commander'
import { SourceError } from '../../sources.ts'
import { prepareStore } from '../../store/engines.ts'
import {
  adminOf,
  invoiceXpressOf,
  invoiceXpressSettings,
  linkRulesOf,
  linkSettings,
  stripeOf,
  stripeSettings,
} from '../settings/connections.ts'
import { addSettings } from '../settings/options.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import type { Settings } from '../settings/settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createLog, logWaiting } from '../terminal/log.ts'
import { createProgress } from '../terminal/progress.ts'
import { besideAdmin } from '../wiring/beside-admin.ts'
import { leave, unlessAborted, waitForSignal } from '../wiring/signals.ts'

const used = [
  'DATABASE_URL',
  'LOG_LEVEL',
  'HOST',
  'ADMIN_PORT',
  'ADMIN_HOST',
  'ADMIN_TOKEN',
  ...stripeSettings,
  'STRIPE_WEBHOOK_SECRET',
  ...invoiceXpressSettings,
  ...linkSettings,
  'LINK_METADATA_KEYS',
] as const

export function syncCommand(): Command {
  return addSettings(
    new Command('sync').description(
      'Bring invoices from Stripe and their documents from InvoiceXpress into the store, and keep them up to date.',
    ),
    used,
  )
    .option('--once', 'stop when everything is synchronized; without it, continue until a signal')
    .option('--full', 'first list the whole account again: finds changes that no event reported')
    .option('--webhooks <port>', "also receive Stripe's webhooks on this port (needs STRIPE_WEBHOOK_SECRET)")
    .option(
      '--no-wait',
      'with --once: stop immediately, with exit code 1, when another process synchronizes this store',
    )
    .option(
      '--let-through',
      'apply, this once, the changes that the deletion guard holds back: many drafts or documents that disappeared at once',
    )
    .addHelpText(
      'after',
      `
The key in STRIPE_API_KEY must be allowed to read invoices, customers, events and tax rates, and nothing else. A run that was
stopped continues where it was. Without INVOICEXPRESS_API_KEY the documents stay as they are. "fatura status" shows the
progress of each stream.`,
    )
    .action(runSync)
}

interface SyncFlags extends Options {
  once?: true
  full?: true
  webhooks?: string
  wait: boolean
  letThrough?: true
}

async function runSync(options: SyncFlags): Promise<void> {
  const settings = readSettings(options, used)
  const { DATABASE_URL: url, LINK_METADATA_KEYS: keys } = settings
  const stripe = stripeOf(settings)
  if (stripe === null) throw new CliError('Set STRIPE_API_KEY to a Stripe key that may read invoices.')
  const invoiceXpress = invoiceXpressOf(settings)
  const rules = linkRulesOf(settings, invoiceXpress !== null)
  const webhooks = readWebhooks(options.webhooks, settings)
  if (options.once === true && webhooks !== null) throw new CliError('Use --once or --webhooks, not both.')
  if (options.once !== true && !options.wait) throw new CliError('--no-wait works only with --once.')
  const log = createLog(settings.LOG_LEVEL)
  const stop = new AbortController()
  void waitForSignal().then(() => stop.abort())
  await unlessAborted(stop.signal, prepareStore(url, { onWait: logWaiting(log), signal: stop.signal }))
  const { syncOn, syncOnce } = await import('../wiring/start-sync.ts')
  const common = {
    url,
    stripe,
    invoiceXpress,
    rules,
    keys,
    webhooks,
    log,
    letThrough: options.letThrough === true,
    signal: stop.signal,
    isFull: options.full === true,
  }
  if (options.once !== true) {
    const store = { readUrl: url, operatorUrl: url, hasDocuments: invoiceXpress !== null }
    // It makes no links: those are for whoever serves them.
    const admin = adminOf({ ...settings, LINK_KEY: null, PUBLIC_URL: null })
    await besideAdmin(admin, store, log, async beside => {
      await beside.count({ serves: null, synchronizes: true })
      beside.runs()
      await syncOn(common)
    })
    return leave()
  }
  const progress = createProgress('invoices')
  const documents = createProgress('documents')
  try {
    await syncOnce({
      ...common,
      wait: options.wait,
      onProgress: progress.update,
      onDocuments: count => documents.update('read', count),
    })
  } catch (error) {
    if (stop.signal.aborted) {
      leave()
      throw new CliError('Stopped before the end; the next run continues from there.')
    }
    if (error instanceof SourceError)
      throw new CliError(`${error.message}. The next run continues from there.`)
    throw error
  } finally {
    progress.end()
    documents.end()
  }
}

export function readWebhooks(
  port: string | undefined,
  { HOST: host, STRIPE_WEBHOOK_SECRET: secret }: Pick<Settings, 'HOST' | 'STRIPE_WEBHOOK_SECRET'>,
) {
  if (port === undefined) return null
  if (!/^\d+$/.test(port) || Number(port) > 65_535)
    throw new CliError(`--webhooks must be a port from 0 to 65535, not '${port}'.`)
  if (secret === null)
    throw new CliError(
      'STRIPE_WEBHOOK_SECRET must be set with --webhooks: to the secret that Stripe shows, which begins with whsec_.',
    )
  return { host, port: Number(port), secret }
}
