/** Brings a database to this version's schema, one migration a transaction, one process at a time. */
import type { PoolClient } from 'pg'
import { whatServerLacks } from '../facts.ts'
import {
  checkState,
  countCustomers,
  differenceOf,
  type Migration,
  type MigrationOutcome,
  madeElsewhere,
  type OnRewrite,
  rewrites,
} from '../migrations.ts'
import { StoreError } from '../store.ts'
import { changeOneAfterAnother, checkReplication, distribute, hasCitus } from './distribute.ts'
import { openWritePool, translate } from './pool.ts'
import { type AskSchema, migrationLock, migrations } from './schema-version.ts'
import { createDb } from './shared-db.ts'
import { noteSpread } from './spread.ts'

const where = 'The database'

function askOf(client: PoolClient): AskSchema {
  return async <Row extends object>(sql: string) => (await client.query(sql)).rows as Row[]
}

export async function migratePostgres(
  url: string,
  onRewrite: OnRewrite = () => {},
): Promise<MigrationOutcome> {
  const pool = openWritePool(url)
  try {
    const client = await pool.connect()
    try {
      await checkServer(client)
      if (await hasCitus(askOf(client))) {
        await checkReplication(askOf(client))
        noteSpread(client)
      }
      const from = await inLock(client, async () => {
        const version = await readVersion(client)
        if (version > migrations.length)
          checkState(where, { version, sha256: null, isRewriting: false }, migrations)
        if (version > 0) await checkHistory(client, version)
        return version
      })
      for (const migration of migrations.slice(from))
        await inLock(client, () => runMigration(client, migration))
      for (const { version } of migrations) await runRewrite(client, version, onRewrite)
      // The extension may have come after the store.
      await inLock(client, () => distribute(askOf(client)))
      return { from, to: migrations.length }
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

async function readVersion(client: PoolClient): Promise<number> {
  // Asked first, since to create needs rights even where there is nothing to create.
  const { rows: found } = await client.query("SELECT to_regclass('fatura.migrations') AS found")
  if (found[0].found === null) {
    await client.query('CREATE SCHEMA IF NOT EXISTS fatura')
    await client.query(`
      CREATE TABLE fatura.migrations (
        version integer PRIMARY KEY, sha256 text COLLATE "C", rewriting text COLLATE "C")`)
  }
  const { rows } = await client.query('SELECT coalesce(max(version), 0) AS version FROM fatura.migrations')
  return rows[0].version
}

/** Throws when a file that made this store is not the one of that number here. */
async function checkHistory(client: PoolClient, version: number): Promise<void> {
  if (!(await hasHistory(client))) {
    const difference = await differenceFromFirst(client)
    if (difference !== null) throw madeElsewhere(where, version, difference)
    return
  }
  const { rows } = await client.query('SELECT version, sha256 FROM fatura.migrations ORDER BY version')
  for (const row of rows)
    if (row.sha256 !== migrations[row.version - 1]?.sha256) throw madeElsewhere(where, row.version)
}

/** Stores of version 1 did not keep what made them. */
async function hasHistory(client: PoolClient): Promise<boolean> {
  const { rowCount } = await client.query(
    "SELECT FROM pg_attribute WHERE attrelid = 'fatura.migrations'::regclass AND attname = 'sha256'",
  )
  return rowCount === 1
}

/** The columns, indexes and functions of a schema, in words that tell them apart. */
const objects = `
  SELECT 'column ' || c.relname || '.' || a.attname AS name,
    format_type(a.atttypid, a.atttypmod) || a.attnotnull AS body
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped
    AND c.relname <> 'migrations'
  UNION ALL
  SELECT 'index ' || indexname, replace(indexdef, $1::text || '.', '') FROM pg_indexes
  WHERE schemaname = $1::text AND tablename <> 'migrations'
  UNION ALL
  SELECT 'function ' || proname, md5(regexp_replace(replace(prosrc, $1::text || '.', ''), '[[:space:]]+', '', 'g')) FROM pg_proc
  WHERE pronamespace = $1::text::regnamespace`

/**
 * What a store of version 1 lacks, or has too much; null when it is the released one. That is made beside it, within this
 * transaction, and taken away again.
 */
async function differenceFromFirst(client: PoolClient): Promise<string | null> {
  const beside = 'fatura_as_released'
  const read = async (schema: string): Promise<Map<string, string>> => {
    const { rows } = await client.query(objects, [schema])
    return new Map(rows.map(({ name, body }) => [name, body]))
  }
  await client.query('SAVEPOINT beside')
  await client.query(
    `CREATE SCHEMA ${beside}; CREATE TABLE ${beside}.migrations (version integer PRIMARY KEY)`,
  )
  await client.query((migrations[0]?.sql ?? '').replaceAll('fatura.', `${beside}.`))
  const wanted = await read(beside)
  await client.query('ROLLBACK TO SAVEPOINT beside')
  return differenceOf(wanted, await read('fatura'))
}

async function runMigration(client: PoolClient, { version, sql, sha256 }: Migration): Promise<void> {
  // Another process may have run it while this one waited for the lock.
  if ((await readVersion(client)) !== version - 1) return
  if (!(await hasHistory(client))) await keepHistory(client, version)
  // Citus takes each statement alone.
  for (const statement of statementsOf(sql)) await client.query(statement)
  await client.query('INSERT INTO fatura.migrations (version, sha256, rewriting) VALUES ($1, $2, $3)', [
    version,
    sha256,
    rewrites[version] === undefined ? null : '',
  ])
  await distribute(askOf(client))
}

/** Each ends with a semicolon that is neither in a comment nor in a function's body. */
function statementsOf(sql: string): readonly string[] {
  return sql.match(/(?:\$body\$[\s\S]*?\$body\$|--.*|[^;])+;/g) ?? []
}

/** For a store of version 1, which was held against the file before. */
async function keepHistory(client: PoolClient, version: number): Promise<void> {
  await client.query(
    'ALTER TABLE fatura.migrations ADD COLUMN sha256 text COLLATE "C", ADD COLUMN rewriting text COLLATE "C"',
  )
  for (const earlier of migrations.slice(0, version - 1))
    await client.query('UPDATE fatura.migrations SET sha256 = $2 WHERE version = $1', [
      earlier.version,
      earlier.sha256,
    ])
}

/** Runs what is left of a pass over the rows, if anything is. */
async function runRewrite(client: PoolClient, version: number, onRewrite: OnRewrite): Promise<void> {
  const rewrite = rewrites[version]
  if (rewrite === undefined) return
  const db = createDb(client)
  let all: number | undefined
  for (let done = 0; ; ) {
    const customers = await inLock(client, async () => {
      const { rows } = await client.query('SELECT rewriting FROM fatura.migrations WHERE version = $1', [
        version,
      ])
      const after: string | null = rows[0].rewriting
      if (after === null) return null
      all ??= Number((await db.query<{ n: number }>(countCustomers, after))[0]?.n)
      const { next, customers } = await rewrite.step(db, after)
      await client.query('UPDATE fatura.migrations SET rewriting = $2 WHERE version = $1', [version, next])
      return customers
    })
    if (customers === null) return
    done += customers
    onRewrite(rewrite.title, done, done / Math.max(all ?? 0, done, 1))
  }
}
