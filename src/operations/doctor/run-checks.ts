/** Runs the checks of `fatura doctor` one after the other. Later checks depend on earlier findings. */

import type { LinkRules } from '../../domain/link/link.ts'
import type { InvoiceXpressOptions } from '../../sources/invoicexpress/client.ts'
import { createDocumentSource } from '../../sources/invoicexpress/document-source.ts'
import { invoicingAccountOf } from '../../sources/invoicexpress/source-identity.ts'
import { SourceError } from '../../sources/source.ts'
import { createBillingSource } from '../../sources/stripe/billing-source.ts'
import type { StripeOptions } from '../../sources/stripe/client.ts'
import { defaultKeys, type MetadataKeys } from '../../sources/stripe/map-claim.ts'
import { openOperatorStore, openWriteStore, useStore } from '../../store/engines.ts'
import type { OnRecounted, OperatorStore } from '../../store/store.ts'
import { type Compared, compareWithSources } from '../compare-with-sources.ts'
import { checkAccounts, checkConnector, checkStreams, checkWebhooks } from './check-connector.ts'
import { checkCorrections } from './check-corrections.ts'
import {
  checkCounters,
  checkDatabase,
  checkIntegrity,
  checkReadStore,
  readFreshness,
} from './check-database.ts'
import { checkInvoiceXpress, quickPace } from './check-invoicexpress.ts'
import { checkStripe } from './check-stripe.ts'
import { answerLimitMs, explain, type Report, within } from './findings.ts'

/** The settings to check. A setting is null when it is not set or is wrong. */
export interface Checked {
  url: string | null
  readUrl: string | null
  stripe: StripeOptions | null
  invoiceXpress: InvoiceXpressOptions | null
  hasWebhookSecret: boolean
  linking: { rules: LinkRules; keys: MetadataKeys } | null
}

export interface Wanted {
  sample: number
  /** Whether wrong counters are replaced. No other check writes to the store. */
  repair: boolean
  /** Whether the indexes of a SQLite file are compared with its tables. */
  deep: boolean
  onCounted: OnRecounted
  onWait(path: string): void
}

export async function runChecks(report: Report, checked: Checked, wanted: Wanted): Promise<void> {
  const { stripe, invoiceXpress } = checked
  const { store, isFirstRun } = await checkStore(report, checked, wanted)
  try {
    const readable = {
      stripe: stripe && (await checkStripe(report, stripe, checked.hasWebhookSecret)) ? stripe : null,
      invoiceXpress:
        invoiceXpress && (await checkInvoiceXpress(report, invoiceXpress)) ? invoiceXpress : null,
    }
    if (store !== null && readable.stripe !== null)
      await checkAccounts(report, store, {
        source: openBilling(readable.stripe, defaultKeys),
        invoicing: invoiceXpress && invoicingAccountOf(invoiceXpress),
      })
    if (isFirstRun && wanted.sample > 0)
      report('Sample').skip('the first run is under way, and records that it has not read would differ')
    else await compareSample(report, store, checked, readable, wanted.sample)
  } finally {
    await store?.close()
  }
}

const quick = { timeoutMs: answerLimitMs }
const lookFirst = 'First correct the problems that the database checks show.'

function openBilling(stripe: StripeOptions, keys: MetadataKeys) {
  return createBillingSource({ ...stripe, ...quick }, keys, { ...quickPace, perSecond: 20 })
}

/** `store` is null when the store could not be read. The caller has to close the store. */
async function checkStore(
  report: Report,
  { url, readUrl, stripe, invoiceXpress }: Checked,
  { repair, deep, onCounted, onWait }: Wanted,
): Promise<{ store: OperatorStore | null; isFirstRun: boolean }> {
  const isReadable =
    url !== null && (await checkDatabase(report, url)) && (await checkIntegrity(report, url, deep))
  const next = 'Correct DATABASE_URL, or repair the database.'
  const store = isReadable
    ? await report('Database: opening').attempt(next, () => openOperatorStore(url))
    : null
  if (readUrl !== null) {
    const syncedAt = store === null || url === null ? null : await readFreshness(url).catch(() => null)
    await checkReadStore(report, readUrl, syncedAt)
  }
  if (store === null || url === null) {
    report('Streams').skip('the database cannot be read')
    return { store: null, isFirstRun: false }
  }
  const streams = await report('Streams').attempt(lookFirst, () => store.listStreams())
  const connected = { stripe: stripe !== null, invoiceXpress: invoiceXpress !== null }
  const { isFirstRun } = streams === null ? { isFirstRun: false } : checkStreams(report, streams, connected)
  await checkConnector(report, store)
  const webhooks = await report('Outgoing webhooks').attempt(lookFirst, async () => {
    const all = await store.listWebhooks()
    return { all, end: (await store.readChanges(null, null, 1))?.next ?? 0 }
  })
  if (webhooks !== null) checkWebhooks(report, webhooks.all, webhooks.end)
  if (connected.stripe) await checkCorrections(report, store)
  const count = repair
    ? () => useStore(openWriteStore(url, { onWait }), writer => writer.repairCounts(onCounted))
    : () => store.checkCounts(onCounted)
  await checkCounters(report, count, repair)
  return { store, isFirstRun }
}

async function compareSample(
  report: Report,
  store: OperatorStore | null,
  { invoiceXpress, linking }: Checked,
  readable: Pick<Checked, 'stripe' | 'invoiceXpress'>,
  count: number,
): Promise<void> {
  const sample = report('Sample')
  if (count === 0) return sample.skip('not asked for')
  if (store === null) return sample.skip('the database cannot be read')
  if (readable.stripe === null) return sample.skip('Stripe cannot be read')
  if (invoiceXpress !== null && readable.invoiceXpress === null)
    report('Sample: documents').skip('InvoiceXpress cannot be read, so only the invoices are compared')
  if (linking === null)
    return sample.fail('a setting for the documents cannot be used', 'Correct the settings first.')
  await checkSample(report, {
    store,
    payments: openBilling(readable.stripe, linking.keys),
    documents:
      readable.invoiceXpress && createDocumentSource({ ...readable.invoiceXpress, ...quick }, quickPace),
    rules: linking.rules,
    count,
  })
}

const invoiceLimitMs = 15_000
const sampleLimitMs = 60_000
/** After this number of failures a system is considered down, and the sample ends. */
const maxFailures = 2

const listAgain =
  'Run "fatura sync --once --full" to read everything again, then run "fatura doctor" again. An invoice that changed in the last minute may differ. If a difference stays, report it as a bug.'

export async function checkSample(
  report: Report,
  options: Compared & { store: Pick<OperatorStore, 'drawInvoices'>; count: number },
): Promise<void> {
  const sample = report('Sample')
  let [compared, differing, imported, failures] = [0, 0, 0, 0]
  const keys = await sample.attempt(lookFirst, () => options.store.drawInvoices(options.count), sampleLimitMs)
  if (keys === null) return
  if (keys.length === 0) return sample.skip('there are no invoices in the store')
  const until = Date.now() + sampleLimitMs
  for (const [index, key] of keys.entries()) {
    if (failures >= maxFailures || Date.now() > until) break
    report(`Sample ${index + 1} of ${keys.length}`).begin()
    const invoice = report(`Sample: ${key.id}`)
    try {
      const differences = await within(invoiceLimitMs, () => compareWithSources(options, key))
      if (differences === null) imported++
      else compared++
      if (differences !== null && differences.length > 0) differing++
      for (const { field, stored, now } of differences ?? [])
        invoice.fail(`${field}: ${stored} → ${now}`, listAgain)
    } catch (error) {
      failures += error instanceof SourceError ? 1 : maxFailures
      invoice.fail(explain(error), 'Try again.')
    }
  }
  const skipped = imported === 0 ? '' : `; ${imported} were imported, not read from Stripe, and are left out`
  const where = options.documents === null ? 'only Stripe' : 'both systems'
  const what = `${compared} of ${keys.length} sampled invoices compared with ${where}`
  if (compared === 0) sample.skip(`nothing could be compared${skipped}`)
  else if (differing === 0) sample.ok(`${what}: no difference${skipped}`)
  else sample.warn(`${what}: ${differing} differ${differing === 1 ? 's' : ''}${skipped}`, listAgain)
}
