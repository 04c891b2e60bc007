/** How many requests a second, what each costs, and how that stands to what is possible at all. */

import { drawBars, writeChart } from '../chart.ts'
import { questions, serviceQuestions, startTargets } from '../load/targets.ts'
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

/** The goals: at least 1.25 times the plain service. */
const plain = (['sqlite', 'postgres'] as const).flatMap(engine =>
  Object.values(serviceQuestions).map(
    ({ key, name }) =>
      [
        `service-${engine}${key}`,
        `plain-${engine}${key}`,
        `${engine}: Fatura / plain service${name}`,
      ] as const,
  ),
)

const pairs = [
  ...plain,
  ...compared.flatMap(([left, right, name]) =>
    Object.values(serviceQuestions).map(
      each => [left + each.key, right + each.key, name + each.name] as const,
    ),
  ),
  ['service-sqlite', 'f0', 'Fatura on SQLite / F0'],
  ['service-sqlite-detail', 'service-sqlite', 'SQLite: detail / list'],
  ['service-sqlite-304', 'service-sqlite', 'SQLite: 304 / list'],
  ['service-postgres-detail', 'service-postgres', 'PostgreSQL: detail / list'],
  ['service-postgres-304', 'service-postgres', 'PostgreSQL: 304 / list'],
] as const

export async function measureRates(options: Options, stores: readonly SeededStore[]): Promise<string> {
  const targets = await startTargets(options, stores)
  const rounds = await runRounds(targets, options.rounds, options.seconds)
  for (const { stop } of targets) await stop()
  if (!options.isQuick && stores.length === 2) await writeChart(drawRates(rounds))
  return [formatRates(rounds), formatRatios(rounds, pairs)].join('\n\n')
}

function drawRates(rounds: Rounds): string {
  const groups = Object.values(questions).map(({ key, name }) => ({
    title: name === '' ? 'Page 1' : name.replace(/^: p/, 'P').replace(/^: /, ''),
    bars: Object.entries(charted).map(([target, label]) => ({
      name: label,
      value: typical(rounds, target + key, 'rate'),
      isOurs: target.startsWith('service-'),
    })),
  }))
  return drawBars('Requests a second, customers of 40 invoices, ten a page', groups)
}

/** The chart's bars. */
const charted = {
  'service-sqlite': 'Fatura on SQLite',
  f1: 'Floor: node:sqlite',
  'service-postgres': 'Fatura on PostgreSQL',
  f2: 'Floor: pg',
  peer: 'Peer: Fastify, Drizzle',
}

export function formatRates(rounds: Rounds): string {
  const head = [
    'Page 1 of 10, unless said otherwise',
    'Requests/s (least–most)',
    'CPU µs/request',
    'Database CPU µs/request',
    'Peak memory MB',
    'Own memory MB',
    'Load busy',
  ]
  const rows = rounds.targets.map(({ key, name }) => {
    const memory = rounds.memory.get(key)
    return [
      name,
      spread(figures(rounds, key, 'rate'), 0),
      show(typical(rounds, key, 'cpu'), 0),
      show(typical(rounds, key, 'databaseCpu'), 0),
      show(memory?.peak ?? Number.NaN, 0),
      show(memory?.own ?? Number.NaN, 0),
      `${show(typical(rounds, key, 'busy') * 100, 0)} %`,
    ]
  })
  return formatTable(head, rows)
}

export function formatRatios(
  rounds: Rounds,
  compared: readonly (readonly [key: string, to: string, name: string])[],
): string {
  const known = compared.filter(([key, to]) => rounds.measured.has(key) && rounds.measured.has(to))
  return formatTable(
    ['Ratios within rounds: median (least–most)', 'Requests/s', 'CPU/request', 'With the database’s CPU'],
    known.map(([key, to, name]) => [
      name,
      spread(ratios(rounds, key, to, 'rate'), 2),
      spread(ratios(rounds, key, to, 'cpu'), 2),
      spread(ratios(rounds, key, to, 'wholeCpu'), 2),
    ]),
  )
}
