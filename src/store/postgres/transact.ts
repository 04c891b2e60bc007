/** Transactions of a writer: what happens to two that cross, and how one ends: what all writers share is written in one message with the commit. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg, { type PoolClient } from 'pg'
import type { Value } from '../contents.ts'
import { type Counting, keepCounts } from '../shared/counts.ts'
import { type FreshnessStatements, gatherSharedRows, type SharedRows } from '../shared/shared-rows.ts'
import { isCitus } from './citus-connection.ts'
import { customerWrites } from './counts.ts'
import { explain, isCrossing, isReadOnlyRefusal, rollBack } from './pool.ts'
import { askOf, checkSchema, schema } from './schema-version.ts'
import { createDb, type PostgresDb } from './shared-db.ts'
import { beginWriting } from './write-limits.ts'

export interface Writing {
  db: PostgresDb
  counting: Counting
  shared: SharedRows
}

const repeatsAtMost = 5

/** Commits all that `work` did, or nothing. Of two that wait for each other the server ends one, which is done again. */
export async function transact<T>(pool: pg.Pool, work: (writing: Writing) => Promise<T>): Promise<T> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await transactOnce(pool, work)
    } catch (error) {
      if (!isCrossing(error) || repeats === repeatsAtMost) throw error
      await sleep(Math.random() * 100 * 2 ** repeats)
    }
  }
}

async function transactOnce<T>(pool: pg.Pool, work: (writing: Writing) => Promise<T>): Promise<T> {
  const client = await explain(pool.connect())
  try {
    await begin(client)
    const [db, shared] = [createDb(client, true), gatherSharedRows()]
    const counting = keepCounts(db, customerWrites(db), shared)
    const result = await work({ db, counting, shared })
    await counting.flush()
    await explain(commit(client, shared))
    client.release()
    return result
  } catch (error) {
    // A server that takes no writes any more is left: of several hosts, another one does.
    await rollBack(client, isReadOnlyRefusal(error) ? (error as Error) : undefined)
    throw error
  }
}

/** Rows that are written by another version's rules would be wrong for all who read them. */
async function begin(client: PoolClient): Promise<void> {
  const told = (await explain(client.query(beginWriting(isCitus(client))))) as unknown as pg.QueryResult<{
    version: number
  }>[]
  if (told.at(-1)?.rows[0]?.version !== schema.migrations.length) await checkSchema(askOf(client))
}

/** The row of the last observation is locked for the freshness. Streams are read first: other nodes of Citus do not know them. */
const freshness: FreshnessStatements = {
  hold: ['UPDATE fatura.observation SET last_at = last_at WHERE only_one'],
  save: `DO $body$ DECLARE v_synced_at bigint; BEGIN
    SELECT synced_at INTO v_synced_at FROM fatura.current_freshness;
    UPDATE fatura.freshness SET synced_at = v_synced_at WHERE only_one AND synced_at IS DISTINCT FROM v_synced_at;
  END $body$`,
}

/** Even where the process stands still from here on, nobody waits for it. */
async function commit(client: PoolClient, shared: SharedRows): Promise<void> {
  // Several statements in one message take no parameters.
  const statements = shared
    .statements(freshness)
    .map(({ sql, values }) => sql.replaceAll(/\$(\d+)/g, (_, place) => literal(values[place - 1] ?? null)))
  await client.query([...statements, 'COMMIT'].join(';\n'))
}

function literal(value: Value): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return pg.escapeLiteral(value.replaceAll('\0', ''))
  if (!Number.isSafeInteger(value)) throw new Error(`A moment must be a whole number, not ${value}.`)
  return String(value)
}
