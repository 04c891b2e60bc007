/** Calls a function of `functions.sql` where customers' rows lie: once on one server, on Citus once a shard that has any. */
import type { PoolClient } from 'pg'
import { isCitus } from './citus-connection.ts'

/**
 * Returns the answer of each call, with its items. Citus passes the function on as part of a question for a customer, which
 * has one answer whether there is such a row or not. It takes that for a read: who writes has locked the customers before,
 * by a statement that Citus knows to write. So the same connections are used, and commit in two phases.
 */
export async function callAtShards<Item, Told>(
  client: PoolClient,
  name: string,
  items: readonly Item[],
  customerOf: (item: Item) => string,
  valuesOf: (some: readonly Item[]) => readonly unknown[],
): Promise<{ some: readonly Item[]; told: Told }[]> {
  const answers = []
  for (const some of await splitByShard(client, items, customerOf)) {
    const [first] = some
    if (first === undefined) continue
    const values = [customerOf(first), isCitus(client), ...valuesOf(some)]
    const places = values.map((_, i) => `$${i + 1}`).join(', ')
    const place = isCitus(client) ? ' FROM fatura.customers WHERE customer_id = $1 HAVING true' : ''
    const { rows } = await client.query<{ told: Told }>({
      name,
      text: `SELECT fatura.${name}(${places}) AS told${place}`,
      values,
    })
    answers.push({ some, told: rows[0]?.told as Told })
  }
  return answers
}

async function splitByShard<Item>(
  client: PoolClient,
  items: readonly Item[],
  customerOf: (item: Item) => string,
): Promise<Iterable<readonly Item[]>> {
  const customers = [...new Set(items.map(customerOf))]
  if (!isCitus(client) || customers.length <= 1) return [items]
  const { rows } = await client.query<{ shard: number }>({
    name: 'find-shards',
    text: `
      SELECT get_shard_id_for_distribution_column('fatura.invoices', given.customer_id) AS shard
      FROM unnest($1::text[]) WITH ORDINALITY AS given (customer_id, place) ORDER BY given.place`,
    values: [customers],
  })
  const shards = new Map(customers.map((customer, i) => [customer, rows[i]?.shard]))
  return Map.groupBy(items, item => shards.get(customerOf(item))).values()
}
