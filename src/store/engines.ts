/** From an address to an engine. An engine is loaded only when it is used. */
import { existsSync } from 'node:fs'
import type { StoreFacts } from './facts.ts'
import type { OnRewrite } from './migrations.ts'
import { fitness, splitHosts } from './postgres/split-hosts.ts'
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
  'must be sqlite: and the path of a file, like sqlite:data/fatura.db, or postgres://user:password@host:5432/name; several hosts have commas between them'

const isServer = (url: string) => /^postgres(ql)?:\/\//.test(url)

/** The path in an address of SQLite; null for what is no such address. */
function pathOf(url: string): string | null {
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  return path === '' || path === ':memory:' ? null : path
}

/** The file of a store, which is made when it is needed; null for a server, whose store is made by `fatura migrate` alone. */
function fileOf(url: string): string | null {
  const file = isServer(url) ? null : pathOf(url)
  if (file === null && !isServer(url)) throw new StoreError(`DATABASE_URL ${addressForm}.`)
  return file
}

/** The file of a store, for who must not touch it; null for a server, and for what is no address. */
export function storeFileOf(url: string): string | null {
  return isServer(url) ? null : pathOf(url)
}

/** The fault of an address, as in "must be …"; null when it is one. */
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

/** Opens for reading only, on a schema of exactly this version. */
export async function openReadStore(url: string): Promise<ReadStore> {
  const file = fileOf(url)
  if (file !== null) return (await import('./sqlite/reader.ts')).openSqliteReader(file)
  return (await import('./postgres/reader.ts')).openPostgresReader(url)
}

/** Why searches of this store cannot run below pages in this process; null when they can. PostgreSQL searches elsewhere. */
export async function findSearchObstacle(url: string): Promise<Error | null> {
  return isServer(url) ? null : (await import('./sqlite/thread-priority.ts')).findPriorityObstacle()
}

/** Opens for commands that only look: the store's connections refuse to write. */
export async function openOperatorStore(url: string): Promise<OperatorStore> {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/operator.ts')).openPostgresOperator(url)
    : (await import('./sqlite/operator.ts')).openSqliteOperator(file)
}

/** Opens for writing, on a schema of exactly this version; creates nothing. It waits for another writer as `wait` has it, each time. */
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

/** Looks at a store of whatever version, and changes nothing. */
export async function readFacts(url: string): Promise<StoreFacts> {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/read-facts.ts')).readPostgresFacts(url)
    : (await import('./sqlite/read-facts.ts')).readSqliteFacts(file)
}

/** Damages, in the engine's words; empty when nothing is found, null where a server looks after its files itself. */
export async function findDamage(url: string, isDeep: boolean): Promise<readonly string[] | null> {
  const file = fileOf(url)
  return file === null ? null : (await import('./sqlite/read-facts.ts')).findDamage(file, isDeep)
}

/** The size of the write-ahead log beside a store's file, in bytes; null for a server. */
export async function readLogBytes(url: string): Promise<number | null> {
  const file = fileOf(url)
  return file === null ? null : (await import('./sqlite/database.ts')).readLogBytes(file)
}

/** Brings the schema to this version, creating the store when there is none; returns the version before and after. */
export async function migrateStore(url: string, onRewrite?: OnRewrite, wait?: LockWait) {
  const file = fileOf(url)
  return file === null
    ? (await import('./postgres/migrate.ts')).migratePostgres(url, onRewrite)
    : (await import('./sqlite/migrations.ts')).migrateSqlite(file, onRewrite, wait)
}

/** Whether there is no store at an address at which one would be created. */
export function isMissing(url: string): boolean {
  const file = fileOf(url)
  return file !== null && !existsSync(file)
}

/** Creates or migrates a store that lives in a file. */
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
