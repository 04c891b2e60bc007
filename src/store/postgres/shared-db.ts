import type { Db } from '../shared/db.ts'
import { type Asked, insertRows, nameOf } from './insert-rows.ts'
import { translate } from './pool.ts'
import { renewTexts } from './search-days.ts'
import { isSpread } from './spread.ts'

/**
 * What the statements that the engines share run on: a connection within a transaction, or a pool. What is prepared is
 * kept by the connection: only for texts that are always the same.
 */
export function createDb(asked: Asked, isPrepared = false): Db {
  async function ask(text: string, values: unknown[]) {
    try {
      return (await asked.query({ text, values, ...(isPrepared && { name: nameOf(text) }) })).rows
    } catch (error) {
      throw translate(error)
    }
  }
  return {
    query: (sql, ...values) => ask(sql, values),
    async insert(insertion, rows) {
      try {
        await insertRows(asked, insertion, rows, isPrepared)
      } catch (error) {
        throw translate(error)
      }
    },
    isAmong: (column, list) => `${column} = ANY (${list})`,
    byIndex: () => '',
    async holdNames(how, names) {
      const lock = how === 'alone' ? 'pg_advisory_xact_lock' : 'pg_advisory_xact_lock_shared'
      await ask(
        `SELECT ${lock}(name) FROM (
           SELECT DISTINCT hashtextextended(given, 1) AS name FROM unnest($1::text[]) given ORDER BY name) names`,
        [names()],
      )
      return true
    },
    isSpread: () => isSpread(asked),
    keepRow: 'FOR SHARE',
    async renewTexts(customerId) {
      try {
        await renewTexts(asked, customerId)
      } catch (error) {
        throw translate(error)
      }
    },
    customersAsJson: 'to_json(customers)::text AS customers',
    customersFromJson: json => json && JSON.parse(json),
  }
}
