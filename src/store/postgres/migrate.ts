/** Brings a database to this version's schema, one migration a transaction, one process at a time. */
import type { PoolClient } from 'pg'
import { whatServerLacks } from '../facts.ts'
import { type MigrationTarget, type OnRewrite, runMigrations } from '../migrations.ts'
import { StoreError } from '../store.ts'
import { changeOneAfterAnother, checkReplication, distribute, hasCitus } from './distribute.ts'
import { openWritePool, translate } from './pool.ts'
import { askOf, migrationLock, schema } from './schema-version.ts'
import { createDb } from './shared-db.ts'

export async function migratePostgres(url: string, onRewrite: OnRewrite = () => {}, wanted = schema) {
  const pool = openWritePool(url)
  try {
    const client = await pool.connect()
    try {
      await checkServer(client)
      const isCitus = await hasCitus(askOf(client))
      if (isCitus) await checkReplication(askOf(client))
      const target: MigrationTarget = {
        where: 'The database',
        db: createDb(client, isCitus),
        async readHashes() {
          const sql = 'SELECT * FROM fatura.migrations WHERE version > 0 ORDER BY version'
          const { rows } = await client.query<{ sha256?: string }>(sql)
          return rows.map(({ sha256 }) => sha256 ?? null)
        },
        inLock: work => inLock(client, work),
        async run({ sql }) {
          // Citus takes each statement alone.
          for (const statement of statementsOf(sql)) await client.query(statement)
          await distribute(askOf(client))
        },
      }
      await makeSchema(client)
      const outcome = await runMigrations(target, wanted, onRewrite)
      await inLock(client, async () => {
        if (wanted.functions !== null) await renewFunctions(client, wanted.functions)
        // The extension may have come after the store.
        await distribute(askOf(client))
      })
      return outcome
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
    await client.query('SELECT pg_advisory_xact_lock($1)', [migrationLock])
    // A step may rewrite a large table, and what is built for an index takes its time.
    await client.query('SET LOCAL statement_timeout = 0')
    await changeOneAfterAnother(askOf(client))
    const result = await work()
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** Makes the functions again when their text changed. Its hash is kept as that of version 0. */
async function renewFunctions(client: PoolClient, { sql, sha256 }: { sql: string; sha256: string }) {
  const { rows } = await client.query('SELECT sha256 FROM fatura.migrations WHERE version = 0')
  if (rows[0]?.sha256 === sha256) return
  for (const statement of statementsOf(sql)) await client.query(statement)
  await client.query(
    `INSERT INTO fatura.migrations (version, sha256) VALUES (0, $1)
     ON CONFLICT (version) DO UPDATE SET sha256 = excluded.sha256`,
    [sha256],
  )
}

/** Before the transaction that spreads tables: within it, Citus would let only superusers bring the schema's owner to other nodes. */
async function makeSchema(client: PoolClient): Promise<void> {
  // To create needs rights even where there is nothing to create.
  const { rows } = await client.query("SELECT to_regclass('fatura.migrations') AS found")
  if (rows[0].found !== null) return
  await inLock(client, async () => {
    await client.query('CREATE SCHEMA IF NOT EXISTS fatura')
    await client.query(`
      CREATE TABLE IF NOT EXISTS fatura.migrations (
        version integer PRIMARY KEY, sha256 text COLLATE "C", rewriting text COLLATE "C")`)
  })
}

/** Each ends with a semicolon that is neither in a comment nor in a function's body. */
function statementsOf(sql: string): readonly string[] {
  return sql.match(/(?:\$body\$[\s\S]*?\$body\$|--.*|[^;])+;/g) ?? []
}
