/** Writes into PostgreSQL's functions what follows from the filters and constants of the read model, each between two marks. */
import { readFileSync, writeFileSync } from 'node:fs'
import { openInvoicesShown } from '../src/domain/balance.ts'
import { countedAbove } from '../src/store/sql/counters.ts'
import { expandedLines } from '../src/store/sql/expansion-sql.ts'
import { columnOf, type RowFilterName, rowFilterNames, rowFilters } from '../src/store/sql/filters.ts'

const functionsFile = new URL('../src/store/postgres/functions.sql', import.meta.url)

const list = (names: readonly RowFilterName[]) => names.map(name => rowFilters[name].parameter).join(', ')
const parameters = list(rowFilterNames)

/** The filters' conditions; one that is not given is true of every row. */
function matchRows(names: readonly RowFilterName[]): string {
  const conditionIfGiven = {
    '=': (column: string, value: string) => `(${value} IS NULL OR ${column} = ${value})`,
    '>=': (column: string, value: string) => `${column} >= coalesce(${value}, ${Number.MIN_SAFE_INTEGER})`,
    '<': (column: string, value: string) => `${column} < coalesce(${value}, ${Number.MAX_SAFE_INTEGER})`,
  }
  return names
    .map(name =>
      conditionIfGiven[rowFilters[name].is](`i.${columnOf(name, 'postgres')}`, rowFilters[name].parameter),
    )
    .join(' AND ')
}

/** The same of counters, whose columns are texts. */
function matchCounters(): string {
  return rowFilterNames
    .flatMap(name => {
      const { parameter, counted } = rowFilters[name]
      if (counted === null) return []
      const { column, is, write = (same: string) => same } = counted
      const value = write(parameter, 'postgres')
      if (is === '=') return [`(${parameter} IS NULL OR k.${column} = ${value})`]
      return [`k.${column} ${is} coalesce(${value}, ${is === '>=' ? "''" : "'~'"})`]
    })
    .join(' AND ')
}

const uncounted = rowFilterNames.filter(name => rowFilters[name].counted === null)

const lines = expandedLines(
  'postgres',
  'i.',
  taxes => `CASE WHEN 'taxes' = ANY (p_expand) THEN ${taxes} ELSE '' END`,
)

const passages: Readonly<Record<string, string>> = {
  parameters: rowFilterNames.map(name => `${rowFilters[name].parameter} ${rowFilters[name].type}`).join(', '),
  values: parameters,
  filtered: `num_nonnulls(${parameters}) > 0`,
  countable: uncounted.length === 0 ? 'true' : `num_nonnulls(${list(uncounted)}) = 0`,
  matching: matchRows(rowFilterNames),
  matchingInMonth: matchRows(rowFilterNames.filter(name => rowFilters[name].column !== 'issued_at')),
  counters: matchCounters(),
  lines,
  open: String(openInvoicesShown),
  counted: String(countedAbove),
}

export function writePassages(sql: string): string {
  return sql.replaceAll(/\/\*(\w+)\*\/[\s\S]*?\/\*end\*\//g, (_, name: string) => {
    if (passages[name] === undefined) throw new Error(`functions.sql names no passage ${name}`)
    return `/*${name}*/ ${passages[name]} /*end*/`
  })
}

if (import.meta.main) writeFileSync(functionsFile, writePassages(readFileSync(functionsFile, 'utf8')))
