import { Command } from 'commander'
import { tellSpan } from '../../doctor/check-clock.ts'
import { type DriftEstimates, readDrift } from '../../drift/estimate.ts'
import { tellDrift } from '../../drift/tell-drift.ts'
import { openOperatorStore } from '../../store/engines.ts'
import type { Stream } from '../../store/store.ts'
import { advice, formatHeld } from '../../sync/deletion-guard.ts'
import { formatCursor } from '../../sync/ranges.ts'
import { formatRefused, type Refused, readState, type SyncState } from '../../sync/read-state.ts'
import { addSettings } from '../settings/options.ts'
import { type Options, readSettings } from '../settings/read-settings.ts'
import { jsonLine } from '../terminal/json-line.ts'
import { formatTable, printable } from '../terminal/table.ts'

const used = ['DATABASE_URL'] as const

export function statusCommand(): Command {
  return addSettings(
    new Command('status')
      .description(
        'Show the progress of each stream, the accounts, the process that synchronizes, and the records that do not fit.',
      )
      .option('--json', 'one JSON object a line'),
    used,
  ).action(showStatus)
}

async function showStatus(options: { json?: true } & Options): Promise<void> {
  const { DATABASE_URL: url } = readSettings(options, used)
  const store = await openOperatorStore(url)
  try {
    const state = { ...(await readState(store)), drift: await readDrift(store) }
    process.stdout.write(options.json === true ? writeLines(state) : writeText(state))
  } finally {
    await store.close()
  }
}

type Status = SyncState & { drift: DriftEstimates }

/** Each line says its kind. */
function writeLines({ streams, pins, lease, setAside, refused, held, drift }: Status): string {
  const lines = [
    ...streams.map(stream => ({ kind: 'stream', ...stream })),
    ...pins.map(pin => ({ kind: 'account', ...pin })),
    ...(lease.epoch > 0 ? [{ kind: 'connector', holder: lease.holder }] : []),
    ...Object.entries(drift).flatMap(([window, found]) =>
      found.compared + found.listed > 0 ? [{ kind: 'drift', window, ...found }] : [],
    ),
    ...(held.deletion + held.downgrade > 0 ? [{ kind: 'deletion_guard', ...held }] : []),
    ...(setAside.count > 0 ? [{ kind: 'set_aside_total', count: setAside.count }] : []),
    ...setAside.newest.map(({ kind: record, ...row }) => ({ kind: 'set_aside', record, ...row })),
    ...refused,
  ]
  return lines.map(jsonLine).join('')
}

function writeText({ streams, pins, lease, setAside, refused, held, drift }: Status): string {
  if (streams.length === 0 && pins.length === 0 && lease.holder === null)
    return 'Nothing was synchronized or imported yet. Start with: fatura sync --once, or fatura import FILE\n'
  const table = [['STREAM', 'LAST SUCCESS', 'AGO', 'CURSOR', 'FAILURE'], ...streams.map(describe)]
  const facts = [
    ...pins.map(({ system, account, pinned_at }) => [
      `Account of ${system}:`,
      `${account}, since ${new Date(pinned_at).toISOString()}`,
    ]),
    ...(lease.epoch > 0 ? [['Synchronizing:', lease.holder ?? 'no process']] : []),
    ...tellDrift(drift),
  ]
  const heldBack = formatHeld(held)
  const aside = setAside.newest.map(({ system, kind, id, reason, tries, last_at }) =>
    printable(`  ${system} ${kind} ${id}: ${reason} (${tries} tries, last ${agoOf(last_at)})`),
  )
  return [
    streams.length === 0 ? '' : `${formatTable(table)}\n`,
    formatTable(facts),
    heldBack === null
      ? ''
      : `\nThe deletion guard holds back changes that look wrong: ${heldBack}; ${advice}.\n`,
    setAside.count === 0
      ? ''
      : `\nSet aside, and tried again: ${setAside.count}. The newest:\n${aside.join('\n')}\n`,
    list('Out of date, because what they are now is refused', refused, 'outdated'),
    list('Refused, and not stored', refused, 'refused'),
  ]
    .join('')
    .replace(/\n+$/, '\n')
}

function list(heading: string, refused: readonly Refused[], kind: Refused['kind']): string {
  const some = refused.filter(each => each.kind === kind)
  const total = some.reduce((sum, { count }) => sum + count, 0)
  const lines = some.map(each => printable(`  ${formatRefused(each)}`))
  return total === 0 ? '' : `\n${heading}: ${total}.\n${lines.join('\n')}\n`
}

function describe({ name, succeeded_at, cursor, failed_at, error }: Stream): string[] {
  const failure = failed_at === null ? '' : `${new Date(failed_at).toISOString()} ${error}`
  return [
    name,
    succeeded_at === null ? 'never' : new Date(succeeded_at).toISOString(),
    succeeded_at === null ? '' : tellSpan(Date.now() - succeeded_at),
    cursor === null ? '' : formatCursor(cursor),
    failure,
  ]
}

function agoOf(moment: number): string {
  return `${tellSpan(Date.now() - moment)} ago`
}
