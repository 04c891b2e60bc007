import type { Db } from '../shared/db.ts'
import { isCitus } from './citus-connection.ts'
import { type Asked, insertRows, nameOf } from './insert-rows.ts'
import { translate } from './pool.ts'

/** In bytes. On Citus every shard is asked for the same places, up to the end of the largest. */
const wholeTable = "pg_relation_size('fatura.invoices')"
const largestShard = `(SELECT max(shard_size) FROM citus_shards WHERE table_name = 'fatura.invoices'::regclass)`

/** How many pages there are, and how many rows a page may hold: each takes 28 bytes at least. */
const placesOf = (bytes: string) => `
  SELECT floor(${bytes} / block)::float8 AS pages, floor(block / 28)::float8 AS slots
  FROM (SELECT current_setting('block_size')::bigint AS block) AS page`

/** Over a connection within a transaction, or a pool. `isPrepared` is for texts that are always the same. */
export function createDb(asked: Asked, isPrepared = false): Db {
  async function ask(text: string, values: readonly unknown[] = []) {
    try {
      return (
        await asked.query({ text, values: values as unknown[], ...(isPrepared && { name: nameOf(text) }) })
      ).rows
    } catch (error) {
      throw translate(error)
    }
  }
  return {
    engine: 'postgres',
    query: ask,
    async insert(insertion, rows) {
      try {
        await insertRows(asked, insertion, rows, isPrepared)
      } catch (error) {
        throw translate(error)
      }
    },
    isAmong: (column, list) => `${column} = ANY (${list})`,
    byIndex: () => '',
    async holdNames(names) {
      const { alone, shared } = names()
      await ask(
        `SELECT CASE WHEN is_alone THEN pg_advisory_xact_lock(name) ELSE pg_advisory_xact_lock_shared(name) END
         FROM (SELECT hashtextextended(given, 1) AS name, bool_or(is_alone) AS is_alone
           FROM (SELECT unnest($1::text[]) AS given, true AS is_alone UNION ALL SELECT unnest($2::text[]), false) AS wanted
           GROUP BY name ORDER BY name) AS names`,
        [alone, shared],
      )
      return true
    },
    isCitus: () => isCitus(asked),
    keepRow: 'FOR SHARE',
    async readAtPoints(points) {
      const [{ pages, slots }] = await ask(placesOf(isCitus(asked) ? largestShard : wholeTable), [])
      const tids = points.map(point => {
        const place = Math.floor(point * pages * slots)
        return `(${Math.floor(place / slots)},${1 + (place % slots)})`
      })
      return ask('SELECT customer_id, id FROM fatura.invoices WHERE ctid = ANY ($1::tid[])', [tids])
    },
    customersAsJson: 'to_json(customers)::text AS customers',
    customersFromJson: json => json && JSON.parse(json),
  }
}
