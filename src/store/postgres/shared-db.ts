import type { QueryConfig, QueryResult } from 'pg'
import type { Db } from '../shared/db.ts'
import { translate } from './pool.ts'
import { dayText } from './search-days.ts'

/** The same text has the same name on every connection. */
const names = new Map<string, string>()

function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = `shared-${names.size + 1}`
  names.set(text, name)
  return name
}

/**
 * What the statements that the engines share run on: a connection within a transaction, or a pool. What is prepared is
 * kept by the connection: only for texts that are always the same.
 */
export function createDb(asked: { query(query: QueryConfig): Promise<QueryResult> }, isPrepared = false): Db {
  async function ask(text: string, values: unknown[]) {
    try {
      return (await asked.query({ text, values, ...(isPrepared && { name: nameOf(text) }) })).rows
    } catch (error) {
      throw translate(error)
    }
  }
  return {
    query: (sql, ...values) => ask(sql, values),
    async insert({ into, columns, onConflict }, rows) {
      if (rows.length === 0) return
      const given = Object.values(columns).map((type, i) => `$${i + 1}::${type}[]`)
      await ask(
        `INSERT INTO ${into} AS stored (${Object.keys(columns).join(', ')})
         SELECT * FROM unnest(${given.join(', ')}) ON CONFLICT ${onConflict}`,
        given.map((_, i) => rows.map(row => row[i])),
      )
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
    keepRow: 'FOR SHARE',
    readTexts: `
      SELECT s.day AS first, ${dayText} AS text FROM fatura.search_days s
      WHERE s.customer_id = $1 AND s.day >= $2 ORDER BY s.day LIMIT 50`,
    customersAsJson: 'to_json(customers)::text AS customers',
    customersFromJson: value =>
      `CASE WHEN ${value}::text IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(${value}::text::json)) END`,
  }
}
