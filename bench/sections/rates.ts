/** How many requests a second, what each costs, and how that stands to what is possible at all. */

import { questions, startTargets } from '../load/targets.ts'
import type { Options } from '../options.ts'
import { figures, type Rounds, ratios, runRounds, typical } from '../rounds.ts'
import type { SeededStore } from '../seed/stores.ts'
import { formatTable, show, spread } from '../statistics.ts'

/** Lists whose rates are compared. */
const compared = [
  ['service-sqlite', 'f1', 'Fatura on SQLite / F1'],
  ['service-postgres', 'f2', 'Fatura on PostgreSQL / F2'],
  ['service-postgres', 'peer', 'Fatura on PostgreSQL / peer'],
] as const

const pairs = [
  ...compared.flatMap(([left, right, name]) =>
    Object.values(questions).map(each => [left + each.key, right + each.key, name + each.name] as const),
  ),
  ['service-sqlite', 'f0', 'Fatura on SQLite / F0'],
] as const

export async function measureRates(options: Options, stores: readonly SeededStore[]): Promise<string> {
  const targets = await startTargets(options, stores)
  const rounds = await runRounds(targets, options.rounds, options.seconds)
  for (const { stop } of targets) await stop()
  return [formatRates(rounds), formatRatios(rounds, pairs)].join('\n\n')
}

/** Floors and the peer have a row for page 1 alone: their other lists count in the ratios. */
function formatRates(rounds: Rounds): string {
  const head = [
    'Page 1 of 10, unless said otherwise',
    'Requests/s (least–most)',
    'CPU µs/request',
    'Database CPU µs/request',
    'Peak memory MB',
    'Load busy',
  ]
  const shown = rounds.targets.filter(({ key }) => key.startsWith('service-') || !key.includes('-'))
  const rows = shown.map(({ key, name }) => [
    name,
    spread(figures(rounds, key, 'rate'), 0),
    show(typical(rounds, key, 'cpu'), 0),
    show(typical(rounds, key, 'databaseCpu'), 0),
    show(rounds.peakMemoryMb.get(key) ?? Number.NaN, 0),
    `${show(typical(rounds, key, 'busy') * 100, 0)} %`,
  ])
  return formatTable(head, rows)
}

export function formatRatios(
  rounds: Rounds,
  compared: readonly (readonly [key: string, to: string, name: string])[],
): string {
  const known = compared.filter(([key, to]) => rounds.measured.has(key) && rounds.measured.has(to))
  return formatTable(
    ['Ratios within rounds: median (least–most)', 'Requests/s', 'CPU/request'],
    known.map(([key, to, name]) => [
      name,
      spread(ratios(rounds, key, to, 'rate'), 2),
      spread(ratios(rounds, key, to, 'cpu'), 2),
    ]),
  )
}
