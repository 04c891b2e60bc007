/** Brings a database to this version's schema, one migration a transaction, one process at a time. */
import type { PoolClient } from 'pg'
import { whatServerLacks } from '../facts.ts'
import { StoreError, schemaMismatch } from '../store.ts'
import { customerFunctions } from './functions.ts'
import { openWritePool, translate } from './pool.ts'
import { distributedTables, migrations, referenceTables } from './schema.ts'
import { schemaVersion } from './schema-version.ts'

/** Any number, as long as it is always this one. */
const lock = 7_261_328_547

export async function migratePostgres(url: string): Promise<{ from: number; to: number }> {
  const pool = openWritePool(url)
  try {
    const client = await pool.connect()
    try {
      await checkServer(client)
      const from = await inLock(client, () => readVersion(client))
      if (from > schemaVersion) throw new StoreError(schemaMismatch('The database', from, schemaVersion))
      for (let version = from; version < schemaVersion; version++)
        await inLock(client, () => runMigration(client, version))
      await inLock(client, () => distribute(client))
      return { from, to: schemaVersion }
    } finally {
      client.release()
    }
  } catch (error) {
    throw translate(error)
  } finally {
    await pool.end()
  }
}

/** Before anything is made: what cannot be used is left as it is. */
async function checkServer(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ major: number; encoding: string }>(
    `SELECT current_setting('server_version_num')::integer / 10000 AS major, current_setting('server_encoding') AS encoding`,
  )
  const [server] = rows
  const lack = server === undefined ? null : whatServerLacks(server)
  if (lack !== null) throw new StoreError(`The database cannot be used: ${lack.found}. ${lack.next}`)
}

/** A transaction that holds the migrations' lock: a kill at any moment leaves a whole version behind. */
async function inLock<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN')
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [lock])
    // A step may rewrite a large table, and what is built for an index takes its time.
    await client.query('SET LOCAL statement_timeout = 0')
    const result = await work()
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function readVersion(client: PoolClient): Promise<number> {
  // Asked first, since to create needs rights even where there is nothing to create.
  const { rows: found } = await client.query("SELECT to_regclass('fatura.migrations') AS found")
  if (found[0].found === null) {
    await client.query('CREATE SCHEMA IF NOT EXISTS fatura')
    await client.query('CREATE TABLE fatura.migrations (version integer PRIMARY KEY)')
  }
  const { rows } = await client.query('SELECT coalesce(max(version), 0) AS version FROM fatura.migrations')
  return rows[0].version
}

async function runMigration(client: PoolClient, version: number): Promise<void> {
  // Another process may have run it while this one waited for the lock.
  if ((await readVersion(client)) !== version) return
  await client.query(migrations[version] ?? '')
  await client.query('INSERT INTO fatura.migrations (version) VALUES ($1)', [version + 1])
}

/** On Citus, spreads the tables by customer; elsewhere does nothing. What is spread already stays as it is. */
async function distribute(client: PoolClient): Promise<void> {
  const { rowCount } = await client.query("SELECT FROM pg_extension WHERE extname = 'citus'")
  if (rowCount === 0) return
  const { rows } = await client.query('SELECT logicalrelid::regclass::text AS name FROM pg_dist_partition')
  const spread = new Set(rows.map(({ name }) => name))
  for (const table of referenceTables)
    if (!spread.has(table)) await client.query('SELECT create_reference_table($1)', [table])
  for (const table of distributedTables)
    if (!spread.has(table))
      await client.query('SELECT create_distributed_table($1, $2, colocate_with => $3)', [
        table,
        'customer_id',
        table === distributedTables[0] ? 'default' : distributedTables[0],
      ])
  // Citus chooses the shard while it plans, so it must know the customer then: no plan serves all of them.
  for (const name of customerFunctions)
    await client.query(`ALTER FUNCTION ${name} SET plan_cache_mode = force_custom_plan`)
}
