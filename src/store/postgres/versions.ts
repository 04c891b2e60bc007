/** What tells that something changed, and when the sources were last asked. */
import type { PoolClient } from 'pg'

/** The clock keeps a version unique even across a store restored from a backup; the sum keeps it rising. */
export async function raiseVersions(client: PoolClient, customerIds: readonly string[]): Promise<void> {
  if (customerIds.length === 0) return
  await client.query({
    name: 'raise-versions',
    text: `
      INSERT INTO fatura.customers AS stored (customer_id, version)
      SELECT customer_id, $2 FROM unnest($1::text[]) AS changed (customer_id) ORDER BY customer_id
      ON CONFLICT (customer_id) DO UPDATE SET version = greatest(stored.version + 1, excluded.version)`,
    values: [[...new Set(customerIds)], Date.now()],
  })
}

export async function raiseObserved(client: PoolClient, observedAt: number): Promise<void> {
  await client.query('UPDATE fatura.observation SET last_at = greatest(last_at, $1)', [observedAt])
}
