/** What is to be measured, from the command line. */
import { parseArgs } from 'node:util'
import type { Shape } from './seed/corpus.ts'
import { defaultFolder } from './seed/data-folder.ts'

export const sections = ['rates', 'expanded', 'flat', 'metrics'] as const
export type Section = (typeof sections)[number]
export const engineNames = ['sqlite', 'postgres'] as const
export type EngineName = (typeof engineNames)[number]

/** Options of a program of its own, with their defaults. */
export function readFlags<Name extends string>(defaults: Record<Name, string>): Record<Name, string> {
  const options = Object.entries<string>(defaults).map(([name, value]) => [
    name,
    { type: 'string', default: value } as const,
  ])
  return parseArgs({ options: Object.fromEntries(options) }).values as Record<Name, string>
}

export interface Options {
  /** What was typed, for the report. */
  command: string
  isScale: boolean
  isQuick: boolean
  sections: readonly Section[]
  engines: readonly EngineName[]
  rounds: number
  seconds: number
  /** How often each request of the latency table is sent. */
  samples: number
  shape: Shape
  folder: string
}

export const usage = `npm run bench                        everything; writes docs/performance.md
npm run bench -- --quick             a small corpus and short rounds; writes nothing
npm run bench -- scale               pages and details over many invoices against those over 400,000, and the space they take

  --only rates,expanded,flat,metrics some sections
  --engine sqlite|postgres           one engine
  --rounds N --seconds N             how many rounds, and how long each target is loaded in each
  --samples N                        how often each request of the latency table is sent
  --invoices N --customers N         the small customers' invoices, and how many customers they are spread over
  --data FOLDER                      where the seeded stores are kept
`

export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      engine: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      samples: { type: 'string' },
      invoices: { type: 'string' },
      customers: { type: 'string' },
      data: { type: 'string' },
    },
  })
  const isScale = positionals[0] === 'scale'
  if (positionals.length > (isScale ? 1 : 0)) throw new Error(`There is no '${positionals.join(' ')}'.`)
  const isQuick = values.quick
  const many = isScale && !isQuick
  const invoices = readCount('invoices', values.invoices, many ? 10_000_000 : isQuick ? 40_000 : 400_000)
  const customers = readCount('customers', values.customers, Math.max(1, Math.round(invoices / 40)))
  return {
    command: describe(args),
    isScale,
    isQuick,
    sections: readChoice('only', values.only, sections),
    engines: readChoice('engine', values.engine, engineNames),
    rounds: readCount('rounds', values.rounds, isQuick ? 3 : 7),
    seconds: readCount('seconds', values.seconds, isQuick ? 1 : 5),
    samples: readCount('samples', values.samples, isQuick ? 20 : 200),
    shape: {
      customers,
      each: Math.max(1, Math.round(invoices / customers)),
      large: isScale ? [] : isQuick ? [20_000] : [1_000, 10_000, 100_000],
    },
    folder: values.data ?? defaultFolder,
  }
}

/** What was typed, but for the place of the data, which changes no figure. */
function describe(args: readonly string[]): string {
  const chosen = args.filter((arg, index) => !arg.startsWith('--data') && args[index - 1] !== '--data')
  return ['npm run bench', ...(chosen.length > 0 ? ['--'] : []), ...chosen].join(' ')
}

function readCount(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`--${name} must be a whole number from 1, not '${text}'.`)
  return Number(text)
}

function readChoice<T extends string>(
  name: string,
  text: string | undefined,
  all: readonly T[],
): readonly T[] {
  if (text === undefined) return all
  const chosen = text.split(',')
  const bad = chosen.find(value => !all.includes(value as T))
  if (bad !== undefined) throw new Error(`--${name} must be of ${all.join(', ')}, not '${bad}'.`)
  return all.filter(value => chosen.includes(value))
}
