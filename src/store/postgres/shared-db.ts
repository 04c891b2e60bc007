import type { QueryResult } from 'pg'
import type { Db } from '../shared/db.ts'
import { translate } from './pool.ts'

/** What the statements that the engines share run on: a connection within a transaction, or a pool. */
export function createDb(ask: (sql: string, values: unknown[]) => Promise<QueryResult>): Db {
  return {
    async query(sql, ...values) {
      try {
        return (await ask(sql, values)).rows
      } catch (error) {
        throw translate(error)
      }
    },
    keepRow: 'FOR SHARE',
    customersAsJson: 'to_json(customers)::text AS customers',
    customersFromJson: value =>
      `CASE WHEN ${value}::text IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(${value}::text::json)) END`,
  }
}
