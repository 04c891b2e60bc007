/** From an address to an engine. An engine is loaded only when it is used. */
import { existsSync } from 'node:fs'
import type { StoreFacts } from './facts.ts'
import type { MigrationOutcome, OnRewrite } from './migrations.ts'
import { hostsOf, splitHosts } from './postgres/split-hosts.ts'
import type { OnLeftOut } from './postgres/spread-reader.ts'
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

/** An engine, given an address of its own: the path of a file, or a server's URL. */
interface Engine {
  openRead(address: string, sharedBy: number, onLeftOut?: OnLeftOut): Promise<ReadStore>
  openOperator(address: string): Promise<OperatorStore>
  openWrite(address: string, wait: LockWait): Promise<WriteStore>
  openConnector(address: string, wait: ConnectorWait): Promise<ConnectorStores>
  readFacts(address: string): Promise<StoreFacts>
  /** Null where a server looks after its files itself. */
  findDamage(address: string, isDeep: boolean): Promise<readonly string[] | null>
  /** In bytes; null for an engine that has none beside its file. */
  readLogBytes(address: string): Promise<number | null>
  migrate(address: string, onRewrite?: OnRewrite, wait?: LockWait): Promise<MigrationOutcome>
  /** The fault of an address, as in "must be …"; null when it is one. */
  findProblem(address: string): string | null
  /** Whether a store that is not there yet is made when it is needed. A server's is made by `fatura migrate` alone. */
  createsItself: boolean
}

const sqlite: Engine = {
  openRead: async path => (await import('./sqlite/reader.ts')).openSqliteReader(path),
  openOperator: async path => (await import('./sqlite/operator.ts')).openSqliteOperator(path),
  openWrite: async (path, wait) => (await import('./sqlite/writer.ts')).openSqliteWriter(path, wait),
  openConnector: async (path, wait) =>
    (await import('./sqlite/open-connector.ts')).openSqliteConnector(path, wait),
  readFacts: async path => (await import('./sqlite/read-facts.ts')).readSqliteFacts(path),
  findDamage: async (path, isDeep) => (await import('./sqlite/read-facts.ts')).findDamage(path, isDeep),
  readLogBytes: async path => (await import('./sqlite/database.ts')).readLogBytes(path),
  migrate: async (path, onRewrite, wait) =>
    (await import('./sqlite/migrations.ts')).migrateSqlite(path, onRewrite, wait),
  findProblem: () => null,
  createsItself: true,
}

const postgres: Engine = {
  openRead: async (url, sharedBy, onLeftOut) => {
    const urls = splitAddresses(url)
    if (urls.length > 1)
      return (await import('./postgres/spread-reader.ts')).openSpreadReader(urls, sharedBy, onLeftOut)
    return (await import('./postgres/reader.ts')).openPostgresReader(url, sharedBy)
  },
  openOperator: async url => (await import('./postgres/operator.ts')).openPostgresOperator(url),
  openWrite: async (url, wait) =>
    (await import('./postgres/writer.ts')).openPostgresWriter(url, wait.patienceMs),
  openConnector: async (url, { leasePatienceMs }) => {
    const { openPostgresWriter } = await import('./postgres/writer.ts')
    return { store: await openPostgresWriter(url), leases: await openPostgresWriter(url, leasePatienceMs) }
  },
  readFacts: async url => (await import('./postgres/read-facts.ts')).readPostgresFacts(url),
  findDamage: async () => null,
  readLogBytes: async () => null,
  migrate: async (url, onRewrite) => (await import('./postgres/migrate.ts')).migratePostgres(url, onRewrite),
  findProblem(url) {
    const { urls, problem } = splitHosts(url) ?? { urls: [url], problem: null }
    if (splitAddresses(url).length > 1 || !urls.every(each => URL.canParse(each))) return addressForm
    return problem
  },
  createsItself: false,
}

/** Several nodes of one store, where it is only read: addresses with commas between them. */
export function splitAddresses(url: string): string[] {
  return url.split(/,(?=postgres(?:ql)?:\/\/|sqlite:)/)
}

export { hostsOf }

function engineOf(url: string): [Engine, address: string] {
  if (/^postgres(ql)?:\/\//.test(url)) return [postgres, url]
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (path === '' || path === ':memory:') throw new StoreError(`DATABASE_URL ${addressForm}.`)
  return [sqlite, path]
}

/**
 * Opens for the API: for reading only, on a schema of exactly this version; creates nothing. `sharedBy` is how many
 * processes share what one of them alone would take of a server's connections.
 */
export async function openReadStore(url: string, sharedBy = 1, onLeftOut?: OnLeftOut): Promise<ReadStore> {
  const [engine, address] = engineOf(url)
  return engine.openRead(address, sharedBy, onLeftOut)
}

/** Opens for commands that only look: the store's connections refuse to write. */
export async function openOperatorStore(url: string): Promise<OperatorStore> {
  const [engine, address] = engineOf(url)
  return engine.openOperator(address)
}

/**
 * Opens for writing, on a schema of exactly this version; creates nothing. `wait` is how this store waits for another
 * writer, each time.
 */
export async function openWriteStore(url: string, wait: LockWait = {}): Promise<WriteStore> {
  const [engine, address] = engineOf(url)
  return engine.openWrite(address, wait)
}

/** Opens for the connector, as `openWriteStore` does. */
export async function openConnectorStores(url: string, wait: ConnectorWait): Promise<ConnectorStores> {
  const [engine, address] = engineOf(url)
  return engine.openConnector(address, wait)
}

/** The fault of an address, as in "must be …"; null when it is one. */
export function findAddressProblem(url: string): string | null {
  let engine: Engine
  let address: string
  try {
    ;[engine, address] = engineOf(url)
  } catch (error) {
    if (error instanceof StoreError) return addressForm
    throw error
  }
  return engine.findProblem(address)
}

/** Looks at a store of whatever version, and changes nothing. */
export async function readFacts(url: string): Promise<StoreFacts> {
  const [engine, address] = engineOf(url)
  return engine.readFacts(address)
}

/** Damages, in the engine's words; empty when nothing is found, null where the engine has no file of its own. */
export async function findDamage(url: string, isDeep: boolean): Promise<readonly string[] | null> {
  const [engine, address] = engineOf(url)
  return engine.findDamage(address, isDeep)
}

/** The size of the write-ahead log beside a store's file, in bytes; null for a server. */
export async function readLogBytes(url: string): Promise<number | null> {
  const [engine, address] = engineOf(url)
  return engine.readLogBytes(address)
}

/** Brings the schema to this version, creating the store when there is none; returns the version before and after. */
export async function migrateStore(
  url: string,
  onRewrite?: OnRewrite,
  wait?: LockWait,
): Promise<MigrationOutcome> {
  const [engine, address] = engineOf(url)
  return engine.migrate(address, onRewrite, wait)
}

/** Whether there is no store at an address at which one would be created. */
export function isMissing(url: string): boolean {
  const [engine, address] = engineOf(url)
  return engine.createsItself && !existsSync(address)
}

/** Creates or migrates a store that lives in a file. The schema of a server changes with `fatura migrate` alone. */
export async function prepareStore(url: string, wait?: LockWait): Promise<void> {
  if (engineOf(url)[0].createsItself) await migrateStore(url, undefined, wait)
}
