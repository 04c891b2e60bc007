/** Rows in bulk, as arrays: one statement for any number of them. Citus instead takes each row apart to its shard. */
import type { QueryConfig, QueryResult, QueryResultRow } from 'pg'
import type { Insertion } from '../shared/db.ts'
import { isCitus } from './citus-connection.ts'

export interface Asked {
  // biome-ignore lint/suspicious/noExplicitAny: what a row is like is told by the statement alone.
  query<Row extends QueryResultRow = any>(query: QueryConfig): Promise<QueryResult<Row>>
}

/** The same text has the same name on every connection. */
const names = new Map<string, string>()

export function nameOf(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const name = `shared-${names.size + 1}`
  names.set(text, name)
  return name
}

/** The protocol counts parameters with 16 bits. */
const parametersAtMost = 65_535

export async function insertRows<Row extends QueryResultRow>(
  asked: Asked,
  insertion: Insertion & { returning?: string },
  rows: readonly (readonly unknown[])[],
  isPrepared = true,
): Promise<Row[]> {
  if (rows.length === 0) return []
  if (isCitus(asked)) return insertToShards(asked, insertion, rows)
  const { into, columns, onConflict, returning } = insertion
  const list = Object.keys(columns)
  const given = Object.values(columns).map((type, i) => `$${i + 1}::${type}[]`)
  const text = `
    INSERT INTO ${into} AS stored (${list.join(', ')})
    SELECT * FROM unnest(${given.join(', ')}) AS given (${list.join(', ')})
    ON CONFLICT ${onConflict}${returning === undefined ? '' : ` RETURNING ${returning}`}`
  const answer = await asked.query<Row>({
    text,
    values: list.map((_, i) => rows.map(row => row[i])),
    ...(isPrepared && { name: nameOf(text) }),
  })
  return answer.rows
}

async function insertToShards<Row extends QueryResultRow>(
  asked: Asked,
  { into, columns, onConflict, returning }: Insertion & { returning?: string },
  rows: readonly (readonly unknown[])[],
): Promise<Row[]> {
  const types = Object.values(columns)
  const atOnce = Math.floor(parametersAtMost / types.length)
  const written: Row[] = []
  for (let at = 0; at < rows.length; at += atOnce) {
    const some = rows.slice(at, at + atOnce)
    const places = some.map((_, row) =>
      types.map((type, i) => `$${row * types.length + i + 1}::${type}`).join(', '),
    )
    const answer = await asked.query<Row>({
      text: `
        INSERT INTO ${into} AS stored (${Object.keys(columns).join(', ')}) VALUES ${places.map(row => `(${row})`).join(', ')}
        ON CONFLICT ${onConflict}${returning === undefined ? '' : ` RETURNING ${returning}`}`,
      values: some.flat(),
    })
    written.push(...answer.rows)
  }
  return written
}
