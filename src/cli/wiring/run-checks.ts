/** The checks of `fatura doctor`, one after the other: each goes by what the ones before it found. */
import { checkClock } from '../../doctor/check-clock.ts'
import { checkAccounts, checkConnector } from '../../doctor/check-connector.ts'
import {
  checkCounters,
  checkDatabase,
  checkIntegrity,
  checkReadStore,
  readFreshness,
} from '../../doctor/check-database.ts'
import { checkInvoiceXpress, quickPace } from '../../doctor/check-invoicexpress.ts'
import { checkSample } from '../../doctor/check-sample.ts'
import { checkStreams } from '../../doctor/check-streams.ts'
import { checkStripe, describeKey } from '../../doctor/check-stripe.ts'
import { answerLimitMs, attempt, type Reporter } from '../../doctor/findings.ts'
import { checkDrift } from '../../drift/tell-drift.ts'
import { type InvoiceXpressOptions, isInvoiceXpressOwn } from '../../invoicexpress/client.ts'
import { createDocumentSource } from '../../invoicexpress/document-source.ts'
import {
  findDamage,
  hostsOf,
  openOperatorStore,
  openReadStore,
  openWriteStore,
  readFacts,
  splitAddresses,
} from '../../store/engines.ts'
import type { OperatorStore, WriteStore } from '../../store/store.ts'
import { createBillingSource } from '../../stripe/billing-source.ts'
import { isStripesOwn, type StripeOptions } from '../../stripe/client.ts'
import {
  invoiceXpressOf,
  invoiceXpressSettings,
  linkRulesOf,
  linkSettings,
  providerOf,
  providerSettings,
  stripeOf,
  stripeSettings,
} from '../settings/connections.ts'
import { checkSettings, type Options, readSettings } from '../settings/read-settings.ts'
import type { Setting, Settings } from '../settings/settings.ts'
import { CliError } from '../terminal/cli-error.ts'
import { createProgress, sayWaiting } from '../terminal/progress.ts'
import { accountsOf } from './open-connector.ts'

interface Connections {
  /** Null when it is not connected, or its settings are wrong. */
  stripe: StripeOptions | null
  invoiceXpress: InvoiceXpressOptions | null
  hasWebhookSecret: boolean
}

export interface Wanted {
  /** How many invoices to compare with both systems. */
  sample: number
  /** Whether to count again what is counted wrong. */
  repair: boolean
  /** Whether to hold a file's indexes against its tables, too. */
  deep: boolean
}

export async function runChecks(
  report: Reporter,
  options: Options,
  { sample, ...wanted }: Wanted,
): Promise<void> {
  const connections = checkConfiguration(report, options)
  const { stripe, invoiceXpress, hasWebhookSecret } = connections
  const store = await checkStore(report, options, connections, wanted)
  try {
    const payments = stripe && (await checkStripe(report, stripe, hasWebhookSecret))
    if (stripe !== null && payments !== null)
      checkClock(report, 'Stripe', payments.clock, !isStripesOwn(stripe.base))
    const invoicing = invoiceXpress && (await checkInvoiceXpress(report, invoiceXpress))
    if (invoiceXpress !== null && invoicing !== null)
      checkClock(report, 'InvoiceXpress', invoicing.clock, !isInvoiceXpressOwn(invoiceXpress.base))
    if (store !== null && stripe !== null && payments?.mayRead === true) {
      const source = createBillingSource(
        { ...stripe, timeoutMs: answerLimitMs },
        { ...quickPace, perSecond: 20 },
      )
      await checkAccounts(report, store, { ...accountsOf({ stripe, invoiceXpress }), source })
    }
    await compareSample(report, store, options, connections, sample, {
      payments: payments?.mayRead === true,
      documents: invoicing?.mayRead === true,
    })
  } finally {
    await store?.close()
  }
}

/** Every setting that is wrong has a line of its own; what is right needs only one. */
function checkConfiguration(report: Reporter, options: Options): Connections {
  const settings = checkSettings(options)
  for (const { setting, problem } of settings)
    if (problem !== null) report.fail(`Setting ${setting}`, problem.replace(/\.$/, ''), 'Correct it.')
  const right = settings.filter(({ problem }) => problem === null).map(({ setting }) => setting)
  report.ok('Settings', right.length === 0 ? 'none is set' : `well-formed: ${right.join(', ')}`)
  const read = <T>(readAll: () => T | null): T | null => {
    try {
      return readAll()
    } catch (error) {
      const { message } = error as Error
      // What is wrong with one setting alone was told before.
      if (settings.every(({ problem }) => problem !== message))
        report.fail('Settings', message.replace(/\.$/, ''), 'Correct it.')
      return null
    }
  }
  const isWrong = (name: Setting) =>
    settings.some(({ setting, problem }) => setting === name && problem !== null)
  const isAbsent = (name: Setting) => readRight(options, name) === null && !isWrong(name)
  const stripe = read(() => stripeOf(readSettings(options, stripeSettings)))
  const invoiceXpress = read(() =>
    invoiceXpressOf(readSettings(options, [...invoiceXpressSettings, 'INVOICEXPRESS_PDF_ORIGINS'])),
  )
  // Told when it is wrong; whether the provider answers is the API's to find out.
  read(() => providerOf(readSettings(options, providerSettings)))
  const secret = read(() => readSettings(options, ['STRIPE_WEBHOOK_SECRET']).STRIPE_WEBHOOK_SECRET)
  const hasWebhookSecret = secret !== null
  if (stripe !== null)
    report.ok('Stripe', `connected, ${isStripesOwn(stripe.base) ? 'at Stripe' : 'at a sandbox'}`)
  else if (isAbsent('STRIPE_API_KEY'))
    report.skip('Stripe', 'not connected', 'Set STRIPE_API_KEY to synchronize and to download PDFs.')
  if (hasWebhookSecret) report.ok('Stripe: webhook secret', 'set, and of the right form')
  if (invoiceXpress !== null)
    report.ok(
      'InvoiceXpress',
      `connected, ${isInvoiceXpressOwn(invoiceXpress.base) ? 'at InvoiceXpress' : 'at a sandbox'}`,
    )
  else if (isAbsent('INVOICEXPRESS_API_KEY'))
    report.skip(
      'InvoiceXpress',
      'not connected',
      'Set INVOICEXPRESS_ACCOUNT and INVOICEXPRESS_API_KEY for certified documents.',
    )
  checkMix(report, stripe, invoiceXpress)
  return { stripe, invoiceXpress, hasWebhookSecret }
}

/** A real key at a sandbox, or a sandbox beside a real system, is hardly meant. */
function checkMix(
  report: Reporter,
  stripe: StripeOptions | null,
  invoiceXpress: InvoiceXpressOptions | null,
): void {
  if (stripe !== null && describeKey(stripe.apiKey).mode === 'live' && !isStripesOwn(stripe.base))
    report.warn(
      'Setting STRIPE_API_BASE',
      'a live key is sent to an address that is not Stripe’s',
      'Remove STRIPE_API_BASE, or use a test key. Roll the live key if that address is not yours.',
    )
  if (
    stripe !== null &&
    invoiceXpress !== null &&
    isStripesOwn(stripe.base) !== isInvoiceXpressOwn(invoiceXpress.base)
  )
    report.warn(
      'Settings',
      'one of Stripe and InvoiceXpress is a sandbox, the other is not: their records cannot fit',
      'Remove STRIPE_API_BASE or INVOICEXPRESS_API_BASE, or set both.',
    )
}

/** Null when there is no store that could be read. Whoever gets it closes it. */
async function checkStore(
  report: Reporter,
  options: Options,
  { stripe, invoiceXpress }: Connections,
  { repair, deep }: Pick<Wanted, 'repair' | 'deep'>,
): Promise<OperatorStore | null> {
  const url = readRight(options, 'DATABASE_URL')
  const readUrl = readRight(options, 'DATABASE_READ_URL')
  const store =
    url !== null &&
    (await checkDatabase(report, () => readFacts(url))) &&
    (await checkIntegrity(report, isDeep => findDamage(url, isDeep), deep))
      ? await attempt(report, 'Database: opening', 'Correct DATABASE_URL, or repair the database.', () =>
          openOperatorStore(url),
        )
      : null
  if (readUrl !== null) {
    const syncedAt =
      store === null || url === null ? null : await readFreshness(() => openReadStore(url)).catch(() => null)
    const addresses = splitAddresses(readUrl)
    for (const one of addresses)
      await checkReadStore(
        report,
        {
          at: addresses.length === 1 ? null : hostsOf(one),
          readFacts: () => readFacts(one),
          openRead: () => openReadStore(one),
        },
        syncedAt,
      )
  }
  if (store === null || url === null) {
    report.skip('Streams', 'the database cannot be read')
    return null
  }
  const streams = await attempt(report, 'Streams', 'Look at the database first.', () => store.listStreams())
  const connected = { stripe: stripe !== null, invoiceXpress: invoiceXpress !== null }
  if (streams !== null) checkStreams(report, streams, connected, Date.now())
  await checkConnector(report, store)
  if (connected.stripe) await checkDrift(report, store)
  const progress = createProgress('invoices')
  const counters = { check: store.checkCounts, repair: repair ? repairCounters(url) : null }
  await checkCounters(report, counters, (invoices, of) =>
    progress.update('counted', invoices, of === null ? null : Math.min(1, invoices / of)),
  )
  progress.end()
  return store
}

/** To repair is all that doctor ever writes, and only when it is told to. */
function repairCounters(url: string): WriteStore['repairCounts'] {
  return async onProgress => {
    const store = await openWriteStore(url, { onWait: sayWaiting })
    try {
      return await store.repairCounts(onProgress)
    } finally {
      await store.close()
    }
  }
}

/** Null also when it is wrong, which a line has said by then. */
function readRight<K extends Setting>(options: Options, name: K): Settings[K] | null {
  try {
    return readSettings(options, [name])[name]
  } catch (error) {
    if (error instanceof CliError) return null
    throw error
  }
}

async function compareSample(
  report: Reporter,
  store: OperatorStore | null,
  options: Options,
  { stripe, invoiceXpress }: Connections,
  count: number,
  may: { payments: boolean; documents: boolean },
): Promise<void> {
  if (count === 0) return report.skip('Sample', 'not wanted')
  if (store === null) return report.skip('Sample', 'the database cannot be read')
  if (stripe === null || !may.payments) return report.skip('Sample', 'Stripe cannot be read')
  if (invoiceXpress !== null && !may.documents)
    report.skip('Sample: documents', 'InvoiceXpress cannot be read; the invoices alone are compared')
  const wrong = checkSettings(options).filter(
    ({ setting, problem }) => problem !== null && setting.startsWith('LINK_'),
  )
  if (wrong.length > 0)
    return report.fail(
      'Sample',
      `${wrong.map(({ setting }) => setting).join(', ')} cannot be used`,
      'Correct the settings first.',
    )
  const given = readSettings(options, [...linkSettings, 'LINK_METADATA_KEYS'])
  const quick = { timeoutMs: answerLimitMs }
  await checkSample(report, {
    store,
    payments: createBillingSource(
      { ...stripe, ...quick },
      { ...quickPace, perSecond: 20 },
      given.LINK_METADATA_KEYS,
    ),
    documents:
      invoiceXpress !== null && may.documents
        ? createDocumentSource({ ...invoiceXpress, ...quick }, quickPace)
        : null,
    rules: linkRulesOf(given, invoiceXpress !== null),
    count,
  })
}
