import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Db, type DbValue, insertOf } from '../sql/db.ts'
import type { StoreFile } from './database.ts'
import { translate } from './failures.ts'

/** Converts a statement that the engines share to SQLite's dialect. The schema's name is removed, and `$1` becomes `?1`. */
export function writeForSqlite(sql: string): string {
  return sql.replaceAll('fatura.', '').replaceAll(/\$(\d+)/g, '?$1')
}

/**
 * Maximum number of prepared statements that are kept. Filters have a few dozen combinations. Only copies and searches with many words make
 * more.
 */
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
    db.checkNowAndThen()
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
    // SQLite runs only one write transaction at a time, so no other transaction can change anything.
    holdNames: async () => false,
    isCitus: false,
    customersAsJson: 'customers',
    customersFromJson: json => json,
  }
}
