import type { DatabaseSync } from 'node:sqlite'
import {
  checkState,
  type Migration,
  type MigrationTarget,
  type OnRewrite,
  readMigrations,
  runMigrations,
  type Schema,
  type SchemaState,
} from '../migrations.ts'
import type { LockWait } from '../store.ts'
import { applicationId, openReadWrite, type StoreFile } from './database.ts'
import { translate } from './failures.ts'
import { createDb } from './shared-db.ts'

export const schema: Schema = {
  migrations: readMigrations(new URL('./migrations/', import.meta.url)),
  functions: null,
}

export async function migrateSqlite(
  path: string,
  onRewrite: OnRewrite = () => {},
  wait: LockWait = {},
  wanted = schema,
) {
  using db = await openReadWrite(path, { create: true, ...wait })
  const target: MigrationTarget = {
    where: `The database ${path}`,
    db: createDb(db),
    readHashes: async () => translate(path, () => readState(db).hashes),
    inLock: work => db.transact(wait, work),
    run: async migration => translate(path, () => runMigration(db, migration)),
  }
  const outcome = await runMigrations(target, wanted, onRewrite)
  db.checkFile()
  return outcome
}

export function checkSchema(db: StoreFile): void {
  const state = translate(db.path, () => readState(db))
  checkState(`The database ${db.path}`, state, schema)
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

function runMigration(db: DatabaseSync, { version, sql }: Migration): void {
  db.exec(`${sql}; PRAGMA user_version = ${version}; PRAGMA application_id = ${applicationId};
    CREATE TABLE IF NOT EXISTS migrations (
      version   INTEGER NOT NULL PRIMARY KEY,
      sha256    TEXT NOT NULL,
      -- Where a pass over the rows goes on; NULL when there is none, or none any more.
      rewriting TEXT
    ) STRICT`)
}
