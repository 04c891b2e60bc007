/**
 * Brings a file to this version's schema. Each migration runs in a transaction that also records its version, so that a
 * kill at any moment leaves a whole version behind and the next run continues from there.
 */
import type { DatabaseSync } from 'node:sqlite'
import {
  checkState,
  countCustomers,
  explainHistory,
  type Migration,
  type MigrationOutcome,
  type OnRewrite,
  readMigrations,
  type Schema,
  type SchemaState,
} from '../migrations.ts'
import { type LockWait, StoreError } from '../store.ts'
import { applicationId, openReadWrite, type StoreFile } from './database.ts'
import { translate } from './failures.ts'
import { createDb } from './shared-db.ts'
import { beginWriting } from './wait-for-lock.ts'

export const schema: Schema = {
  migrations: readMigrations(new URL('./migrations/', import.meta.url)),
  functions: null,
}

export async function migrateSqlite(
  path: string,
  onRewrite: OnRewrite = () => {},
  wait: LockWait = {},
  wanted = schema,
): Promise<MigrationOutcome> {
  const db = await openReadWrite(path, { create: true, ...wait })
  try {
    const state = translate(path, () => readState(db))
    const problem = explainHistory(`The database ${path}`, state, wanted)
    if (problem !== null) throw new StoreError(problem)
    const from = state.hashes.length
    for (const migration of wanted.migrations.slice(from)) {
      await beginWriting(db, path, wait)
      translate(path, () => runMigration(db, migration))
    }
    for (const migration of wanted.migrations) await runRewrite(db, path, migration, onRewrite, wait)
    db.checkPlace()
    return { from, to: wanted.migrations.length }
  } finally {
    db.close()
  }
}

/** Throws unless the schema is exactly the one this version of Fatura knows. */
export function checkSchema(db: DatabaseSync, path: string): void {
  const state = translate(path, () => readState(db))
  checkState(`The database ${path}`, state, schema)
}

export function readState(db: DatabaseSync): SchemaState {
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (version === 0) return { hashes: [], functions: null, isRewriting: false }
  const history = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'"
  const rows =
    db.prepare(history).get() === undefined
      ? []
      : db.prepare('SELECT version, sha256, rewriting FROM migrations').all()
  const hashes = Array<string | null>(version).fill(null)
  for (const row of rows) hashes[Number(row.version) - 1] = String(row.sha256)
  return { hashes, functions: null, isRewriting: rows.some(({ rewriting }) => rewriting !== null) }
}

/** Within a transaction, which it ends. */
function runMigration(db: DatabaseSync, { version, sql, sha256, rewrite }: Migration): void {
  try {
    // Another process may have run it while this one waited for the lock.
    if (readState(db).hashes.length === version - 1) {
      db.exec(`${sql}; PRAGMA user_version = ${version}; PRAGMA application_id = ${applicationId};
        CREATE TABLE IF NOT EXISTS migrations (
          version   INTEGER NOT NULL PRIMARY KEY,
          sha256    TEXT NOT NULL,
          -- Where a pass over the rows goes on; NULL when there is none, or none any more.
          rewriting TEXT
        ) STRICT`)
      const record = db.prepare('INSERT INTO migrations (version, sha256, rewriting) VALUES (?, ?, ?)')
      record.run(version, sha256, rewrite === undefined ? null : '')
    }
    db.exec('COMMIT')
  } catch (error) {
    // SQLite has rolled back by itself after some failures, a full disk among them.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Runs what is left of a pass over the rows, if anything is. */
async function runRewrite(
  db: StoreFile,
  path: string,
  { version, rewrite }: Migration,
  onRewrite: OnRewrite,
  wait: LockWait,
): Promise<void> {
  if (rewrite === undefined) return
  const shared = createDb(db, path)
  const readPlace = db.prepare('SELECT rewriting FROM migrations WHERE version = ?')
  const savePlace = db.prepare('UPDATE migrations SET rewriting = ? WHERE version = ?')
  const findPlace = () => translate(path, () => readPlace.get(version)?.rewriting) as string | null
  const place = findPlace()
  if (place === null) return
  const [{ n: all = 0 } = {}] = await shared.query<{ n: number }>(countCustomers, place)
  let done = 0
  // Nobody is waited for when there is nothing to write.
  while (findPlace() !== null) {
    await beginWriting(db, path, wait)
    try {
      const after = findPlace()
      if (after === null) return
      const { next, customers } = await rewrite.step(shared, after)
      savePlace.run(next, version)
      translate(path, () => db.exec('COMMIT'))
      done += customers
      onRewrite(rewrite.title, done, done / Math.max(all, done, 1))
    } finally {
      if (db.isTransaction) db.exec('ROLLBACK')
    }
  }
}
