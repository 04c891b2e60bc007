/** From an address to an engine. An engine is loaded only when it is used. */
import type { StoreFacts } from './facts.ts'
import type { MigrationOutcome, OnRewrite } from './migrations.ts'
import { type LockWait, type ReadStore, StoreError, type WriteStore } from './store.ts'

const addressForm =
  'must be sqlite: and the path of a file, like sqlite:data/fatura.db, or postgres://user:password@host:5432/name'

type Engine = { name: 'sqlite'; path: string } | { name: 'postgres'; url: string }

function engineOf(url: string): Engine {
  if (/^postgres(ql)?:\/\//.test(url)) return { name: 'postgres', url }
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (path === '' || path === ':memory:') throw new StoreError(`DATABASE_URL ${addressForm}.`)
  return { name: 'sqlite', path }
}

/**
 * Opens for reading only, on a schema of exactly this version; creates nothing. `sharedBy` so many processes, what one
 * of them alone would take of a server's connections is divided.
 */
export async function openReadStore(url: string, sharedBy = 1): Promise<ReadStore> {
  const engine = engineOf(url)
  return engine.name === 'sqlite'
    ? (await import('./sqlite/reader.ts')).openSqliteReader(engine.path)
    : (await import('./postgres/reader.ts')).openPostgresReader(engine.url, sharedBy)
}

/**
 * Opens for writing, on a schema of exactly this version; creates nothing. `wait` is how this store waits for another
 * writer, each time.
 */
export async function openWriteStore(url: string, wait: LockWait = {}): Promise<WriteStore> {
  const engine = engineOf(url)
  return engine.name === 'sqlite'
    ? (await import('./sqlite/writer.ts')).openSqliteWriter(engine.path, wait)
    : (await import('./postgres/writer.ts')).openPostgresWriter(engine.url, wait.patienceMs)
}

/** What is wrong with an address, as in "must be …"; null when it is one. */
export function findAddressProblem(url: string): string | null {
  try {
    const engine = engineOf(url)
    return engine.name === 'postgres' && !URL.canParse(engine.url) ? addressForm : null
  } catch (error) {
    if (error instanceof StoreError) return addressForm
    throw error
  }
}

/** Looks at a store of whatever version, and changes nothing. */
export async function readFacts(url: string): Promise<StoreFacts> {
  const engine = engineOf(url)
  return engine.name === 'sqlite'
    ? (await import('./sqlite/read-facts.ts')).readSqliteFacts(engine.path)
    : (await import('./postgres/read-facts.ts')).readPostgresFacts(engine.url)
}

/** Brings the schema to this version, creating the store when there is none; says from which version it came. */
export async function migrateStore(
  url: string,
  onRewrite?: OnRewrite,
  wait?: LockWait,
): Promise<MigrationOutcome> {
  const engine = engineOf(url)
  return engine.name === 'sqlite'
    ? (await import('./sqlite/migrations.ts')).migrateSqlite(engine.path, onRewrite, wait)
    : (await import('./postgres/migrate.ts')).migratePostgres(engine.url, onRewrite)
}

/** Creates or migrates a store that lives in a file. The schema of a server changes with `fatura migrate` alone. */
export async function prepareStore(url: string, wait?: LockWait): Promise<void> {
  if (engineOf(url).name === 'sqlite') await migrateStore(url, undefined, wait)
}
