import type { Pool } from 'pg'
import { batchSizeOf, operatorReads, walkStatements } from '../sql/operator-reads.ts'
import { check, recount } from '../sql/recount.ts'
import type { InvoiceWalk, OnRecounted, OperatorStore, WalkedInvoice } from '../store.ts'
import { hasCitus } from './distribute.ts'
import { explain, openOperatorPool, read, rollBack } from './pool.ts'
import { checkSchema } from './schema.ts'
import { createDb, type PostgresDb } from './shared-db.ts'

export async function openPostgresOperator(url: string): Promise<OperatorStore> {
  const pool = openOperatorPool(url)
  return readsOf(pool, await openDb(pool))
}

/** Opens the database of a pool. Closes the pool when the schema does not have this version. */
export async function openDb(pool: Pool): Promise<PostgresDb> {
  const ask = <Row extends object>(text: string) => read<Row>(pool, { text })
  try {
    await checkSchema(ask)
    return createDb(pool, await hasCitus(ask))
  } catch (error) {
    await pool.end()
    throw error
  }
}

export function readsOf(pool: Pool, db: PostgresDb): OperatorStore {
  return {
    ...operatorReads(db),
    walkInvoices: walk => walkInvoices(pool, walk),
    checkCounts: onProgress => recountAll(pool, db, null, onProgress),
    close: () => pool.end(),
  }
}

export function recountAll(
  pool: Pool,
  db: PostgresDb,
  repair: ((customerId: string) => Promise<number>) | null,
  onProgress?: OnRecounted,
): Promise<number> {
  /** Compares by index and never reads whole tables. Otherwise the planner would read a small table again for every group of customers. */
  async function checkByIndex(customers: readonly string[]) {
    const client = await explain(pool.connect())
    try {
      await explain(client.query('BEGIN READ ONLY; SET LOCAL enable_seqscan = off'))
      return await check(createDb(client, db.isCitus), customers)
    } finally {
      await rollBack(client)
    }
  }
  return recount(db, checkByIndex, repair, onProgress)
}

/**
 * Begins a long read. Its receiver may be slow, so the transaction may be idle for long. Rows come in the order of an index, because
 * sorting all rows first would fill the server's disk.
 */
const beginWalk = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL idle_in_transaction_session_timeout = '1h'; SET LOCAL jit = off;
  SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`

/** Reads invoices in one transaction, so that all rows are of one snapshot. A cursor returns them in batches. */
async function* walkInvoices(pool: Pool, walk: InvoiceWalk): AsyncGenerator<WalkedInvoice[]> {
  const client = await explain(pool.connect())
  const size = batchSizeOf(walk)
  try {
    await explain(client.query(beginWalk))
    for (const { sql, values } of walkStatements(walk, 'postgres')) {
      await explain(client.query(`DECLARE walk NO SCROLL CURSOR FOR ${sql}`, values))
      for (;;) {
        const { rows } = await explain(client.query<WalkedInvoice>(`FETCH ${size} FROM walk`))
        if (rows.length > 0) yield rows
        if (rows.length < size) break
      }
      await explain(client.query('CLOSE walk'))
    }
  } finally {
    await rollBack(client)
  }
}
