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
  // Reading a million documents takes an hour and a half. The time of a success is the start of its run.
  [documents.all]: 4 * 60 * minuteMs,
}

/**
 * Ages above which an old success is an error. Only `stripe:relist`, which lists all invoices again, finds changes without an event.
 * Listing ten million invoices takes 7 hours.
 */
const overdueAfterMs: Record<string, number> = { [invoices.relist]: 2 * everyMs.relist }

const startSync = 'Check that "fatura sync" or "fatura up" is running. If not, start it.'

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
      'Connect Stripe and run "fatura sync", or run "fatura import FILE".',
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
    `under way. Read completely: ${list(read)}. Not read completely: ${list(remaining)}`,
    `Wait until it ends, then run "fatura doctor" again. "fatura status" shows its progress. ${startSync}`,
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
      '"fatura sync" tries again automatically while it runs. See the checks below of the system that the stream reads.',
    )
  else if (succeeded_at === null)
    check.warn('running, not finished yet', 'Let "fatura sync" run. "fatura status" shows its progress.')
  else if (age < -clockTolerance)
    check.warn(
      `last success ${formatSpan(-age)} in the future, so a clock is or was wrong`,
      'Set the clocks of all machines with NTP or chrony. The next success corrects the time.',
    )
  else if (age > (overdueAfterMs[name] ?? Number.POSITIVE_INFINITY))
    check.fail(
      `last success ${last}, which is overdue. Changes without an event may be missing`,
      'Let "fatura sync" run all the time, or run "fatura sync --once" more often. To read everything again now, run: fatura sync --once --full',
    )
  else if (age > (staleAfterMs[name] ?? Number.POSITIVE_INFINITY))
    check.warn(`last success ${last}, which is too long ago`, startSync)
  else check.ok(`last success ${last}`)
}

export async function checkConnector(report: Report, store: OperatorStore): Promise<void> {
  const connector = report('Connector')
  const state = await connector.attempt('First correct the problems that the database checks show.', () =>
    readState(store),
  )
  if (state === null) return
  const { lease, setAside, refused, held } = state
  connector.ok(`${lease.holder ?? 'no process'} synchronizes this store`)
  const heldBack = formatHeld(held)
  if (heldBack !== null)
    report('Deletion guard').fail(`holds back changes that look wrong: ${heldBack}`, `${advice}.`)
  const [newest] = setAside.newest
  if (newest !== undefined)
    report('Set aside').warn(
      `${setAside.count} records could not be read and are set aside. The newest is ${newest.system} ${newest.kind} ${newest.id}: ${newest.reason}`,
      '"fatura sync" asks for them again automatically. "fatura status" lists them. If they stay, correct them in the other system, or report a bug. Records that wait for a part of the database need all its nodes.',
    )
  const format = (kind: Refused['kind']) => refused.filter(each => each.kind === kind).map(formatRefused)
  const [outdated, unstored] = [format('outdated'), format('refused')]
  if (outdated.length > 0)
    report('Out of date').fail(
      `invoices are shown in an older version, because their new version is refused: ${outdated.join('; ')}`,
      'Check these invoices at Stripe. If many of them are not found, check the key and its account. If a status is unknown, try a newer version of Fatura.',
    )
  if (unstored.length > 0)
    report('Refused').warn(
      `invoices are refused and not stored: ${unstored.join('; ')}`,
      'Check these invoices at Stripe. Fatura stores only invoices that have a customer. If a status is unknown, try a newer version of Fatura.',
    )
}

/** Compares the accounts in the same way as `fatura sync` at its start. */
export async function checkAccounts(report: Report, store: OperatorStore, accounts: Accounts): Promise<void> {
  const next = 'See the checks of Stripe above.'
  const compared = await report('Accounts').attempt(next, () => compareAccounts(store, accounts))
  for (const { source, bound, found, verdict } of compared ?? []) {
    const account = report(`Account of ${source.system}`)
    const name = formatAccount(source, found)
    if (verdict === 'other')
      account.fail(
        `the settings lead to ${name}, but the store holds ${bound === null ? 'invoices that this account does not have' : `records of ${formatAccount(source, bound)}`}`,
        "Use the key of the store's account, or another store. To synchronize the new account with this store, run: fatura account change",
      )
    else if (bound === null) account.ok(`${name}. The first "fatura sync" saves it`)
    else account.ok(`${name}, the same as in the store`)
  }
}

/** Reports nothing when there is no outgoing webhook. `end` is the position of the latest change in the feed. */
export function checkWebhooks(report: Report, webhooks: readonly OutgoingWebhook[], end: number): void {
  for (const { id, state, attempts, error, cursor } of webhooks) {
    const check = report(`Outgoing webhook ${id}`)
    if (cursor > end)
      check.fail(
        'it already got changes that the store does not hold, so the store is an older backup or copy',
        `Run: fatura migrate --restored. Then: fatura webhook replay ${id} --from now`,
      )
    else if (state === 'disabled')
      check.fail(
        `disabled after ${attempts} failed attempts. At the last one, the receiver ${error ?? 'failed'}. Changes wait`,
        `Repair the receiver, then run: fatura webhook replay ${id}`,
      )
    else if (state === 'paused')
      check.warn('paused. Changes wait', `To continue, run: fatura webhook replay ${id}`)
    else if (attempts > 0)
      check.warn(
        `${attempts} failed attempts. At the last one, the receiver ${error ?? 'failed'}. Changes wait`,
        '"fatura sync" tries again automatically while it runs. Check the receiver.',
      )
    else check.ok('all changes are delivered or being sent')
  }
}
