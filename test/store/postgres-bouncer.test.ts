/** What PgBouncer says in the place of PostgreSQL: a server that it lost is tried again, and what is set up wrongly is told. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { StoreError, StoreUnavailable } from '../../src/store/store.ts'
import { createCli, eventually, isRefused, unwrapped } from '../support/clients/cli.ts'
import { createFolder, engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
const list = { customer_id: 'cus_ana', page: 1, page_size: 10 }

interface Words {
  code: string
  message: string
}

interface Bouncer {
  url: string
  /** So many of the next questions on connections that are there are answered so, and their connections closed. */
  say(words: Words, times?: number): void
}

/** Lets everything pass but what it is told to answer itself. */
async function startBouncer(t: TestContext, url: string): Promise<Bouncer> {
  const target = new URL(url)
  const port = Number(target.port)
  const said: Words[] = []
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect(port, target.hostname)
    let isStarted = false
    client.on('data', chunk => {
      if (client.writableEnded) return
      // The freshness is asked for by the clock, and an older one would do.
      const words = isStarted && !chunk.includes('freshness') ? said.shift() : undefined
      if (words === undefined) return void upstream.write(chunk)
      client.end(errorResponse(words))
      upstream.destroy()
    })
    // Ready for the first question: what comes before is the login.
    upstream.on('data', chunk => {
      isStarted ||= chunk.includes('Z\0\0\0\x05I')
      client.write(chunk)
    })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    upstream.on('close', () => client.end())
    client.on('close', () => upstream.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  target.port = String((server.address() as AddressInfo).port)
  return { url: target.href, say: (words, times = 1) => said.push(...Array(times).fill(words)) }
}

function errorResponse({ code, message }: Words): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

async function openThrough(t: TestContext) {
  const url = await postgres.createStore(t)
  const writer = await openWriteStore(url)
  await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1' })]))
  await writer.close()
  const bouncer = await startBouncer(t, url)
  const reader = await openReadStore(bouncer.url)
  t.after(() => reader.close())
  return { bouncer, reader }
}

describe('a reader behind PgBouncer', () => {
  test('repeats a read once when the server is lost, and reports 503 after a second loss', async t => {
    const { bouncer, reader } = await openThrough(t)
    const losses: Words[] = [
      { code: '08P01', message: 'server conn crashed?' },
      { code: '58000', message: 'server conn crashed?' },
      { code: '08P01', message: 'server closed the connection unexpectedly' },
      { code: '08P01', message: 'query_wait_timeout' },
      {
        code: '08P01',
        message: 'server login has been failing, cached error: connect failed (server_login_retry)',
      },
    ]
    for (const words of losses)
      for (const ask of [
        () => reader.listInvoices(list),
        () => reader.listInvoices({ ...list, status: 'paid' }),
      ]) {
        assert.equal((await ask()).total, 1)
        bouncer.say(words)
        assert.equal((await ask()).total, 1, words.message)
        bouncer.say(words, 2)
        await assert.rejects(ask(), StoreUnavailable, words.message)
      }
  })

  test('names the setting to change when PgBouncer does not support prepared statements', async t => {
    const { bouncer, reader } = await openThrough(t)
    bouncer.say({ code: '42P05', message: 'prepared statement "list" already exists' }, 2)
    await assert.rejects(
      reader.listInvoices(list),
      (error: Error) => error instanceof StoreError && /max_prepared_statements/.test(error.message),
    )
  })
})

const installed = /PgBouncer (\d+)\.(\d+)/.exec(
  spawnSync('pgbouncer', ['--version'], { encoding: 'utf8' }).stdout ?? '',
)
const knowsStatements = Number(installed?.[1]) > 1 || Number(installed?.[2]) >= 21

/** A real one in front of the database of `url`; the address of it. */
async function startPgBouncer(t: TestContext, url: string, settings: readonly string[]): Promise<string> {
  const { hostname, port, pathname, username, password } = new URL(url)
  const folder = await createFolder(t)
  await chmod(folder, 0o755)
  const reserved = createServer().listen(0, '127.0.0.1')
  await once(reserved, 'listening')
  const own = (reserved.address() as AddressInfo).port
  await new Promise(resolve => reserved.close(resolve))
  const target = `host=${hostname} port=${port} dbname=${pathname.slice(1)} user=${username}`
  const lines = [
    ...['[databases]', `fatura = ${target} password=${decodeURIComponent(password)}`, '[pgbouncer]'],
    ...['listen_addr = 127.0.0.1', `listen_port = ${own}`, 'unix_socket_dir =', 'auth_type = any'],
    ...['ignore_startup_parameters = options,extra_float_digits', ...settings],
  ]
  const file = join(folder, 'pgbouncer.ini')
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o644 })
  // It refuses to run as root; 65534 is nobody.
  const child = spawn('pgbouncer', [file], {
    stdio: 'ignore',
    ...(process.getuid?.() === 0 && { uid: 65_534, gid: 65_534 }),
  })
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await eventually('PgBouncer listens', async () => !(await isRefused(own)))
  return `postgres://${username}@127.0.0.1:${own}/fatura`
}

describe('fatura doctor behind a real PgBouncer', {
  skip: installed === null && 'PgBouncer is not installed: apt install pgbouncer',
}, () => {
  const cases: [mode: string, settings: string[], isFine: boolean][] = [
    ['transaction mode', ['pool_mode = transaction'], false],
    ['transaction mode, with one connection', ['pool_mode = transaction', 'default_pool_size = 1'], false],
    ['session mode', ['pool_mode = session'], true],
  ]
  const named = ['pool_mode = transaction', 'max_prepared_statements = 100']
  const off = knowsStatements ? ['max_prepared_statements = 0'] : []
  if (knowsStatements) cases.push(['transaction mode, which knows prepared statements', named, true])
  for (const [mode, settings, isFine] of cases)
    test(`${isFine ? 'finds no problem' : 'names the setting to change'} in ${mode}`, async t => {
      const url = await startPgBouncer(
        t,
        await postgres.createStore(t),
        isFine ? settings : [...settings, ...off],
      )
      const cli = await createCli(t)
      for (let turn = 0; turn < 2; turn++) {
        const { stdout } = await cli.run(['doctor', '--sample', '0'], { env: { DATABASE_URL: url } })
        const found = unwrapped(stdout)
        assert.match(found, /Database: clock|Clock|PostgreSQL \d+\.?\d* answers/i)
        const told =
          /FAIL {2}Database: prepared statements .*PgBouncer 1\.21 or newer with max_prepared_statements = 100/s
        assert.equal(told.test(found), !isFine, found)
      }
    })
})
