/** The last success of each stream against the intervals of `fatura sync`. */
import { invoiceXpressIdentity } from '../invoicexpress/source-identity.ts'
import type { Stream } from '../store/store.ts'
import { billingStreams, documentStreams } from '../stream-names.ts'
import { stripeIdentity } from '../stripe/source-identity.ts'
import { everyMs } from '../sync/intervals.ts'
import { formatSpan } from './check-clock.ts'
import type { Report } from './findings.ts'

const minuteMs = 60_000
const invoices = billingStreams(stripeIdentity)
const documents = documentStreams(invoiceXpressIdentity)

/** Age of a stale success: well beyond the interval, for a run takes its time too. */
const staleAfterMs: Record<string, number> = {
  [invoices.events]: 5 * minuteMs,
  [invoices.unsettled]: 2 * everyMs.unsettled,
  [documents.recent]: 2 * everyMs.recent,
  [documents.open]: 2 * everyMs.open,
  // A sweep of a million documents takes an hour and a half, and counts as of its beginning.
  [documents.all]: 4 * 60 * minuteMs,
}

/** Age of a failure: a change without an event stays unseen until the next list. Ten million invoices take 7 hours of it. */
const overdueAfterMs: Record<string, number> = { [invoices.relist]: 2 * everyMs.relist }

const startSync = 'Is fatura sync running? Start it with fatura sync, or fatura up.'

export function checkStreams(
  report: Report,
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
    report('Streams').warn(
      'nothing was synchronized or imported yet',
      'Connect Stripe and run fatura sync, or run fatura import FILE.',
    )
  for (const name of new Set([...expected, ...known.keys()])) {
    const stream = known.get(name)
    if (stream === undefined) report(`Stream ${name}`).warn('never ran', startSync)
    else checkStream(report, stream, now)
  }
}

function checkStream(report: Report, { name, succeeded_at, failed_at, error }: Stream, now: number): void {
  const check = report(`Stream ${name}`)
  const age = now - (succeeded_at ?? 0)
  const last = succeeded_at === null ? 'never' : `${formatSpan(age)} ago`
  if (failed_at !== null)
    check.fail(
      `failed ${formatSpan(now - failed_at)} ago: ${error ?? 'the reason is not known'}; last success ${last}`,
      'It is tried again automatically while fatura sync runs. See the findings below about the system that it reads.',
    )
  else if (succeeded_at === null)
    check.warn('running, and not finished yet', 'Let fatura sync run; fatura status shows its progress.')
  else if (age > (overdueAfterMs[name] ?? Number.POSITIVE_INFINITY))
    check.fail(
      `last success ${last}: overdue, and changes without an event may be missing`,
      'Let fatura sync run, or run fatura sync --once more often. To list everything now: fatura sync --once --full.',
    )
  else if (age > (staleAfterMs[name] ?? Number.POSITIVE_INFINITY))
    check.warn(`last success ${last}, later than it should be`, startSync)
  else check.ok(`last success ${last}`)
}
