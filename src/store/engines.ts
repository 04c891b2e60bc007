/** From an address to an engine. An engine is loaded only when it is used. */
import { existsSync } from 'node:fs'
import type { StoreFacts } from './facts.ts'
import type { MigrationOutcome, OnRewrite } from './migrations.ts'
import type { OnLeftOut } from './postgres/nodes-reader.ts'
import { hostsOf, splitHosts } from './postgres/split-hosts.ts'
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

interface Engine {
  openRead(sharedBy: number, onLeftOut?: OnLeftOut): Promise<ReadStore>
  openOperator(): Promise<OperatorStore>
  openWrite(wait: LockWait): Promise<WriteStore>
  openConnector(wait: ConnectorWait): Promise<ConnectorStores>
  readFacts(): Promise<StoreFacts>
  findDamage(isDeep: boolean): Promise<readonly string[] | null>
  readLogBytes(): Promise<number | null>
  migrate(onRewrite?: OnRewrite, wait?: LockWait): Promise<MigrationOutcome>
  findProblem(): string | null
  /** The file that is made when it is needed; null for a server, whose store is made by `fatura migrate` alone. */
  file: string | null
}

const sqlite = (path: string): Engine => ({
  openRead: async () => (await import('./sqlite/reader.ts')).openSqliteReader(path),
  openOperator: async () => (await import('./sqlite/operator.ts')).openSqliteOperator(path),
  openWrite: async wait => (await import('./sqlite/writer.ts')).openSqliteWriter(path, wait),
  openConnector: async wait => (await import('./sqlite/writer.ts')).openSqliteConnector(path, wait),
  readFacts: async () => (await import('./sqlite/read-facts.ts')).readSqliteFacts(path),
  findDamage: async isDeep => (await import('./sqlite/read-facts.ts')).findDamage(path, isDeep),
  readLogBytes: async () => (await import('./sqlite/database.ts')).readLogBytes(path),
  migrate: async (onRewrite, wait) =>
    (await import('./sqlite/migrations.ts')).migrateSqlite(path, onRewrite, wait),
  findProblem: () => null,
  file: path,
})

const postgres = (url: string): Engine => ({
  async openRead(sharedBy, onLeftOut) {
    const urls = splitAddresses(url)
    if (urls.length > 1)
      return (await import('./postgres/nodes-reader.ts')).openNodesReader(urls, sharedBy, onLeftOut)
    return (await import('./postgres/reader.ts')).openPostgresReader(url, sharedBy)
  },
  openOperator: async () => (await import('./postgres/operator.ts')).openPostgresOperator(url),
  openWrite: async wait => (await import('./postgres/writer.ts')).openPostgresWriter(url, wait.patienceMs),
  async openConnector({ leasePatienceMs }) {
    const { openPostgresWriter } = await import('./postgres/writer.ts')
    return { store: await openPostgresWriter(url), leases: await openPostgresWriter(url, leasePatienceMs) }
  },
  readFacts: async () => (await import('./postgres/read-facts.ts')).readPostgresFacts(url),
  findDamage: async () => null,
  readLogBytes: async () => null,
  migrate: async onRewrite => (await import('./postgres/migrate.ts')).migratePostgres(url, onRewrite),
  findProblem() {
    const { urls, problem } = splitHosts(url) ?? { urls: [url], problem: null }
    if (splitAddresses(url).length > 1 || !urls.every(each => URL.canParse(each))) return addressForm
    return problem
  },
  file: null,
})

/** Several nodes of one store, where it is only read: addresses with commas between them. */
export function splitAddresses(url: string): string[] {
  return url.split(/,(?=postgres(?:ql)?:\/\/|sqlite:)/)
}

export { hostsOf }

/** Null for what is no address. */
function findEngine(url: string): Engine | null {
  if (/^postgres(ql)?:\/\//.test(url)) return postgres(url)
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : ''
  return path === '' || path === ':memory:' ? null : sqlite(path)
}

function engineOf(url: string): Engine {
  const engine = findEngine(url)
  if (engine === null) throw new StoreError(`DATABASE_URL ${addressForm}.`)
  return engine
}

/** Opens for reading only, on a schema of exactly this version. `sharedBy` processes share a server's connections. */
export async function openReadStore(url: string, sharedBy = 1, onLeftOut?: OnLeftOut): Promise<ReadStore> {
  return engineOf(url).openRead(sharedBy, onLeftOut)
}

/** Opens for commands that only look: the store's connections refuse to write. */
export async function openOperatorStore(url: string): Promise<OperatorStore> {
  return engineOf(url).openOperator()
}

/** Opens for writing, on a schema of exactly this version; creates nothing. It waits for another writer as `wait` has it, each time. */
export async function openWriteStore(url: string, wait: LockWait = {}): Promise<WriteStore> {
  return engineOf(url).openWrite(wait)
}

export async function openConnectorStores(url: string, wait: ConnectorWait): Promise<ConnectorStores> {
  return engineOf(url).openConnector(wait)
}

/** The fault of an address, as in "must be …"; null when it is one. */
export function findAddressProblem(url: string): string | null {
  const engine = findEngine(url)
  return engine === null ? addressForm : engine.findProblem()
}

/** Looks at a store of whatever version, and changes nothing. */
export async function readFacts(url: string): Promise<StoreFacts> {
  return engineOf(url).readFacts()
}

/** Damages, in the engine's words; empty when nothing is found, null where a server looks after its files itself. */
export async function findDamage(url: string, isDeep: boolean): Promise<readonly string[] | null> {
  return engineOf(url).findDamage(isDeep)
}

/** The size of the write-ahead log beside a store's file, in bytes; null for a server. */
export async function readLogBytes(url: string): Promise<number | null> {
  return engineOf(url).readLogBytes()
}

/** Brings the schema to this version, creating the store when there is none; returns the version before and after. */
export async function migrateStore(
  url: string,
  onRewrite?: OnRewrite,
  wait?: LockWait,
): Promise<MigrationOutcome> {
  return engineOf(url).migrate(onRewrite, wait)
}

/** Whether there is no store at an address at which one would be created. */
export function isMissing(url: string): boolean {
  const { file } = engineOf(url)
  return file !== null && !existsSync(file)
}

/** Creates or migrates a store that lives in a file. */
export async function prepareStore(url: string, wait?: LockWait): Promise<void> {
  if (engineOf(url).file !== null) await migrateStore(url, undefined, wait)
}
