import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Db, type DbValue, insertOf } from '../sql/db.ts'
import type { StoreFile } from './database.ts'
import { translate } from './failures.ts'

/** A statement of those that the engines share, as SQLite reads it: without a schema, and with its own marks for values. */
export function writeForSqlite(sql: string): string {
  return sql.replaceAll('fatura.', '').replaceAll(/\$(\d+)/g, '?$1')
}

/** Filters come in a few dozen combinations; only searches of many words, and copies, make more. */
const maxPrepared = 256

export function prepareOnce(db: DatabaseSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>()
  return sql => {
    let statement = prepared.get(sql)
    if (statement === undefined) {
      if (prepared.size >= maxPrepared) prepared.clear()
      statement = db.prepare(writeForSqlite(sql))
      prepared.set(sql, statement)
    }
    return statement
  }
}

export function createDb(db: StoreFile): Db {
  const prepare = prepareOnce(db)
  const query = async <Row extends object>(sql: string, values: readonly DbValue[] = []): Promise<Row[]> => {
    db.look()
    const given = values.map(value => (Array.isArray(value) ? JSON.stringify(value) : value))
    return translate(db.path, () => prepare(sql).all(...(given as string[]))) as unknown as Row[]
  }
  return {
    engine: 'sqlite',
    query,
    async insert({ into, columns, rest }, rows) {
      translate(db.path, () => {
        const statement = prepare(insertOf(into, Object.keys(columns), 1, rest))
        for (const row of rows) statement.run(...row)
      })
    },
    isAmong: (column, list) => `${column} IN (SELECT value FROM json_each(${list}))`,
    byIndex: name => `INDEXED BY ${name}`,
    // A write transaction is the only one: nobody else changes anything.
    holdNames: async () => false,
    isCitus: false,
    customersAsJson: 'customers',
    customersFromJson: json => json,
  }
}
