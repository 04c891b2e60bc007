import type { Pool } from 'pg'
import { operatorReads } from '../shared/operator-reads.ts'
import { check, recount } from '../shared/recount.ts'
import type { OnRecounted, OperatorStore } from '../store.ts'
import { noteWhetherCitus } from './citus-connection.ts'
import { explain, openOperatorPool, rollBack } from './pool.ts'
import { checkSchema } from './schema-version.ts'
import { createDb } from './shared-db.ts'
import { walkPostgres } from './walk-invoices.ts'

export async function openPostgresOperator(url: string): Promise<OperatorStore> {
  return readsOf(openOperatorPool(url))
}

export async function readsOf(pool: Pool): Promise<OperatorStore> {
  const db = createDb(pool)
  try {
    await checkSchema(sql => db.query(sql))
    await noteWhetherCitus(pool)
  } catch (error) {
    await pool.end()
    throw error
  }
  return {
    ...operatorReads(db),
    walkInvoices: walk => walkPostgres(pool, walk),
    checkCounts: onProgress => recountAll(pool, null, onProgress),
    async close() {
      await pool.end()
    },
  }
}

export function recountAll(
  pool: Pool,
  repair: ((customerId: string) => Promise<number>) | null,
  onProgress?: OnRecounted,
): Promise<number> {
  return recount(createDb(pool), customers => checkByIndex(pool, customers), repair, onProgress)
}

/** Never by whole tables: a small one would be read for some customers again and again. */
async function checkByIndex(pool: Pool, customers: readonly string[]) {
  const client = await explain(pool.connect())
  try {
    await explain(client.query('BEGIN READ ONLY; SET LOCAL enable_seqscan = off'))
    return await check(createDb(client), customers)
  } finally {
    await rollBack(client)
  }
}
