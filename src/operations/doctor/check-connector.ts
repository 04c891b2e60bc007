/** Checks the streams, the bound accounts, the process that synchronizes, refused and set-aside records, and outgoing webhooks. */
import { knownSources } from '../../sources/known-sources.ts'
import { billingStreams, documentStreams } from '../../sources/stream-names.ts'
import type { OutgoingWebhook } from '../../store/change-store.ts'
import type { OperatorStore, Stream } from '../../store/store.ts'
import { type Accounts, compareAccounts, formatAccount } from '../../sync/accounts.ts'
import { advice, formatHeld } from '../../sync/deletion-guard.ts'
import { formatRefused, type Refused, readState } from '../../sync/read-state.ts'
import { everyMs } from '../../sync/schedule.ts'
import { formatSpan } from './check-clock.ts'
import type { Report } from './findings.ts'

const minuteMs = 60_000
const invoices = billingStreams(knownSources.billing)
const documents = documentStreams(knownSources.documents)

/** Ages above which a success is reported as old. The ages exceed the intervals, because a run takes time as well. */
const staleAfterMs: Record<string, number> = {
  [invoices.events]: 5 * minuteMs,
  [invoices.unsettled]: 2 * everyMs.unsettled,
  [documents.recent]: 2 * everyMs.recent,
  [documents.open]: 2 * everyMs.open,
  // A sweep of a million documents takes an hour and a half, and its success counts from its start.
  [documents.all]: 4 * 60 * minuteMs,
}

/**
 * Ages above which an old success is an error. Only the relist finds changes without an event. Listing ten million invoices takes 7 hours.
 */
const overdueAfterMs: Record<string, number> = { [invoices.relist]: 2 * everyMs.relist }

const startSync = 'Is fatura sync running? Start it with fatura sync, or fatura up.'

const readBy = {
  ...byName(invoices, {
    backfill: 'all invoices',
    relist: 'all invoices once more',
    events: 'events',
    unsettled: 'invoices that may change',
  }),
  ...byName(documents, { all: 'all documents', recent: 'recent documents', open: 'open documents' }),
}

function byName<K extends string>(
  names: Record<K, string>,
  words: Record<K, string>,
): Record<string, string> {
  return Object.fromEntries((Object.keys(names) as K[]).map(kind => [names[kind], words[kind]]))
}

/** Streams that must have succeeded before the store can be compared with both systems. */
const readsAll = [invoices.backfill, documents.all]

/** Reports each stream. Until the first run has ended, the store is expected to differ from both systems. */
export function checkStreams(
  report: Report,
  streams: readonly Stream[],
  connected: { stripe: boolean; invoiceXpress: boolean },
): { isFirstRun: boolean } {
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
  const hasSucceeded = (name: string) => known.get(name)?.succeeded_at != null
  const isFirstRun = expected.some(name => readsAll.includes(name) && !hasSucceeded(name))
  if (isFirstRun) reportFirstRun(report, expected, hasSucceeded)
  for (const name of new Set([...expected, ...known.keys()])) {
    const stream = known.get(name)
    const isReported = isFirstRun && !hasSucceeded(name) && (stream?.failed_at ?? null) === null
    if (isReported) continue
    if (stream === undefined) report(`Stream ${name}`).warn('never ran', startSync)
    else checkStream(report, stream)
  }
  return { isFirstRun }
}

function reportFirstRun(
  report: Report,
  expected: readonly string[],
  hasSucceeded: (name: string) => boolean,
): void {
  const list = (names: readonly string[]) => names.map(name => readBy[name] ?? name).join(', ') || 'nothing'
  const [read, remaining] = [expected.filter(hasSucceeded), expected.filter(name => !hasSucceeded(name))]
  report('First run').warn(
    `under way: read are ${list(read)}; not yet read to the end are ${list(remaining)}`,
    `Let it end, and run this again; fatura status shows its progress. ${startSync}`,
  )
}

/** Tolerance for moments that another process stored, possibly by another clock. */
const clockTolerance = 5 * 60_000

function checkStream(report: Report, { name, succeeded_at, failed_at, error }: Stream): void {
  const check = report(`Stream ${name}`)
  const now = Date.now()
  const age = now - (succeeded_at ?? 0)
  const last = succeeded_at === null ? 'never' : `${formatSpan(age)} ago`
  if (failed_at !== null)
    check.fail(
      `failed ${formatSpan(now - failed_at)} ago: ${error ?? 'the reason is not known'}; last success ${last}`,
      'It is tried again automatically while fatura sync runs. See the findings below about the system that it reads.',
    )
  else if (succeeded_at === null)
    check.warn('running, and not finished yet', 'Let fatura sync run; fatura status shows its progress.')
  else if (age < -clockTolerance)
    check.warn(
      `last success ${formatSpan(-age)} in the future: a clock was ahead when it was stored, or this one is behind`,
      'Let NTP or chrony set the clock of this machine. The next success replaces the moment.',
    )
  else if (age > (overdueAfterMs[name] ?? Number.POSITIVE_INFINITY))
    check.fail(
      `last success ${last}: overdue, and changes without an event may be missing`,
      'Let fatura sync run, or run fatura sync --once more often. To list everything now: fatura sync --once --full.',
    )
  else if (age > (staleAfterMs[name] ?? Number.POSITIVE_INFINITY))
    check.warn(`last success ${last}, later than it should be`, startSync)
  else check.ok(`last success ${last}`)
}

export async function checkConnector(report: Report, store: OperatorStore): Promise<void> {
  const connector = report('Connector')
  const state = await connector.attempt('Look at the database first.', () => readState(store))
  if (state === null) return
  const { lease, setAside, refused, held } = state
  connector.ok(`${lease.holder ?? 'no process'} synchronizes this store`)
  const heldBack = formatHeld(held)
  if (heldBack !== null)
    report('Deletion guard').fail(`holds back changes that look wrong: ${heldBack}`, `${advice}.`)
  const [newest] = setAside.newest
  if (newest !== undefined)
    report('Set aside').warn(
      `${setAside.count} records are set aside; the newest is ${newest.system} ${newest.kind} ${newest.id}: ${newest.reason}`,
      'They are tried again automatically. See fatura status. If they stay, correct them in the other system, or report a bug; those that wait need all nodes of the database.',
    )
  const format = (kind: Refused['kind']) => refused.filter(each => each.kind === kind).map(formatRefused)
  const [outdated, unstored] = [format('outdated'), format('refused')]
  if (outdated.length > 0)
    report('Out of date').fail(
      `invoices are shown as they were before, because what they are now is refused; ${outdated.join('; ')}`,
      'Look at them at Stripe. If many are not found any more, check the key and its account. A status that is not known may be known to a newer version of Fatura.',
    )
  if (unstored.length > 0)
    report('Refused').warn(
      `invoices are not stored; ${unstored.join('; ')}`,
      'Look at them at Stripe. Only invoices of customers are shown; a status that is not known may be known to a newer version of Fatura.',
    )
}

/** Compares the accounts in the same way as `fatura sync` at its start. */
export async function checkAccounts(report: Report, store: OperatorStore, accounts: Accounts): Promise<void> {
  const next = 'See the findings about Stripe above.'
  const compared = await report('Accounts').attempt(next, () => compareAccounts(store, accounts))
  for (const { source, bound, found, verdict } of compared ?? []) {
    const account = report(`Account of ${source.system}`)
    const name = formatAccount(source, found)
    if (verdict === 'other')
      account.fail(
        `the settings lead to ${name}, and the store holds ${bound === null ? 'invoices that are not there' : `what came from ${formatAccount(source, bound)}`}`,
        "Use that account's key, or another store. If this is on purpose: fatura account change.",
      )
    else if (bound === null) account.ok(`${name}; the first fatura sync stores it`)
    else account.ok(`${name}, the same as in the store`)
  }
}

/** Reports nothing when there is no outgoing webhook. `end` is the position of the latest change in the feed. */
export function checkWebhooks(report: Report, webhooks: readonly OutgoingWebhook[], end: number): void {
  for (const { id, state, attempts, error, cursor } of webhooks) {
    const check = report(`Outgoing webhook ${id}`)
    if (cursor > end)
      check.fail(
        'it got changes that the store does not hold: the store is older, from a backup or a copy',
        `Run: fatura migrate --restored. Then: fatura webhook replay ${id} --from now`,
      )
    else if (state === 'disabled')
      check.fail(
        `disabled after ${attempts} attempts: it ${error ?? 'failed'}; changes wait`,
        `Repair the receiver, then: fatura webhook replay ${id}`,
      )
    else if (state === 'paused') check.warn('paused; changes wait', `To go on: fatura webhook replay ${id}`)
    else if (attempts > 0)
      check.warn(
        `${attempts} failed attempts: it ${error ?? 'failed'}; changes wait`,
        'It is tried again automatically while fatura sync runs. Look at the receiver.',
      )
    else check.ok('all changes delivered, or on their way')
  }
}
