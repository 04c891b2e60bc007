/** A PostgreSQL of the tests' own, and the program before it: to be restarted, locked and cut off. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readlink } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, type TestContext } from 'node:test'
import pg from 'pg'
import { createToken } from '../../../src/http/access/token.ts'
import { migrateStore, openWriteStore } from '../../../src/store/engines.ts'
import { type Cli, eventually, isRefused, type Outcome, type Program } from '../clients/cli.ts'
import type { Sample } from '../clients/load.ts'
import { makeLine, makeRecord } from '../worlds/records.ts'
import { runSql } from './engines.ts'
import { createPostgresServer, freePort, type PostgresServer } from './postgres-server.ts'

/** One for all tests of a process, from the first to the last. */
export let server: PostgresServer
let isUsed = false

export function useOwnPostgres(): void {
  if (isUsed) return
  isUsed = true
  before(async () => {
    server = await createPostgresServer()
    await server.start()
    const url = await createDatabase()
    await migrateStore(url)
    template = new URL(url).pathname.slice(1)
  })
  after(async () => {
    await server.stop()
    await server.remove()
  })
}

export const poolSize = 10
export const list = '/api/v1/client/cus_ana/invoices'
export const detail = '/api/v1/client/cus_ana/invoice/in_1'

let serial = 0
/** A migrated database that others are copied from. */
let template = ''

/** A new database: empty, or as another one is. */
export async function createDatabase(copied = 'template1'): Promise<string> {
  const name = `faults_${++serial}`
  await runSql(server.url, `CREATE DATABASE ${name} TEMPLATE ${copied} STRATEGY file_copy`)
  return server.url + name
}

/** A migrated database with invoices of cus_ana, and a token for them. */
export async function createStore(): Promise<{ url: string; token: string }> {
  const url = await createDatabase(template)
  const store = await openWriteStore(url)
  const records = Array.from({ length: 30 }, (_, i) => makeRecord({ id: `in_${i}` }, [makeLine()]))
  await store.transaction(tx => tx.saveInvoices(records))
  const { id, token, hash } = createToken()
  const never = { expires_at: null, revoked_at: null }
  await store.saveToken({ id, name: 'test', hash, customers: null, created_at: Date.now(), ...never })
  await store.close()
  return { url, token }
}

export interface Api extends Program {
  address: string
}

/** `fatura serve`, which by default logs nothing but faults of its own. */
export async function serve(cli: Cli, url: string, level = 'error'): Promise<Api> {
  const port = await freePort()
  const env = { DATABASE_URL: url, PORT: String(port), RATE_LIMIT: 'off', LOG_LEVEL: level }
  const program = cli.start(['serve'], { env })
  await eventually('it listens', async () => {
    assert.equal(program.child.exitCode, null, program.stderr)
    return !(await isRefused(port))
  })
  return Object.create(program, { address: { value: `http://127.0.0.1:${port}` } })
}

/** Asserts an answer, or the one refusal that is allowed: come back later. */
export function assertBlip({ status, headers, text }: Pick<Sample, 'status' | 'headers' | 'text'>): void {
  if (status === 200) return
  assert.equal(status, 503, text)
  assert.equal(JSON.parse(text).error.code, 'unavailable')
  assert.match(String(headers['retry-after']), /^[1-9]\d*$/)
}

/** Asserts that the program ended when told, having met no fault of its own. */
export function assertCleanEnd({ code, stdout, stderr }: Outcome): void {
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' })
}

export async function countBackends(url: string, application: string): Promise<number> {
  const { rows } = await runSql(
    url,
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = '${application}'`,
  )
  return rows[0].count
}

export const assertNoBackend = (url: string) =>
  eventually('the API holds no connection', async () => (await countBackends(url, 'fatura-api')) === 0)

/** How many sockets the process holds; null where the system does not tell. */
export async function countSockets(pid: number): Promise<number | null> {
  if (process.platform !== 'linux') return null
  const folder = `/proc/${pid}/fd`
  const targets = await Promise.all(
    (await readdir(folder)).map(name => readlink(`${folder}/${name}`).catch(() => '')),
  )
  return targets.filter(target => target.startsWith('socket:')).length
}

/** Asserts that no socket stays but those of the pool, of which some may have been there before. */
export async function assertFewSockets(pid: number, atFirst: number | null): Promise<void> {
  if (atFirst === null) return
  await eventually('only the sockets of the pool are left', async () => {
    return ((await countSockets(pid)) ?? 0) <= atFirst + poolSize
  })
}

/** Stops the server politely, in haste, or as the kernel does when memory runs out; starts it again after what is to happen meanwhile. */
export async function restartServer(
  how: 'SIGINT' | 'SIGQUIT' | 'SIGKILL',
  meanwhile: () => Promise<unknown>,
): Promise<void> {
  const { rows } = await runSql(server.url, "SELECT pg_read_file('postmaster.pid') AS text")
  const pid = Number.parseInt(rows[0].text, 10)
  if (how === 'SIGINT') await server.stop()
  else {
    process.kill(pid, how)
    await eventually('the server has gone', () => !isAlive(pid))
  }
  try {
    await meanwhile()
  } finally {
    // After a crash the server refuses to start until the last of its old processes has gone.
    await eventually('the server starts', () =>
      server.start().then(
        () => true,
        () => false,
      ),
    )
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** A session that holds what it locked until it is ended. */
export async function lock(t: TestContext, url: string, sql: string): Promise<() => Promise<void>> {
  const client = new pg.Client(url)
  await client.connect()
  let isOpen = true
  const release = async () => {
    if (isOpen) await client.end()
    isOpen = false
  }
  t.after(release)
  await client.query(`BEGIN; ${sql}`)
  return release
}

export interface Proxy {
  /** The same address, but through the proxy. */
  through(url: string): string
  /** Resolves when somebody connects. */
  connected: Promise<unknown>
  /** From now on nothing passes, and nobody is told. */
  freeze(): void
  /** What was held back passes, and all that follows. */
  thaw(): void
  /** Breaks every connection; new ones pass. */
  cut(): void
}

export async function startFreezingProxy(t: TestContext, port: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const held: Socket[] = []
  let isFrozen = false
  const pass = (from: Socket, to: Socket) => {
    sockets.add(from)
    if (isFrozen) from.pause()
    from.on('data', chunk => to.write(chunk))
    from.on('end', () => to.end())
    from.on('error', () => to.destroy())
    from.on('close', () => sockets.delete(from))
  }
  const open = (client: Socket) => {
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    pass(client, upstream)
    pass(upstream, client)
  }
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, client => {
    client.on('error', () => {})
    if (isFrozen) held.push(client)
    else {
      open(client)
      client.resume()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const proxy: Proxy = {
    connected: once(server, 'connection'),
    through(url) {
      const address = new URL(url)
      address.port = String((server.address() as AddressInfo).port)
      return address.href
    },
    freeze() {
      isFrozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw() {
      isFrozen = false
      for (const client of held.splice(0)) open(client)
      for (const socket of sockets) socket.resume()
    },
    cut() {
      isFrozen = false
      for (const socket of [...held.splice(0), ...sockets]) socket.destroy()
    },
  }
  t.after(() => {
    proxy.cut()
    server.close()
  })
  return proxy
}
