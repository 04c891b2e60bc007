/** Pools and connections that lead to Citus, where rows are spread over nodes by customer, and the needs of statements there. */
import type pg from 'pg'
import { hasCitus } from './distribute.ts'
import { askOf } from './schema-version.ts'

const onCitus = new WeakSet<object>()

/** To be called once, before the pool has a second connection. */
export async function noteWhetherCitus(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    if (!(await hasCitus(askOf(client)))) return
    for (const known of [client, pool]) noteCitus(known)
    pool.on('connect', noteCitus)
  } finally {
    client.release()
  }
}

export function noteCitus(client: object): void {
  onCitus.add(client)
}

export function isCitus(client: object): boolean {
  return onCitus.has(client)
}
