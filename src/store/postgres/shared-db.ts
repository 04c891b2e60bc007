import type { Pool, QueryConfig } from 'pg'
import { type Db, type Insertion, insertOf } from '../sql/db.ts'
import { explain } from './pool.ts'

/** Names of prepared statements by their text. A text has the same name on every connection. */
const names = new Map<string, string>()

function nameOf(text: string): string {
  const name = names.get(text) ?? `shared-${names.size + 1}`
  names.set(text, name)
  return name
}

/** PostgreSQL's protocol counts parameters with 16 bits. */
const maxParameters = 65_535

export type PostgresDb = ReturnType<typeof createDb>

/**
 * Creates a `Db` over a connection within a transaction, or over a pool. With `isPrepared`, it prepares each statement once and keeps it,
 * so the statements' texts should always be the same.
 */
export function createDb(asked: Pick<Pool, 'query'>, isCitus: boolean, isPrepared = false) {
  async function ask<Row extends object>(question: QueryConfig): Promise<Row[]> {
    return (await explain(asked.query(question))).rows as Row[]
  }

  const query = <Row extends object>(text: string, values: readonly unknown[] = []) =>
    ask<Row>({ text, values: values as unknown[], ...(isPrepared && { name: nameOf(text) }) })

  /** Inserts rows with VALUES, which Citus can split and send to their shards. */
  async function insertToShards<Row extends object>(
    { into, columns, rest }: Insertion,
    rows: readonly (readonly unknown[])[],
  ): Promise<Row[]> {
    const names = Object.keys(columns)
    const atOnce = Math.floor(maxParameters / names.length)
    const written: Row[] = []
    for (let at = 0; at < rows.length; at += atOnce) {
      const some = rows.slice(at, at + atOnce)
      const text = insertOf(into, names, some.length, rest)
      written.push(...(await ask<Row>({ text, values: some.flat() })))
    }
    return written
  }

  return {
    engine: 'postgres',
    query,
    /** Inserts rows with one array for each column, so that the same statement fits any number of rows. */
    async insert<Row extends object>(insertion: Insertion, rows: readonly (readonly unknown[])[]) {
      if (rows.length === 0) return []
      if (isCitus) return insertToShards<Row>(insertion, rows)
      const { into, columns, rest } = insertion
      const list = Object.keys(columns)
      const given = Object.values(columns).map((type, i) => `$${i + 1}::${type}[]`)
      return query<Row>(
        `INSERT INTO ${into} AS stored (${list.join(', ')})
         SELECT * FROM unnest(${given.join(', ')}) AS given (${list.join(', ')}) ${rest}`,
        list.map((_, i) => rows.map(row => row[i])),
      )
    },
    isAmong: (column, list) => `${column} = ANY (${list})`,
    byIndex: () => '',
    async holdNames(alone, shared) {
      await query(
        `SELECT CASE WHEN is_alone THEN pg_advisory_xact_lock(name) ELSE pg_advisory_xact_lock_shared(name) END
         FROM (SELECT hashtextextended(given, 1) AS name, bool_or(is_alone) AS is_alone
           FROM (SELECT unnest($1::text[]) AS given, true AS is_alone UNION ALL SELECT unnest($2::text[]), false) AS wanted
           GROUP BY name ORDER BY name) AS names`,
        [alone, shared],
      )
      return true
    },
    isCitus,
    customersAsJson: 'to_json(customers)::text AS customers',
    customersFromJson: json => json && JSON.parse(json),
  } satisfies Db
}
