/** For commands that only look: sessions that cannot write. */
import type { Pool } from 'pg'
import { changeReads } from '../shared/changes.ts'
import { operatorReads } from '../shared/operator-reads.ts'
import type { OperatorStore } from '../store.ts'
import { openOperatorPool } from './pool.ts'
import { feedCalls, feedStatements } from './read-changes.ts'
import { recount } from './recount.ts'
import { checkSchema } from './schema-version.ts'
import { createDb } from './shared-db.ts'
import { isSpread, noteWhetherSpread } from './spread.ts'
import { walkPostgres } from './walk-invoices.ts'

export async function openPostgresOperator(url: string): Promise<OperatorStore> {
  return readsOf(openOperatorPool(url))
}

/** Reads of an operator over these connections, on a schema of exactly this version. */
export async function readsOf(pool: Pool): Promise<OperatorStore> {
  const db = createDb(pool)
  try {
    await checkSchema(sql => db.query(sql))
    await noteWhetherSpread(pool)
  } catch (error) {
    await pool.end()
    throw error
  }
  return {
    ...operatorReads(db),
    ...changeReads(
      feedStatements((name, ...values) => db.query(feedCalls[name], ...(values as [])), isSpread(pool)),
    ),
    walkInvoices: walk => walkPostgres(pool, walk),
    checkCounts: onProgress => recount(pool, false, onProgress),
    async close() {
      await pool.end()
    },
  }
}
