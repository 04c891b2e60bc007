/** Migrates a PostgreSQL database to this version's schema. Each migration is one transaction. Only one process migrates at a time. */
import type { PoolClient } from 'pg'
import { whatServerLacks } from '../facts.ts'
import { type MigrationTarget, type OnRewrite, runMigrations } from '../migrations.ts'
import { StoreError } from '../store.ts'
import { changeOneAfterAnother, checkReplication, distribute, hasCitus } from './distribute.ts'
import { openWritePool, translate } from './pool.ts'
import { askOf, migrationLock, schema } from './schema.ts'
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
          // On Citus, statements that change the schema must be sent one by one.
          for (const statement of statementsOf(sql)) await client.query(statement)
          await distribute(askOf(client))
        },
      }
      await makeSchema(client)
      const outcome = await runMigrations(target, wanted, onRewrite)
      await inLock(client, async () => {
        if (wanted.functions !== null) await renewFunctions(client, wanted.functions)
        // The Citus extension may have been installed after the store was created.
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

/** Throws when the server cannot be used. This check comes first, so that such a server stays unchanged. */
async function checkServer(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ major: number; encoding: string }>(
    `SELECT current_setting('server_version_num')::integer / 10000 AS major, current_setting('server_encoding') AS encoding`,
  )
  const [server] = rows
  const lack = server === undefined ? null : whatServerLacks(server)
  if (lack !== null) throw new StoreError(`The database cannot be used: ${lack.found}. ${lack.next}`)
}

/** Runs `work` in a transaction that holds the lock of migrations. A kill at any moment leaves a complete version. */
async function inLock<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  await client.query('BEGIN')
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [migrationLock])
    // A migration has no time limit, because rewriting a large table or building an index may take long.
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

/** Creates the functions again when their text has changed. The hash of their text is stored as that of version 0. */
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

/**
 * Creates the schema, before the transaction that distributes tables. Within that transaction, only superusers could make Citus create the
 * schema's owner on other nodes.
 */
async function makeSchema(client: PoolClient): Promise<void> {
  // CREATE needs rights even when there is nothing to create.
  const { rows } = await client.query("SELECT to_regclass('fatura.migrations') AS found")
  if (rows[0].found !== null) return
  await inLock(client, async () => {
    await client.query('CREATE SCHEMA IF NOT EXISTS fatura')
    await client.query(`
      CREATE TABLE IF NOT EXISTS fatura.migrations (
        version integer PRIMARY KEY, sha256 text COLLATE "C", rewriting text COLLATE "C")`)
  })
}

/** Splits SQL into statements. Each ends with a semicolon that is neither in a comment nor in the body of a function. */
function statementsOf(sql: string): readonly string[] {
  return sql.match(/(?:\$body\$[\s\S]*?\$body\$|--.*|[^;])+;/g) ?? []
}
