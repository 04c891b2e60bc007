/** From DATABASE_URL to an engine. */

import { migrateSqlite } from './sqlite/migrations.ts'
import { openSqliteReader } from './sqlite/reader.ts'
import { openSqliteWriter } from './sqlite/writer.ts'
import { type ReadStore, StoreError, type WriteStore } from './store.ts'

/** The file behind a `sqlite:` address. */
function sqlitePath(url: string): string {
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (path === '' || path === ':memory:')
    throw new StoreError(
      `DATABASE_URL must be sqlite: and the path of a file, for example sqlite:data/fatura.db`,
    )
  return path
}

/** Opens for reading only, on a schema of exactly this version; creates nothing. */
export async function openReadStore(url: string): Promise<ReadStore> {
  return openSqliteReader(sqlitePath(url))
}

/** Opens for writing, on a schema of exactly this version; creates nothing. */
export async function openWriteStore(url: string): Promise<WriteStore> {
  return openSqliteWriter(sqlitePath(url))
}

/** Brings the schema to this version, creating the store when there is none; says from which version it came. */
export async function migrateStore(url: string): Promise<{ from: number; to: number }> {
  return migrateSqlite(sqlitePath(url))
}
