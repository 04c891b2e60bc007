import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Db } from '../shared/db.ts'
import { translate } from './failures.ts'

/** Runs the statements that the engines share; each is prepared once. */
export function createDb(db: DatabaseSync, path: string): Db {
  const prepared = new Map<string, StatementSync>()
  function prepare(sql: string): StatementSync {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = db.prepare(sql.replaceAll('fatura.', '').replaceAll(/\$(\d+)/g, '?$1'))
    prepared.set(sql, statement)
    return statement
  }
  return {
    async query<Row extends object>(sql: string, ...values: (string | number | null)[]): Promise<Row[]> {
      return translate(path, () => prepare(sql).all(...values)) as unknown as Row[]
    },
    // A write transaction is the only one: nobody else changes anything.
    keepRow: '',
    customersAsJson: 'customers',
    customersFromJson: value => value,
  }
}
