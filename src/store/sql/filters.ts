/** The filters of a list, each defined once. Every statement that reads a list is made from this table. */
import type { InvoiceStatus } from '../../domain/invoice.ts'
import type { SearchText, SearchWord } from './search.ts'

/** Conditions of a list. An absent field sets no condition. */
export interface InvoiceFilter {
  status?: InvoiceStatus | undefined
  ix_status?: string | undefined
  /** First moment that matches, in milliseconds since the epoch. It is the beginning of a UTC day. */
  issued_from?: number | undefined
  /** First moment that no longer matches, in milliseconds since the epoch. It is the beginning of a UTC day. */
  issued_before?: number | undefined
  /** Every word must match. An absent list means no search. */
  words?: readonly SearchWord[] | undefined
}

type FilterName = keyof InvoiceFilter

export type EngineName = 'sqlite' | 'postgres'

interface RowFilter {
  /** A column, or an expression that begins with a column, such as `summary ->> '$.currency'`. Each engine may have its own expression. */
  column: string | Record<EngineName, string>
  is: '=' | '>=' | '<'
  parameter: string
  type: 'text' | 'bigint'
  /**
   * The filter's condition on counters. Null when counters do not know the value. The rows of a customer with counters are then scanned.
   */
  counted: CounterCondition | null
}

interface CounterCondition {
  column: 'month' | 'status' | 'currency' | 'ix'
  is: '=' | '>=' | '<='
  /** Converts the filter's value to the counter's value. Absent when the two values are equal. */
  write?: (value: string, engine: EngineName) => string
}

/** All filters except the words, which are searched in texts. */
export type RowFilterName = Exclude<FilterName, 'words'>

/** SQL expressions for the UTC month of a moment in milliseconds. */
export const monthIn: Readonly<Record<EngineName, (moment: string) => string>> = {
  sqlite: moment => `strftime('%Y-%m', ${moment} / 1000.0, 'unixepoch')`,
  postgres: moment => `to_char(to_timestamp(${moment} / 1000.0::float8) AT TIME ZONE 'UTC', 'YYYY-MM')`,
}

export const rowFilters: Readonly<Record<RowFilterName, RowFilter>> = {
  status: {
    ...{ column: 'status', is: '=', parameter: 'p_status', type: 'text' },
    counted: { column: 'status', is: '=' },
  },
  ix_status: {
    ...{ column: 'ix_status', is: '=', parameter: 'p_ix_status', type: 'text' },
    counted: { column: 'ix', is: '=', write: value => `'=' || ${value}` },
  },
  issued_from: {
    ...{ column: 'issued_at', is: '>=', parameter: 'p_from', type: 'bigint' },
    counted: { column: 'month', is: '>=', write: (value, engine) => monthIn[engine](value) },
  },
  issued_before: {
    ...{ column: 'issued_at', is: '<', parameter: 'p_before', type: 'bigint' },
    counted: { column: 'month', is: '<=', write: (value, engine) => monthIn[engine](`(${value} - 1)`) },
  },
}

export const rowFilterNames = Object.keys(rowFilters) as RowFilterName[]
export const filterNames: readonly FilterName[] = [...rowFilterNames, 'words']

export function columnOf(name: RowFilterName, engine: EngineName): string {
  const { column } = rowFilters[name]
  return typeof column === 'string' ? column : column[engine]
}

interface StatementStyle {
  engine: EngineName
  /** Prefix of each column: an empty text, or the table's name and a dot. */
  row: string
  bind(value: string | number): string
}

/** SQL conditions that a search column contains a text. PostgreSQL stores a text that is too long for its index in `long_text`. */
const holds: Readonly<Record<EngineName, (row: string, column: keyof SearchText, text: string) => string>> = {
  sqlite: (row, column, text) => `instr(${row}${column}, ${text}) > 0`,
  postgres(row, column, text) {
    const isIn = (name: string) => `position(convert_to(${text}, 'UTF8') IN ${row}${name}) > 0`
    return column === 'search_text' ? `coalesce(${isIn(column)}, ${isIn('long_text')})` : isIn(column)
  },
}

/** Returns the conditions of a filter on counters. The counters must know every field of the filter. */
export function counterConditionsOf(filter: InvoiceFilter, { engine, row, bind }: StatementStyle): string[] {
  return rowFilterNames.flatMap(name => {
    const [value, { counted }] = [filter[name], rowFilters[name]]
    if (value === undefined || counted === null) return []
    const { column, is, write = (same: string) => same } = counted
    return [`${row}${column} ${is} ${write(bind(value), engine)}`]
  })
}

export function conditionsOf(filter: InvoiceFilter, { engine, row, bind }: StatementStyle): string[] {
  const conditions: string[] = []
  for (const name of rowFilterNames) {
    const value = filter[name]
    if (value !== undefined)
      conditions.push(`${row}${columnOf(name, engine)} ${rowFilters[name].is} ${bind(value)}`)
  }
  for (const { parts, beginnings } of filter.words ?? []) {
    const inText = parts.map(part => holds[engine](row, 'search_text', bind(part)))
    const inIds = beginnings.map(beginning => holds[engine](row, 'search_ids', bind(beginning)))
    conditions.push(`(${[...inText, ...inIds].join(' OR ')})`)
  }
  return conditions
}
