import { type Content, type Kind, type KindName, kinds, type Value } from '../contents.ts'
import type { EngineName } from './filters.ts'

export type DbValue = Value | readonly string[] | readonly number[]

/** A connection for the statements that every engine shares. */
export interface Db {
  engine: EngineName
  /** As PostgreSQL writes it; an engine without schemas leaves `fatura.` out. A value that is a list is for `isAmong`. */
  query<Row extends object>(sql: string, values?: readonly DbValue[]): Promise<Row[]>
  /** Inserts rows, each with its values in the order of the columns. No two of them have the same key. */
  insert(insertion: Insertion, rows: readonly (readonly (Value | bigint)[])[]): Promise<unknown>
  /** Whether a column's value is in a list, as in `isAmong('id', '$1')`. */
  isAmong(column: string, list: string): string
  /** Follows a table's name, for an engine that must be given the index of few of its rows. */
  byIndex(name: string): string
  /** Holds names until the transaction ends, all in one order: alone, or shared. Returns whether others may have changed what was read before. */
  holdNames(alone: readonly string[], shared: readonly string[]): Promise<boolean>
  /** Whether rows lie on several nodes: each sends as many as are asked for in all. */
  isCitus: boolean
  /** The column `customers` of a token or a key as JSON text, under its own name. */
  customersAsJson: string
  /** The value of that column from JSON text. */
  customersFromJson(json: string | null): string | readonly string[] | null
}

export interface Insertion {
  /** As in `fatura.documents`; `stored` names its row in `rest`. */
  into: string
  columns: Readonly<Record<string, 'text' | 'bigint' | 'numeric' | 'bytea'>>
  /** What follows the rows, such as `ON CONFLICT DO NOTHING`. */
  rest: string
}

/** Places of values in a statement, as in `$1, $2`, after so many others. */
export function places(count: number, before = 0): string {
  return Array.from({ length: count }, (_, i) => `$${before + i + 1}`).join(', ')
}

/** A statement that inserts so many rows. */
export function insertOf(into: string, columns: readonly string[], rows: number, rest: string): string {
  const given = Array.from({ length: rows }, (_, row) => `(${places(columns.length, row * columns.length)})`)
  return `INSERT INTO ${into} AS stored (${columns.join(', ')}) VALUES ${given.join(', ')} ${rest}`
}

/** Inserts things of a kind; `rest` follows them, as in an `Insertion`. */
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

/** The first column of each row. */
export async function queryColumn<T extends Value>(
  db: Db,
  sql: string,
  values?: readonly DbValue[],
): Promise<T[]> {
  return (await db.query(sql, values)).map(row => Object.values(row)[0])
}

/** Whether a statement returns any row. */
export async function returnsAny(db: Db, sql: string, values: readonly DbValue[]): Promise<boolean> {
  return (await db.query(sql, values)).length > 0
}

/** Rows by any of some lists. An empty one is left out: on Citus, each is looked for at every shard. */
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

/** Words of our own as SQL has them, as in `'draft', 'open'`: an index over some of them is found by its very text. */
export function literals(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ')
}
