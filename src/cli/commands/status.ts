import { styleText } from 'node:util'
import { formatSpan } from '../../operations/doctor/check-clock.ts'
import { formatRechecks } from '../../operations/doctor/check-corrections.ts'
import { invoiceXpressIdentity } from '../../sources/invoicexpress/source-identity.ts'
import { stripeIdentity } from '../../sources/stripe/source-identity.ts'
import type { OutgoingWebhook } from '../../store/change-store.ts'
import type { Recheck } from '../../store/connector-store.ts'
import { openOperatorStore, useStore } from '../../store/engines.ts'
import type { Stream } from '../../store/store.ts'
import { advice, formatHeld } from '../../sync/deletion-guard.ts'
import { formatCursor } from '../../sync/invoices/ranges.ts'
import {
  formatRefused,
  formatWaiting,
  lookEveryMs,
  type Refused,
  readState,
  type SyncState,
  type WaitingRecords,
} from '../../sync/read-state.ts'
import { type Options, readSettings, SettingsCommand } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { formatParagraph, formatTable, printable, type TableOptions } from '../terminal/table.ts'

export const statusCommand = () =>
  new SettingsCommand('status')
    .description(
      'Show the progress of each stream, the accounts, the process that synchronizes, and the records that could not be stored.',
    )
    .option('--json', 'print one JSON object per line')
    .settings(['DATABASE_URL'])
    .action(showStatus)

async function showStatus(options: { json?: true } & Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, ['DATABASE_URL'])
  const state = await useStore(openOperatorStore(url), async store => {
    return {
      ...(await readState(store)),
      rechecks: await store.readRechecks(Date.now()),
      webhooks: await store.listWebhooks(),
    }
  })
  process.stdout.write(options.json === true ? writeLines(state) : writeText(state))
}

type Status = SyncState & { rechecks: readonly Recheck[]; webhooks: readonly OutgoingWebhook[] }

function writeLines({
  streams,
  accounts,
  lease,
  setAside,
  refused,
  held,
  rechecks,
  webhooks,
}: Status): string {
  const lines = [
    ...streams.map(stream => ({ kind: 'stream', ...stream })),
    ...accounts.map(account => ({ kind: 'account', ...account })),
    ...(lease.epoch > 0 ? [{ kind: 'connector', holder: lease.holder }] : []),
    ...rechecks.map(recheck => ({ kind: 'recheck', ...recheck })),
    ...(held.deletion + held.lost_document > 0 ? [{ kind: 'deletion_guard', ...held }] : []),
    ...(setAside.count > 0 ? [{ kind: 'set_aside_total', count: setAside.count }] : []),
    ...setAside.newest.map(({ kind: record, asked_stamp: _, ...row }) => {
      return { kind: 'set_aside', record, ...row }
    }),
    ...refused,
    ...webhooks.map(({ id, state, cursor, attempts, next_at, error }) => {
      return { kind: 'outgoing_webhook', id, state, cursor, attempts, next_at, error }
    }),
  ]
  return lines.map(jsonLine).join('')
}

function writeText({
  streams,
  accounts,
  lease,
  setAside,
  refused,
  held,
  rechecks,
  webhooks,
}: Status): string {
  if (streams.length === 0 && accounts.length === 0 && lease.holder === null)
    return formatParagraph(
      'Nothing was synchronized or imported yet. Start with "fatura sync --once" or "fatura import FILE".',
    )
  const table = [['STREAM', 'LAST SUCCESS', 'AGO', 'CURSOR', 'FAILURE'], ...streams.map(describe)]
  const paint: TableOptions['paint'] = (text, column, [, lastSuccess, , , failure]) => {
    if (failure === 'FAILURE') return styleText('gray', text)
    if (failure !== '' && (column === 0 || column === 4)) return styleText('red', text)
    return lastSuccess === 'never' && column === 1 ? styleText('yellow', text) : text
  }
  const facts = [
    ...accounts.map(({ system, account, bound_at }) => [
      `Account of ${system}:`,
      `${account}, since ${new Date(bound_at).toISOString()}`,
    ]),
    ...(lease.epoch > 0 ? [['Synchronizing:', lease.holder ?? 'no process']] : []),
    ...formatRechecks(rechecks),
  ]
  const heldBack = formatHeld(held)
  const list = (heading: string, wanted: Refused['kind']) => {
    const some = refused.filter(({ kind }) => kind === wanted)
    const total = some.reduce((sum, { count }) => sum + count, 0)
    return section(`${heading}: ${total}.`, some.map(formatRefused))
  }
  const failing = webhooks.filter(({ state, attempts }) => state !== 'active' || attempts > 0)
  return [
    streams.length === 0 ? '' : formatTable(table, { paint }),
    formatTable(facts),
    heldBack === null
      ? ''
      : warning(`The deletion guard holds back changes that look wrong: ${heldBack}. ${advice}.`),
    section(
      `Set aside and asked for again: ${setAside.count}.`,
      setAside.waiting.map(waiting => describeWaiting(waiting, lease.holder !== null)),
    ),
    list('Out of date because the new version is refused, asked for again every hour', 'outdated'),
    list('Refused and not stored, asked for again every hour', 'refused'),
    section(
      `Outgoing webhooks with changes not yet sent: ${failing.length}.`,
      failing.map(
        ({ id, state, attempts, error }) =>
          `${id} is ${state}, ${attempts} failed attempts${error === null ? '' : `: the receiver ${error}`}`,
      ),
    ),
  ]
    .filter(part => part !== '')
    .join('\n')
}

/**
 * Describes records that wait for another try, for example "3 invoices of Stripe could not be read. Next try in 4 min. The last one: in_1:
 * the total is a text (2 tries, the last 1 min ago)".
 */
function describeWaiting({ system, due_at, newest, ...records }: WaitingRecords, isRunning: boolean): string {
  const { id, reason, tries, last_at } = newest
  const remainingMs = due_at === null ? 0 : due_at - Date.now()
  const next =
    remainingMs > 0 ? `in ${formatSpan(remainingMs)}` : `within ${formatSpan(lookEveryMs(records.kind))}`
  const when = isRunning ? next : 'when a process synchronizes'
  const ago = `${formatSpan(Date.now() - last_at)} ago`
  const tried = tries === 1 ? `1 try, ${ago}` : `${tries} tries, the last ${ago}`
  const name = names.get(system) ?? system
  return `${formatWaiting(records, name)}. Next try ${when}. The newest is ${id}: ${reason} (${tried})`
}

const names = new Map([stripeIdentity, invoiceXpressIdentity].map(({ system, name }) => [system, name]))

function warning(text: string): string {
  return `${styleText('yellow', formatParagraph(text).trimEnd())}\n`
}

function section(heading: string, items: readonly string[]): string {
  const lines = items.map(text => formatParagraph(`  ${printable(text)}`, '    '))
  return lines.length === 0 ? '' : warning(heading) + lines.join('')
}

function describe({ name, succeeded_at, cursor, failed_at, error }: Stream): string[] {
  const failure = failed_at === null ? '' : `${new Date(failed_at).toISOString()} ${error}`
  return [
    name,
    succeeded_at === null ? 'never' : new Date(succeeded_at).toISOString(),
    succeeded_at === null ? '' : formatSpan(Date.now() - succeeded_at),
    cursor === null ? '' : formatCursor(cursor),
    failure,
  ]
}
