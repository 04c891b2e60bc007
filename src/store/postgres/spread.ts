/** Pools and connections that lead to Citus, where rows are spread over nodes by customer, and the needs of statements there. */
import type pg from 'pg'
import { hasCitus } from './distribute.ts'
import { askOf } from './schema-version.ts'

const spread = new WeakSet<object>()

/** To be called once, before the pool has a second connection. */
export async function noteWhetherSpread(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    if (!(await hasCitus(askOf(client)))) return
    for (const known of [client, pool]) noteSpread(known)
    pool.on('connect', noteSpread)
  } finally {
    client.release()
  }
}

export function noteSpread(client: object): void {
  spread.add(client)
}

export function isSpread(client: object): boolean {
  return spread.has(client)
}
