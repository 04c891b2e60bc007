/** Whether what brings records in still does: each stream's last success against the rhythm that `fatura sync` keeps. */
import { invoiceXpressIdentity } from '../invoicexpress/source-identity.ts'
import type { Stream } from '../store/store.ts'
import { billingStreams, documentStreams } from '../stream-names.ts'
import { stripeIdentity } from '../stripe/source-identity.ts'
import { openEvery, recentEvery, relistEvery, unsettledEvery } from '../sync/intervals.ts'
import { tellSpan } from './check-clock.ts'
import type { Reporter } from './findings.ts'

const minuteMs = 60_000
const invoices = billingStreams(stripeIdentity)
const documents = documentStreams(invoiceXpressIdentity)

/** From when on a success is stale: well after the next one was due, for a run takes its time too. */
const staleAfter: Record<string, number> = {
  [invoices.events]: 5 * minuteMs,
  [invoices.unsettled]: 2 * unsettledEvery,
  [documents.recent]: 2 * recentEvery,
  [documents.open]: 2 * openEvery,
  // A sweep of a million documents takes an hour and a half, and counts as of its beginning.
  [documents.all]: 4 * 60 * minuteMs,
}

/** From when on it fails: what no event told of stays wrong until then. To list ten million invoices takes 7 hours of it. */
const overdueAfter: Record<string, number> = { [invoices.relist]: 2 * relistEvery }

const startSync = 'Is fatura sync running? Start it with fatura sync, or fatura up.'

export function checkStreams(
  report: Reporter,
  streams: readonly Stream[],
  connected: { stripe: boolean; invoiceXpress: boolean },
  now: number,
): void {
  const expected = [
    ...(connected.stripe ? [invoices.backfill, invoices.events, invoices.relist] : []),
    ...(connected.invoiceXpress && connected.stripe ? [documents.all, documents.recent, documents.open] : []),
  ]
  const known = new Map(streams.map(stream => [stream.name, stream]))
  if (known.size === 0 && expected.length === 0)
    report.warn(
      'Streams',
      'nothing was synchronized or imported yet',
      'Connect Stripe and run fatura sync, or run fatura import FILE.',
    )
  for (const name of [...new Set([...expected, ...known.keys()])]) {
    const stream = known.get(name)
    if (stream === undefined) report.warn(`Stream ${name}`, 'never ran', startSync)
    else checkStream(report, stream, now)
  }
}

function checkStream(report: Reporter, stream: Stream, now: number): void {
  const { name, succeeded_at, failed_at, error } = stream
  const check = `Stream ${name}`
  const last = succeeded_at === null ? 'never' : `${tellSpan(now - succeeded_at)} ago`
  const limit = staleAfter[name]
  if (failed_at !== null)
    report.fail(
      check,
      `failed ${tellSpan(now - failed_at)} ago: ${error ?? 'the reason is not known'}; last success ${last}`,
      'It is tried again automatically while fatura sync runs. See the findings below about the system that it reads.',
    )
  else if (succeeded_at === null)
    report.warn(
      check,
      'running, and not finished yet',
      'Let fatura sync run; fatura status shows how far it is.',
    )
  else if (now - succeeded_at > (overdueAfter[name] ?? Number.POSITIVE_INFINITY))
    report.fail(
      check,
      `last success ${last}: overdue, and changes that no event told of may be missing`,
      'Let fatura sync run, or run fatura sync --once more often. To list everything now: fatura sync --once --full.',
    )
  else if (limit !== undefined && now - succeeded_at > limit)
    report.warn(check, `last success ${last}, later than it should be`, startSync)
  else report.ok(check, `last success ${last}`)
}
