/** Opens a store by its address. The code of an engine is loaded only when it is used. */
import { existsSync } from 'node:fs'
import type { StoreFacts } from './facts.ts'
import type { OnRewrite } from './migrations.ts'
import { fitness, splitHosts } from './postgres/hosts.ts'
import {
  type ConnectorStores,
  type ConnectorWait,
  type LockWait,
  type OperatorStore,
  type ReadStore,
  StoreError,
  type WriteStore,
} from './store.ts'

const addressForm =
  'must be sqlite: and the path of a file, such as sqlite:data/fatura.db, or postgres://user:password@host:5432/name (with commas between several hosts)'

const isServer = (url: string) => /^postgres(ql)?:\/\//.test(url)

/** Returns the path in an address of SQLite. Null for any other text. */
function pathOf(url: string): string | null {
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  return path === '' || path === ':memory:' ? null : path
}

/** Returns the file of an SQLite store, which is created when needed. Null for a server, whose store only `fatura migrate` creates. */
function fileOf(url: string): string | null {
  const file = isServer(url) ? null : pathOf(url)
  if (file === null && !isServer(url)) throw new StoreError(`DATABASE_URL ${addressForm}.`)
  return file
}

/** Returns the file of a store, so that other code can avoid writing to it. Null for a server and for an invalid address. */
export function storeFileOf(url: string): string | null {
  return isServer(url) ? null : pathOf(url)
}

/** Returns what is wrong with an address, such as "must be …". Null for a valid address. */
export function findAddressProblem(url: string): string | null {
  if (/,(sqlite:|postgres(ql)?:\/\/)/.test(url)) return addressForm
  if (!isServer(url)) return findPathProblem(pathOf(url))
  const { urls, fits } = splitHosts(url) ?? { urls: [url], fits: 'true' }
  if (!urls.every(each => URL.canParse(each))) return addressForm
  return fits === undefined
    ? `must have one of ${[...fitness.keys()].join(', ')} as target_session_attrs`
    : null
}

function findPathProblem(path: string | null): string | null {
  if (path === null) return addressForm
  if (/-(wal|shm|journal)$/.test(path))
    return 'must not end in -wal, -shm or -journal: SQLite keeps its own data under such names'
  return null
}

/** Opens a store for reading only. The schema must have exactly this version. */
export async function openReadStore(url: string): Promise<ReadStore> {
  const file = fileOf(url)
  if (file !== null) return (await import('./sqlite/reader.ts')).openSqliteReader(file)
  return (await import('./postgres/reader.ts')).openPostgresReader(url)
}

/**
 * Returns why searches in this process cannot run at a lower priority than other reads. Null when they can. PostgreSQL runs searches in its
 * own processes.
 */
export async function findSearchObstacle(url: string): Promise<Error | null> {
  return isServer(url) ? null : (await import('./sqlite/thread-priority.ts')).findPriorityObstacle()
}

/** Opens a store for commands that only read. The connections refuse to write. */
export async function openOperatorStore(url: string): Promise<OperatorStore> {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/operator.ts')).openPostgresOperator(url)
    : (await import('./sqlite/operator.ts')).openSqliteOperator(file)
}

/**
 * Opens a store for writing. The schema must have exactly this version, and nothing is created. `wait` says how long each write waits for
 * another writer.
 */
export async function openWriteStore(url: string, wait: LockWait = {}): Promise<WriteStore> {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/writer.ts')).openPostgresWriter(url, wait.patienceMs)
    : (await import('./sqlite/writer.ts')).openSqliteWriter(file, wait)
}

export async function openConnectorStores(
  url: string,
  { leasePatienceMs, ...wait }: ConnectorWait,
): Promise<ConnectorStores> {
  const store = await openWriteStore(url, wait)
  try {
    const stores = { store, leases: await openWriteStore(url, { patienceMs: leasePatienceMs }) }
    return fileOf(url) === null ? stores : (await import('./sqlite/writer.ts')).takeTurns(stores)
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Reads a store of any schema version. Never writes. */
export async function readFacts(url: string): Promise<StoreFacts> {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/read-facts.ts')).readPostgresFacts(url)
    : (await import('./sqlite/read-facts.ts')).readSqliteFacts(file)
}

/**
 * Returns the damages that the engine finds, in the engine's words. Empty when there are none. Null for a server, which checks its own
 * files.
 */
export async function findDamage(url: string, isDeep: boolean): Promise<readonly string[] | null> {
  const file = fileOf(url)
  return file === null ? null : (await import('./sqlite/read-facts.ts')).findDamage(file, isDeep)
}

/** Returns the size of the write-ahead log in bytes. Null for a server. */
export async function readLogBytes(url: string): Promise<number | null> {
  const file = fileOf(url)
  return file === null ? null : (await import('./sqlite/database.ts')).readLogBytes(file)
}

/** Migrates the schema to this version, and creates the store when it is missing. Returns the version before and after. */
export async function migrateStore(url: string, onRewrite?: OnRewrite, wait?: LockWait) {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/migrate.ts')).migratePostgres(url, onRewrite)
    : (await import('./sqlite/migrations.ts')).migrateSqlite(file, onRewrite, wait)
}

/** Tells whether the address names a file that does not exist yet. */
export function isMissing(url: string): boolean {
  const file = fileOf(url)
  return file !== null && !existsSync(file)
}

/** Creates or migrates a store that is a file. Does nothing for a server. */
export async function prepareStore(url: string, wait?: LockWait): Promise<void> {
  if (fileOf(url) !== null) await migrateStore(url, undefined, wait)
}

export async function useStore<Store extends { close(): Promise<void> }, T>(
  opening: Promise<Store>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await opening
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
