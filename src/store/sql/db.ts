import { type Content, type Kind, type KindName, kinds, type Value } from '../contents.ts'
import type { EngineName } from './filters.ts'

export type DbValue = Value | readonly string[] | readonly number[]

/** A connection for the SQL statements that all engines share. */
export interface Db {
  engine: EngineName
  /**
   * Runs a statement written for PostgreSQL. An engine without schemas removes the prefix `fatura.`. In `values`, a list is allowed only
   * for a parameter of `isAmong`.
   */
  query<Row extends object>(sql: string, values?: readonly DbValue[]): Promise<Row[]>
  /** Inserts rows. Each row has its values in the order of the columns. Two rows must not have the same key. */
  insert(insertion: Insertion, rows: readonly (readonly (Value | bigint)[])[]): Promise<unknown>
  /** Returns the condition that a column's value is in a list, as in `isAmong('id', '$1')`. */
  isAmong(column: string, list: string): string
  /** Returns text to put behind a table's name, for an engine that must be told to use a partial index. */
  byIndex(name: string): string
  /**
   * Locks names until the transaction ends, always in the same order. The names in `alone` get exclusive locks, those in `shared` shared
   * locks. Returns true when other transactions may have changed what was read before.
   */
  holdNames(alone: readonly string[], shared: readonly string[]): Promise<boolean>
  /** True when rows lie on several nodes. Each node then sends as many rows as the whole statement may return. */
  isCitus: boolean
  /** SQL of the column `customers` of a token or key as JSON text, under the column's own name. */
  customersAsJson: string
  /** Converts JSON text to a value of the column `customers` of a token or key. */
  customersFromJson(json: string | null): string | readonly string[] | null
}

export interface Insertion {
  /** Name of the table, such as `fatura.documents`. The SQL in `rest` can refer to an existing row as `stored`. */
  into: string
  columns: Readonly<Record<string, 'text' | 'bigint' | 'numeric' | 'bytea'>>
  /** SQL behind the inserted rows, such as `ON CONFLICT DO NOTHING`. */
  rest: string
}

/** Returns numbered parameters of a statement, such as `$1, $2`. `before` is the number of parameters in front of them. */
export function parameterList(count: number, before = 0): string {
  return Array.from({ length: count }, (_, i) => `$${before + i + 1}`).join(', ')
}

export function insertOf(into: string, columns: readonly string[], rows: number, rest: string): string {
  const given = Array.from(
    { length: rows },
    (_, row) => `(${parameterList(columns.length, row * columns.length)})`,
  )
  return `INSERT INTO ${into} AS stored (${columns.join(', ')}) VALUES ${given.join(', ')} ${rest}`
}

/** Inserts items of a kind. `rest` is the SQL behind the rows, as in `Insertion`. */
export function insertContents(db: Db, kind: KindName, contents: readonly Content[], rest = '') {
  const { columns, tables }: Kind = kinds[kind]
  const values = contents.flatMap(content =>
    content.map((value, i) =>
      columns[i] === 'customers' ? db.customersFromJson(value as string | null) : value,
    ),
  )
  return db.query(insertOf(`fatura.${tables[0]}`, columns, contents.length, rest), values)
}

export function columnsFor(kind: KindName, ...bigints: string[]): Insertion['columns'] {
  return Object.fromEntries(
    kinds[kind].columns.map(name => [name, bigints.includes(name) ? 'bigint' : 'text']),
  )
}

export async function queryColumn<T extends Value>(
  db: Db,
  sql: string,
  values?: readonly DbValue[],
): Promise<T[]> {
  return (await db.query(sql, values)).map(row => Object.values(row)[0])
}

export async function returnsAny(db: Db, sql: string, values: readonly DbValue[]): Promise<boolean> {
  return (await db.query(sql, values)).length > 0
}

/** Returns the rows that match any of the lists. Empty lists are left out, because Citus would search every shard for each list. */
export function queryAny<Row extends object>(
  db: Db,
  select: string,
  lists: readonly (readonly [column: string, list: readonly string[] | readonly number[]])[],
  order = '',
): Promise<Row[]> | Row[] {
  const given = lists.filter(([, list]) => list.length > 0)
  const parts = given.map(([column], i) => `${select} WHERE ${db.isAmong(column, `$${i + 1}`)}`)
  if (parts.length === 0) return []
  return db.query<Row>(
    parts.join(' UNION ') + order,
    given.map(([, list]) => list),
  )
}

/**
 * Writes words of the code as SQL literals, such as `'draft', 'open'`. With parameters in their place, the database would not use a partial
 * index over these words.
 */
export function literals(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ')
}
