/**
 * Calls a function of `functions.sql` where customers' rows lie. One server needs one call, and Citus one call per shard with some of the
 * customers.
 */
import { parameterList } from '../sql/db.ts'
import type { PostgresDb } from './shared-db.ts'

/**
 * Returns the result of each call with its items. On Citus, the call is part of a query for one customer, which brings it to the right
 * shard. The query returns one row even when the customer has no row.
 * Citus takes the call for a read. Writers must therefore lock the customers first, with a statement that Citus knows as a write. The lock
 * and the call then use the same connections, which commit in two phases.
 */
export async function callAtShards<Item, Result>(
  db: PostgresDb,
  name: string,
  items: readonly Item[],
  customerOf: (item: Item) => string,
  valuesOf: (some: readonly Item[]) => readonly unknown[],
): Promise<{ some: readonly Item[]; result: Result }[]> {
  const answers = []
  for (const some of await splitByShard(db, items, customerOf)) {
    const [first] = some
    if (first === undefined) continue
    const values = [customerOf(first), db.isCitus, ...valuesOf(some)]
    const route = db.isCitus ? ' FROM fatura.customers WHERE customer_id = $1 HAVING true' : ''
    const [row] = await db.query<{ result: Result }>(
      `SELECT fatura.${name}(${parameterList(values.length)}) AS result${route}`,
      values,
    )
    answers.push({ some, result: row?.result as Result })
  }
  return answers
}

async function splitByShard<Item>(
  db: PostgresDb,
  items: readonly Item[],
  customerOf: (item: Item) => string,
): Promise<Iterable<readonly Item[]>> {
  const customers = [...new Set(items.map(customerOf))]
  if (!db.isCitus || customers.length <= 1) return [items]
  const rows = await db.query<{ shard: number }>(
    `SELECT get_shard_id_for_distribution_column('fatura.invoices', given.customer_id) AS shard
     FROM unnest($1::text[]) WITH ORDINALITY AS given (customer_id, place) ORDER BY given.place`,
    [customers],
  )
  const shards = new Map(customers.map((customer, i) => [customer, rows[i]?.shard]))
  return Map.groupBy(items, item => shards.get(customerOf(item))).values()
}
