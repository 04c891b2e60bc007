/** Pools and connections that lead to Citus, where rows are spread over nodes by customer, and the needs of statements there. */
import type pg from 'pg'
import { hasCitus } from './distribute.ts'

const spread = new WeakSet<object>()

/** To be called once, before the pool has a second connection. */
export async function noteWhetherSpread(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    const ask = async <Row extends object>(sql: string) => (await client.query(sql)).rows as Row[]
    if (!(await hasCitus(ask))) return
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

/** Follows a join with given arrays: on Citus, only the shards of these customers are asked then. */
export function ofCustomers(client: object, column: string, customers: string): string {
  return isSpread(client) ? ` AND ${column} = ANY (${customers})` : ''
}
