/**
 * Migrates a schema. Each version has one SQL file, and some versions have a pass over the rows. A store keeps the hash of each file, so
 * that a schema is recognized by its content and not only by a number.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Db } from './sql/db.ts'
import { StoreError, StoreUnavailable } from './store.ts'

export interface Migration {
  version: number
  sql: string
  sha256: string
  rewrite?: Rewrite
}

export interface Schema {
  migrations: readonly Migration[]
  /** Functions of the database. Null for SQLite, which has none. */
  functions: { sql: string; sha256: string } | null
}

export function readMigrations(folder: URL): readonly Migration[] {
  const files = readdirSync(folder).filter(name => name.endsWith('.sql'))
  return files.sort().map((name, index) => {
    const version = index + 1
    if (name !== `${String(version).padStart(4, '0')}.sql`)
      throw new Error(`${name} is out of order: migrations are numbered from 0001.sql on, without a gap`)
    const sql = readFileSync(new URL(name, folder), 'utf8')
    return { version, sql, sha256: createHash('sha256').update(sql).digest('hex') }
  })
}

/** Last part of an error message about a table or function that disappeared after the process had started. */
export const changedBelow =
  'the schema was changed by a newer Fatura while this process ran. Upgrade it, and start it again'

export interface SchemaState {
  /** Hashes of the SQL files that made the schema, beginning with version 1. Null for a version that the store does not know. */
  hashes: readonly (string | null)[]
  functions: string | null
  isRewriting: boolean
}

/** A pass over all rows. Each step is committed together with the key where the next step begins. A killed pass continues from this key. */
export interface Rewrite {
  title: string
  /** Rewrites the rows of some customers behind the key `after`, which is '' at first. */
  step(db: Db, after: string): Promise<{ next: string | null; customers: number }>
}

/**
 * Reports the progress of a pass over the rows: its title, the number of finished customers, and their share of all customers from 0 to 1.
 */
export type OnRewrite = (title: string, customers: number, part: number) => void

export interface MigrationTarget {
  where: string
  db: Db
  readHashes(): Promise<SchemaState['hashes']>
  /** Runs `work` in a transaction during which no other process migrates or writes. A kill at any moment leaves a complete version. */
  inLock<T>(work: () => Promise<T>): Promise<T>
  run(migration: Migration): Promise<void>
}

export async function runMigrations(target: MigrationTarget, wanted: Schema, onRewrite: OnRewrite) {
  const { db, where, readHashes, inLock } = target
  const hashes = await readHashes()
  const problem = explainHistory(where, hashes, wanted)
  if (problem !== null) throw new StoreError(problem)
  for (const migration of wanted.migrations.slice(hashes.length))
    await inLock(async () => {
      const { version, sha256, rewrite } = migration
      // Another process may have run this migration while this process waited for the lock.
      if ((await readHashes()).length !== version - 1) return
      await target.run(migration)
      await db.query('INSERT INTO fatura.migrations (version, sha256, rewriting) VALUES ($1, $2, $3)', [
        version,
        sha256,
        rewrite === undefined ? null : '',
      ])
    })
  for (const { version, rewrite } of wanted.migrations)
    if (rewrite !== undefined) await rewriteRows(target, version, rewrite, onRewrite)
  return { from: hashes.length, to: wanted.migrations.length }
}

/** Finishes an incomplete pass over the rows. Takes no lock when there is nothing to write. */
async function rewriteRows(
  { db, inLock }: MigrationTarget,
  version: number,
  { title, step }: Rewrite,
  onRewrite: OnRewrite,
): Promise<void> {
  const readPosition = async () => {
    const sql = 'SELECT rewriting FROM fatura.migrations WHERE version = $1'
    return (await db.query<{ rewriting: string | null }>(sql, [version]))[0]?.rewriting ?? null
  }
  const position = await readPosition()
  if (position === null) return
  const ahead = 'SELECT count(*) AS n FROM fatura.customers WHERE customer_id > $1'
  const all = (await db.query<{ n: number }>(ahead, [position]))[0]?.n ?? 0
  for (let done = 0; (await readPosition()) !== null; ) {
    await inLock(async () => {
      const after = await readPosition()
      if (after === null) return
      const { next, customers } = await step(db, after)
      await db.query('UPDATE fatura.migrations SET rewriting = $2 WHERE version = $1', [version, next])
      done += customers
    })
    onRewrite(title, done, done / Math.max(all, done, 1))
  }
}

/** Throws when the schema does not fit. `where` begins the message, such as "The database x". */
export function checkState(where: string, state: SchemaState, schema: Schema): void {
  const problem = explainState(where, state, schema)
  if (problem !== null) throw new StoreError(problem)
}

/** Checks the version for a process that runs already. A newer Fatura may have migrated the store since the process started. */
export function checkVersion(version: unknown, { migrations: { length: needed } }: Schema): void {
  if (version !== needed)
    throw new StoreUnavailable(
      `The database has schema version ${version}, but this process needs ${needed}.`,
    )
}

/** Returns why the schema does not fit. Null when it is exactly this schema. */
export function explainState(where: string, state: SchemaState, schema: Schema): string | null {
  const unmigratable = explainHistory(where, state.hashes, schema)
  if (unmigratable !== null) return unmigratable
  const [version, needed] = [state.hashes.length, schema.migrations.length]
  if (version < needed)
    return `${where} has schema version ${version}, but this Fatura needs ${needed}. Run: fatura migrate`
  if (state.functions !== (schema.functions?.sha256 ?? null))
    return `${where} has the functions of another Fatura. Run: fatura migrate`
  return state.isRewriting
    ? `${where} is not completely migrated. Wait for fatura migrate, or run it again.`
    : null
}

/** Returns why the schema cannot be migrated. Null when it is this schema or an earlier version of it. */
function explainHistory(where: string, hashes: SchemaState['hashes'], { migrations }: Schema): string | null {
  const other = migrations.findIndex(({ sha256 }, i) => i < hashes.length && hashes[i] !== sha256)
  // In an unreleased Fatura, the same version number may stand for another schema.
  if (other !== -1)
    return `${where} was made by an unreleased Fatura with another schema version ${other + 1}. Start with a new store: run "fatura sync" or "fatura import" again, and make tokens and keys again.`
  return hashes.length > migrations.length
    ? `${where} has schema version ${hashes.length}, newer than this Fatura's ${migrations.length}. Upgrade Fatura, or restore a backup from before the upgrade. See docs/backup.md.`
    : null
}
