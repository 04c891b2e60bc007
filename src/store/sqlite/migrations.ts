/**
 * Brings a file to this version's schema. Each migration runs in a transaction that also records its version, so that a
 * kill at any moment leaves a whole version behind and the next run continues from there.
 */
import { DatabaseSync } from 'node:sqlite'
import {
  checkState,
  countCustomers,
  differenceOf,
  type Migration,
  type MigrationOutcome,
  madeElsewhere,
  type OnRewrite,
  readMigrations,
  rewrites,
  type SchemaState,
} from '../migrations.ts'
import type { LockWait } from '../store.ts'
import { applicationId, openReadWrite, type StoreFile } from './database.ts'
import { translate } from './failures.ts'
import { createDb } from './shared-db.ts'
import { beginWriting } from './wait-for-lock.ts'

export const migrations = readMigrations(new URL('./migrations/', import.meta.url))

export async function migrateSqlite(
  path: string,
  onRewrite: OnRewrite = () => {},
  wait: LockWait = {},
): Promise<MigrationOutcome> {
  const where = `The database ${path}`
  const db = await openReadWrite(path, { create: true, ...wait })
  try {
    const from = translate(path, () => readState(db)).version
    if (from > migrations.length)
      checkState(
        where,
        translate(path, () => readState(db)),
        migrations,
      )
    if (from > 0) translate(path, () => checkHistory(db, where, from))
    for (const migration of migrations.slice(from)) {
      await beginWriting(db, path, wait)
      translate(path, () => runMigration(db, migration))
    }
    for (const { version } of migrations) await runRewrite(db, path, version, onRewrite, wait)
    db.checkPlace()
    return { from, to: migrations.length }
  } finally {
    db.close()
  }
}

/** Throws unless the schema is exactly the one this version of Fatura knows. */
export function checkSchema(db: DatabaseSync, path: string): void {
  checkState(
    `The database ${path}`,
    translate(path, () => readState(db)),
    migrations,
  )
}

export function readState(db: DatabaseSync): SchemaState {
  const version = Number(db.prepare('PRAGMA user_version').get()?.user_version)
  if (!hasHistory(db)) return { version, sha256: null, isRewriting: false }
  const row = db
    .prepare(
      `SELECT (SELECT sha256 FROM migrations WHERE version = ?1) AS sha256,
         EXISTS (SELECT 1 FROM migrations WHERE rewriting IS NOT NULL) AS is_rewriting`,
    )
    .get(version)
  return { version, sha256: (row?.sha256 as string | null) ?? null, isRewriting: row?.is_rewriting === 1 }
}

/** Stores of version 1 did not keep what made them. */
function hasHistory(db: DatabaseSync): boolean {
  return (
    db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'").get() !== undefined
  )
}

/** Throws when a file that made this store is not the one of that number here. */
function checkHistory(db: DatabaseSync, where: string, version: number): void {
  if (!hasHistory(db)) {
    const difference = differenceFromFirst(db)
    if (difference !== null) throw madeElsewhere(where, version, difference)
    return
  }
  for (const row of db.prepare('SELECT version, sha256 FROM migrations ORDER BY version').all())
    if (row.sha256 !== migrations[Number(row.version) - 1]?.sha256)
      throw madeElsewhere(where, Number(row.version))
}

/** What the tables and indexes of a store of version 1 lack, or have too much; null when they are the released ones. */
function differenceFromFirst(db: DatabaseSync): string | null {
  const first = new DatabaseSync(':memory:')
  try {
    first.exec(migrations[0]?.sql ?? '')
    const objectsOf = (one: DatabaseSync) =>
      new Map(
        one
          .prepare("SELECT type || ' ' || name AS name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
          .all()
          .map(({ name, sql }) => [String(name), String(sql).replaceAll(/--.*|\s+/g, '')]),
      )
    return differenceOf(objectsOf(first), objectsOf(db))
  } finally {
    first.close()
  }
}

/** Within a transaction, which it ends. */
function runMigration(db: DatabaseSync, { version, sql, sha256 }: Migration): void {
  try {
    // Another process may have run it while this one waited for the lock.
    if (readState(db).version === version - 1) {
      db.exec(`${sql}; PRAGMA user_version = ${version}; PRAGMA application_id = ${applicationId};
        CREATE TABLE IF NOT EXISTS migrations (
          version   INTEGER NOT NULL PRIMARY KEY,
          sha256    TEXT NOT NULL,
          -- Where a pass over the rows goes on; NULL when there is none, or none any more.
          rewriting TEXT
        ) STRICT`)
      const record = db.prepare(
        'INSERT OR IGNORE INTO migrations (version, sha256, rewriting) VALUES (?, ?, ?)',
      )
      // What made an earlier version was held against the files before.
      for (const earlier of migrations.slice(0, version - 1))
        record.run(earlier.version, earlier.sha256, null)
      record.run(version, sha256, rewrites[version] === undefined ? null : '')
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
  version: number,
  onRewrite: OnRewrite,
  wait: LockWait,
): Promise<void> {
  const rewrite = rewrites[version]
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
