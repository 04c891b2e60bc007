/**
 * Runs the transactions of a writer. A transaction that deadlocked runs again. Rows that all writers share are written in the same message
 * as the commit.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg, { type PoolClient } from 'pg'
import type { Value } from '../contents.ts'
import { leaseWrites } from '../sql/connector-state.ts'
import { credentialWrites } from '../sql/credentials.ts'
import { repairCustomer } from '../sql/recount.ts'
import { lifeWrites } from '../sql/shared-rows.ts'
import { startWriting, type Writing } from '../sql/transaction-writes.ts'
import { webhookCommands } from '../sql/webhooks.ts'
import type { WriteStore } from '../store.ts'
import { openDb, readsOf, recountAll } from './operator.ts'
import { explain, isCrossing, isReadOnlyRefusal, openWritePool, rollBack } from './pool.ts'
import { askOf, checkSchema, schema } from './schema.ts'
import { createDb } from './shared-db.ts'
import { engineWrites } from './write-invoices.ts'
import { beginWriting } from './write-limits.ts'

const maxRepeats = 5

export async function openPostgresWriter(url: string, lockPatience?: number): Promise<WriteStore> {
  const pool = openWritePool(url, lockPatience)
  const db = await openDb(pool)

  /**
   * Commits all changes of `work`, or none. When two transactions wait for each other, the server rolls one of them back, and it runs
   * again.
   */
  async function transact<T>(work: (writing: Writing) => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats++) {
      try {
        return await transactOnce(pool, db.isCitus, work)
      } catch (error) {
        if (!isCrossing(error) || repeats === maxRepeats) throw error
        await sleep(Math.random() * 100 * 2 ** repeats)
      }
    }
  }

  return {
    ...readsOf(pool, db),
    ...leaseWrites(db),
    ...credentialWrites(db),
    saveToken: token => transact(writing => credentialWrites(writing.db).saveToken(token)),
    saveKey: key => transact(writing => credentialWrites(writing.db).saveKey(key)),
    ...webhookCommands(db),
    ...lifeWrites(db),
    transaction: work => transact(({ tx }) => work(tx)),
    repairCounts: onProgress =>
      recountAll(
        pool,
        db,
        customerId => transact(({ db, counters }) => repairCustomer(db, counters, customerId)),
        onProgress,
      ),
  }
}

async function transactOnce<T>(
  pool: pg.Pool,
  isCitus: boolean,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const client = await explain(pool.connect())
  try {
    await begin(client, isCitus)
    const db = createDb(client, isCitus, true)
    const writing = startWriting(db, engineWrites(db))
    const result = await work(writing)
    await explain(commit(client, await writing.finish()))
    client.release()
    return result
  } catch (error) {
    // When a server refuses writes, its connection is closed. With several hosts, the next connection goes to another one.
    await rollBack(client, isReadOnlyRefusal(error) ? (error as Error) : undefined)
    throw error
  }
}

/** Begins a transaction and checks the schema's version. Rows written by another version's rules would be wrong for all readers. */
async function begin(client: PoolClient, isCitus: boolean): Promise<void> {
  const results = (await explain(client.query(beginWriting(isCitus)))) as unknown as pg.QueryResult<{
    version: number
  }>[]
  if (results.at(-1)?.rows[0]?.version !== schema.migrations.length) await checkSchema(askOf(client))
}

/** Sends the last statements and the commit in one message. If the process stops after this, no other writer has to wait for it. */
async function commit(client: PoolClient, last: Awaited<ReturnType<Writing['finish']>>): Promise<void> {
  // A message with several statements cannot have parameters.
  const statements = last.map(({ sql, values }) =>
    sql.replaceAll(/\$(\d+)/g, (_, number) => literal(values[number - 1] ?? null)),
  )
  await client.query([...statements, 'COMMIT'].join(';\n'))
}

function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return pg.escapeLiteral(value.replaceAll('\0', ''))
  if (!Number.isSafeInteger(value)) throw new Error(`A moment must be a whole number, not ${value}.`)
  return String(value)
}
