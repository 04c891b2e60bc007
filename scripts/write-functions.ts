/** Writes into PostgreSQL's functions what follows from the filters and constants of the read model, each between two marks. */
import { readFileSync, writeFileSync } from 'node:fs'
import {
  countedAbove,
  headSize,
  sumsOfCounters,
  sumsOfInvoices,
  uncountedFilters,
} from '../src/store/read-model/counting.ts'
import { columnOf, type FilterName, rowFilterNames, rowFilters } from '../src/store/read-model/filters.ts'

const functionsFile = new URL('../src/store/postgres/functions.sql', import.meta.url)

/** The condition of a filter, given its value's name; true of every row when that is null. */
const conditionIfGiven = {
  '=': (column: string, value: string) => `(${value} IS NULL OR ${column} = ${value})`,
  '>=': (column: string, value: string) => `${column} >= coalesce(${value}, ${Number.MIN_SAFE_INTEGER})`,
  '<': (column: string, value: string) => `${column} < coalesce(${value}, ${Number.MAX_SAFE_INTEGER})`,
}

function parametersOf(names: readonly FilterName[]): string {
  return names.flatMap(name => (name === 'words' ? [] : rowFilters[name].parameter)).join(', ')
}

function isAnyGiven(names: readonly FilterName[]): string {
  const parameters = parametersOf(names)
  return parameters === '' ? 'false' : `num_nonnulls(${parameters}) > 0`
}

function conditions(nameOf: (parameter: string, index: number) => string): string {
  return rowFilterNames
    .map((name, i) => {
      const { is, parameter } = rowFilters[name]
      return conditionIfGiven[is](`i.${columnOf(name, 'postgres')}`, nameOf(parameter, i))
    })
    .join(' AND ')
}

const passages: Readonly<Record<string, string>> = {
  parameters: rowFilterNames.map(name => `${rowFilters[name].parameter} ${rowFilters[name].type}`).join(', '),
  values: parametersOf(rowFilterNames),
  filtered: isAnyGiven(rowFilterNames),
  uncounted: isAnyGiven(uncountedFilters),
  matching: conditions(parameter => parameter),
  // Within a text that is executed: the filters' values follow four others.
  dynamic: conditions((_, i) => `$${5 + i}`).replaceAll("'", "''"),
  sumsOfCounters,
  sumsOfInvoices: sumsOfInvoices('postgres'),
  counted: String(countedAbove),
  head: String(headSize),
}

export function writePassages(sql: string): string {
  return sql.replaceAll(/\/\*(\w+)\*\/[\s\S]*?\/\*end\*\//g, (_, name: string) => {
    if (passages[name] === undefined) throw new Error(`functions.sql names no passage ${name}`)
    return `/*${name}*/ ${passages[name]} /*end*/`
  })
}

if (import.meta.main) writeFileSync(functionsFile, writePassages(readFileSync(functionsFile, 'utf8')))
