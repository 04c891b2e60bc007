/** When the sources were last asked, and what that says of the records. */
import type { PoolClient } from 'pg'

export async function raiseObserved(client: PoolClient, observedAt: number): Promise<void> {
  await client.query('UPDATE fatura.observation SET last_at = greatest(last_at, $1)', [observedAt])
}

/** Until when the records follow their sources. Whoever saves a stream has the row alone, so that none is overlooked. */
export async function saveFreshness(client: PoolClient, saveStream: () => Promise<unknown>): Promise<void> {
  await client.query('UPDATE fatura.freshness SET synced_at = synced_at')
  await saveStream()
  await client.query(
    'UPDATE fatura.freshness SET synced_at = (SELECT synced_at FROM fatura.current_freshness)',
  )
}
