/** Every engine a store can run on. A suite loops over them, so that one suite runs over all. */
import { randomBytes } from 'node:crypto'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { createCitusDatabase, skipCitus } from './citus-cluster.ts'
import { runSql } from './run-sql.ts'

export { runSql }

export interface Engine {
  name: string
  /** The address of a new, empty, migrated store that goes away with the test. */
  createStore(t: TestContext): Promise<string>
}

const sqlite: Engine = {
  name: 'sqlite',
  async createStore(t) {
    const path = join(await createFolder(t), 'fatura.db')
    await copyFile(needed('TEST_SQLITE_TEMPLATE'), path)
    return `sqlite:${path}`
  },
}

const postgres: Engine = {
  name: 'postgres',
  createStore(t) {
    return createDatabase(t, process.env.TEST_POSTGRES_TEMPLATE)
  },
}

/** An empty database, or a copy of another one, that goes away with the test. */
export async function createDatabase(t: TestContext, template = 'template1'): Promise<string> {
  const name = `fatura_${randomBytes(6).toString('hex')}`
  // Copying the files takes half the CPU of writing them to the journal as well.
  await onServer(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`)
  t.after(() => onServer(`DROP DATABASE ${name} WITH (FORCE)`))
  return postgresServer() + name
}

let connections: pg.Pool | undefined

/** On connections that are used again: to connect takes as much CPU as to drop a database. They keep no process from its end. */
function onServer(sql: string): Promise<unknown> {
  if (connections === undefined) {
    connections = new pg.Pool({
      connectionString: `${postgresServer()}postgres`,
      max: 4,
      allowExitOnIdle: true,
    })
    // One that breaks while it is idle is replaced.
    connections.on('error', () => {})
  }
  return connections.query(sql)
}

/** PostgreSQL with the extension, on several nodes. */
const citus: Engine = {
  name: 'citus',
  async createStore(t) {
    const [coordinator = ''] = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    return coordinator
  },
}

export const engines: readonly Engine[] = [sqlite, postgres, ...(skipCitus ? [] : [citus])]

/** The address of the run's server, to which a database's name is to be appended. */
export function postgresServer(): string {
  const url = needed('TEST_POSTGRES_URL')
  return url.endsWith('/') ? url : `${url}/`
}

/** What test/support/databases/postgres-server.ts prepared before the first test file. */
export function needed(name: string): string {
  const value = process.env[name]
  if (!value)
    throw new Error(
      `There is no ${name}: run the tests with npm test, or one file with npm run test:file -- FILE`,
    )
  return value
}

/** A folder that goes away with the test. */
export async function createFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fatura-test-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}
