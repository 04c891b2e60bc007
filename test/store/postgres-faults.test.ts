/** What PostgreSQL and the network do to a service: a blip or one clear line, never a hang, a stack or a leak. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readlink } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createToken } from '../../src/access/token.ts'
import { migrateStore, openOperatorStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { openReadPool, translate } from '../../src/store/postgres/pool.ts'
import { migrations } from '../../src/store/postgres/schema-version.ts'
import { StoreError, StoreUnavailable } from '../../src/store/store.ts'
import { campaign } from '../support/campaign.ts'
import {
  assertOneLine,
  type Cli,
  createCli,
  eventually,
  isRefused,
  ndjson,
  type Outcome,
  type Program,
} from '../support/cli.ts'
import { runSql } from '../support/engines.ts'
import { ask, type Sample, startLoad } from '../support/load.ts'
import { createPostgresServer, freePort, type PostgresServer } from '../support/postgres-server.ts'
import { makeInvoice, makeLine, makeRecord } from '../support/records.ts'

/** How many tables and functions there are at a version; one table holds the version itself. */
function countObjects(version: number): number[] {
  const sql = migrations
    .slice(0, version)
    .map(migration => migration.sql)
    .join('')
  const functions = sql.matchAll(/CREATE (?:OR REPLACE )?FUNCTION (\S+?)\(/g)
  return [sql.split('CREATE TABLE').length, new Set([...functions].map(([, name]) => name)).size]
}

/** One for all: what restarts it runs first, and by itself. */
let server: PostgresServer
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

const poolSize = 10
const list = '/api/v1/client/cus_ana/invoices'
const detail = '/api/v1/client/cus_ana/invoice/in_1'

let serial = 0
/** A migrated database that others are copied from. */
let template = ''

/** A new database: empty, or as another one is. */
async function createDatabase(copied = 'template1'): Promise<string> {
  const name = `faults_${++serial}`
  await runSql(server.url, `CREATE DATABASE ${name} TEMPLATE ${copied} STRATEGY file_copy`)
  return server.url + name
}

/** A migrated database with invoices of cus_ana, and a token for them. */
async function createStore(): Promise<{ url: string; token: string }> {
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

interface Api extends Program {
  address: string
}

/** `fatura serve`, which logs nothing but faults of its own. */
async function serve(cli: Cli, url: string): Promise<Api> {
  const port = await freePort()
  const env = { DATABASE_URL: url, PORT: String(port), RATE_LIMIT: 'off', LOG_LEVEL: 'error' }
  const program = cli.start(['serve'], { env })
  await eventually('it listens', async () => {
    assert.equal(program.child.exitCode, null, program.stderr)
    return !(await isRefused(port))
  })
  return Object.create(program, { address: { value: `http://127.0.0.1:${port}` } })
}

/** Asserts an answer, or the one refusal that is allowed: come back later. */
function assertBlip({ status, headers, text, took }: Sample): void {
  if (status === 200) return
  assert.equal(status, 503, `after ${took} ms: ${text}`)
  assert.equal(JSON.parse(text).error.code, 'unavailable')
  assert.match(String(headers['retry-after']), /^[1-9]\d*$/)
}

/** Asserts that the program ended when told, having met no fault of its own. */
function assertCleanEnd({ code, stdout, stderr }: Outcome): void {
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' })
}

async function countBackends(url: string, application: string): Promise<number> {
  const { rows } = await runSql(
    url,
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = '${application}'`,
  )
  return rows[0].count
}

const assertNoBackend = (url: string) =>
  eventually('the API holds no connection', async () => (await countBackends(url, 'fatura-api')) === 0)

/** How many sockets the process holds; null where the system does not tell. */
async function countSockets(pid: number): Promise<number | null> {
  if (process.platform !== 'linux') return null
  const folder = `/proc/${pid}/fd`
  const targets = await Promise.all(
    (await readdir(folder)).map(name => readlink(`${folder}/${name}`).catch(() => '')),
  )
  return targets.filter(target => target.startsWith('socket:')).length
}

/** Asserts that no socket stays but those of the pool, of which the first was there before. */
async function assertFewSockets(pid: number, atFirst: number | null): Promise<void> {
  if (atFirst === null) return
  await eventually('only the sockets of the pool are left', async () => {
    return ((await countSockets(pid)) ?? 0) < atFirst + poolSize
  })
}

/** Asks until an answer is 200; says how many milliseconds that took. */
async function untilAnswered(url: string, token: string): Promise<number> {
  const started = performance.now()
  await eventually('the API answers again', async () => {
    const sample = await ask(url, token)
    assertBlip(sample)
    return sample.status === 200
  })
  return performance.now() - started
}

const worst = (samples: readonly Sample[]) => Math.max(...samples.map(({ took }) => took))
const figure = (ms: number) => `${Math.round(ms)} ms`

describe('a database restart is a blip', () => {
  let isUp = true
  after(start)

  async function start(): Promise<void> {
    // After a crash the server refuses to start until the last of its old processes has gone.
    for (let turn = 0; !isUp; turn++) {
      isUp = await server.start().then(
        () => true,
        () => false,
      )
      assert.ok(isUp || turn < 50, 'the server does not start')
      if (!isUp) await sleep(50)
    }
  }

  /** Politely, in haste, or as the kernel does when memory runs out. */
  async function stop(how: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    const { rows } = await runSql(server.url, "SELECT pg_read_file('postmaster.pid') AS text")
    const pid = Number.parseInt(rows[0].text, 10)
    isUp = false
    if (how === 'SIGINT') return server.stop()
    process.kill(pid, how)
    await eventually('the server has gone', () => !isAlive(pid))
  }

  it('under load: only 503 + Retry-After, none over 2 s, 200 again within 2 s, nothing leaked', async t => {
    const cli = await createCli(t)
    const { url, token } = await createStore()
    const api = await serve(cli, url)
    const socketsAtFirst = await countSockets(api.pid)
    const load = startLoad({
      address: api.address,
      paths: [list, detail, `${list}?q=lima&page_size=5`],
      token,
      loops: 16,
      pause: campaign(8, 4),
      atMost: 50_000,
    })
    t.after(() => load.stop())
    const answered = async (since: number) => {
      let found: Sample | undefined
      await eventually('there is a 200', () => {
        found = load.samples.findLast(({ at, status }) => status === 200 && at >= since)
        return found !== undefined
      })
      return load.samples.find(({ at, status }) => status === 200 && at >= since) as Sample
    }
    await answered(0)

    for (const [index, how] of rounds.slice(0, campaign(3, rounds.length)).entries()) {
      const before = load.samples.length
      await stop(how)
      await sleep(300)
      await start()
      const accepting = performance.now()
      const recovery = (await answered(accepting)).at - accepting
      const during = load.samples.slice(before)
      const refused = during.filter(({ status }) => status !== 200).length
      t.diagnostic(
        `restart ${index + 1} (${how}): 200 after ${figure(recovery)}, ${refused} of ${during.length} refused, worst ${figure(worst(during))}`,
      )
      assert.ok(recovery < campaign(5_000, 2_000), `the first 200 came ${figure(recovery)} after the restart`)
      assert.ok(refused > 0, 'the restart was noticed')
      await sleep(200)
    }

    await load.stop()
    for (const sample of load.samples) assertBlip(sample)
    t.diagnostic(`${load.samples.length} requests, worst ${figure(worst(load.samples))}`)
    assert.ok(worst(load.samples) < campaign(5_000, 2_000), `a request took ${figure(worst(load.samples))}`)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)
    await assertFewSockets(api.pid, socketsAtFirst)
    assertCleanEnd(await api.stop())
    await assertNoBackend(url)
  })

  it('while it is down, each command says so in one line and exits with 1', async t => {
    const cli = await createCli(t)
    const url = await createDatabase()
    await stop('SIGINT')
    const commands = [
      ['serve', '--port', '0'],
      ['serve', '--port', '0', '--migrate'],
      ['migrate'],
      ['token', 'list'],
    ]
    for (const args of commands)
      assertOneLine(
        await cli.run(args, { env: { DATABASE_URL: url } }),
        /The database at [\w.]+:\d+ cannot be reached: .*ECONNREFUSED.* Is PostgreSQL running there\? Check DATABASE_URL\.$/m,
      )
    await start()
  })
})

const rounds = [
  ...(['SIGINT', 'SIGKILL', 'SIGQUIT', 'SIGINT', 'SIGKILL'] as const),
  ...(['SIGQUIT', 'SIGINT', 'SIGKILL', 'SIGINT', 'SIGINT'] as const),
]

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Commands, and how each opens the store: a program only to see the same refusal again costs more than all of the rest. */
const commands = [
  { args: ['serve', '--port', '0'], open: openReadStore },
  { args: ['migrate'], open: migrateStore },
  { args: ['token', 'list'], open: openOperatorStore },
]

/** What a command that opens the store so has to say. */
async function refusalAt(
  open: (url: string) => Promise<unknown>,
  url: string,
  kind = StoreError,
): Promise<string> {
  const error = await open(url).then(
    () => assert.fail('it was opened'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof kind, String(error))
  return error.message
}

describe('PostgreSQL that is there', () => {
  /** A session that holds what it locked until it is ended. */
  async function lock(t: TestContext, url: string, sql: string): Promise<() => Promise<void>> {
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

  /** Resolves with the process id of a backend that waits for a lock. */
  async function waitingBackend(url: string, application: string): Promise<number> {
    let pid = 0
    await eventually('it waits for the lock', async () => {
      const { rows } = await runSql(
        url,
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
         AND application_name = '${application}' AND wait_event_type = 'Lock'`,
      )
      pid = rows[0]?.pid ?? 0
      return pid !== 0
    })
    return pid
  }

  it('when every connection is busy, requests answer 503 in time and /live does not notice', async t => {
    const cli = await createCli(t)
    const { url, token } = await createStore()
    const api = await serve(cli, url)
    const release = await lock(
      t,
      url,
      'LOCK TABLE fatura.invoices, fatura.customers IN ACCESS EXCLUSIVE MODE',
    )
    const live = startLoad({
      address: api.address,
      paths: ['/live'],
      token,
      loops: 1,
      pause: 20,
      atMost: 20_000,
    })
    t.after(() => live.stop())
    const ready = startLoad({
      address: api.address,
      paths: ['/ready'],
      token,
      loops: 1,
      pause: 20,
      atMost: 20_000,
    })
    t.after(() => ready.stop())
    const burst = await Promise.all(
      Array.from({ length: 4 * poolSize }, (_, i) => ask(api.address + (i % 2 === 0 ? list : detail), token)),
    )
    await Promise.all([live.stop(), ready.stop()])
    for (const sample of [...burst, ...ready.samples]) assertBlip(sample)
    for (const { status, took } of burst) {
      assert.equal(status, 503)
      assert.ok(took < 6_500, `took ${figure(took)}`)
    }
    // Who waited for a read that has a connection would wait until it is given up, after 5 s.
    const waited = burst.filter(({ took }) => took < campaign(5_000, 3_200))
    t.diagnostic(
      `${waited.length} had no connection, worst ${figure(worst(waited))}; the others' worst ${figure(worst(burst))}; /live's worst of ${live.samples.length} ${figure(worst(live.samples))}; /ready's ${figure(worst(ready.samples))}`,
    )
    assert.ok(waited.length >= 2 * poolSize, 'who gets no connection does not wait for those who have one')
    assert.ok(worst(live.samples) <= campaign(2_000, 200), `/live took ${figure(worst(live.samples))}`)
    for (const { status } of live.samples) assert.equal(status, 200)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)

    await release()
    t.diagnostic(`200 again after ${figure(await untilAnswered(api.address + list, token))}`)
    const again = await Promise.all(Array.from({ length: 40 }, () => ask(api.address + detail, token)))
    for (const { status, text } of again) assert.equal(status, 200, text)
    assert.ok((await countBackends(url, 'fatura-api')) <= poolSize)
    assertCleanEnd(await api.stop())
    await assertNoBackend(url)
  })

  it('refuses a login, a database or a right: one line that says which', async t => {
    const cli = await createCli(t)
    const { url } = await createStore()
    await runSql(url, "CREATE ROLE stranger LOGIN PASSWORD 'test'")
    const asStranger = url.replace('postgres:test', 'stranger:test')
    const cases: [url: string, ...patterns: RegExp[]][] = [
      [url.replace(':test@', ':wrong@'), /refused the connection/, /password/, /DATABASE_URL/],
      [url.replace('postgres:test', 'nobody:test'), /refused the connection/, /nobody/, /DATABASE_URL/],
      [`${url}_missing`, /refused the connection/, /_missing/, /DATABASE_URL/],
      [asStranger, /may not/, /permission denied/, /docs\/postgresql\.md/],
    ]
    for (const [place, [wrong, ...patterns]] of cases.entries()) {
      const lines = await Promise.all(commands.map(({ open }) => refusalAt(open, wrong)))
      for (const line of lines) {
        for (const pattern of patterns) assert.match(line, pattern)
        assert.doesNotMatch(line, /:test@|:wrong@|\n/, 'the password, or a second line')
      }
      const seen = place % commands.length
      const outcome = await cli.run(commands[seen]?.args ?? [], { env: { DATABASE_URL: wrong } })
      assertOneLine(outcome, ...patterns)
      assert.equal(outcome.stderr, `fatura: ${lines[seen]}\n`)
    }
  })

  it('has a schema that is missing, too old or too new: serve says so, and never migrates unasked', async t => {
    const cli = await createCli(t)
    const url = await createDatabase()
    const env = { DATABASE_URL: url }
    const run = (...args: string[]) => cli.run([...args, '--port', '0'], { env })
    const schema = async () => (await runSql(url, "SELECT to_regnamespace('fatura') AS name")).rows[0].name

    assertOneLine(await run('serve'), /version 0/, /Run: fatura migrate/)
    assert.equal(await schema(), null, 'nothing was made')
    const migrated = await cli.serve(['--migrate'], { env })
    assert.equal((await migrated.get('/ready')).status, 200)
    assert.equal((await migrated.stop()).code, 0)

    await runSql(url, 'INSERT INTO fatura.migrations (version) VALUES (99)')
    assertOneLine(await run('serve'), /version 99/, /newer/, /Upgrade Fatura/)
    assertOneLine(await run('serve', '--migrate'), /version 99/, /newer/, /Upgrade Fatura/)
    await runSql(url, 'DELETE FROM fatura.migrations')
    assertOneLine(await run('serve'), /version 0/, /Run: fatura migrate/)
    const { rowCount } = await runSql(url, 'SELECT FROM fatura.migrations')
    assert.equal(rowCount, 0, 'nothing was written')
  })

  it("refuses to write in the API's sessions, whatever the address asks for and whatever is called", async t => {
    const { url, token } = await createStore()
    for (const address of [url, `${url}?options=-c%20work_mem%3D8MB`]) {
      const pool = openReadPool(address)
      t.after(() => pool.end())
      const writes = [
        'DELETE FROM fatura.invoices',
        "INSERT INTO fatura.streams VALUES ('x', 1)",
        'CREATE TABLE x ()',
      ]
      for (const sql of writes) await assert.rejects(pool.query(sql), { code: '25006' }, `${address}: ${sql}`)
      const { rows } = await pool.query('SHOW statement_timeout')
      assert.deepEqual(rows, [{ statement_timeout: '5s' }])
    }
    const pool = openReadPool(`${url}?options=-c%20work_mem%3D8MB`)
    t.after(() => pool.end())
    assert.deepEqual((await pool.query('SHOW work_mem')).rows, [{ work_mem: '8MB' }])

    // A function that would write, in the place of one that reads.
    await runSql(
      url,
      `DROP FUNCTION fatura.find_invoice;
       CREATE FUNCTION fatura.find_invoice(text, text) RETURNS TABLE (summary text, lines text, synced_at bigint)
       LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
       BEGIN INSERT INTO fatura.streams VALUES ('written', 1); RETURN; END $$`,
    )
    const cli = await createCli(t)
    const api = await serve(cli, url)
    const { status } = await ask(api.address + detail, token)
    assert.equal(status, 500)
    await api.waitFor(/read-only transaction/)
    assert.equal((await runSql(url, 'SELECT FROM fatura.streams')).rowCount, 0)
  })

  it('may be migrated by two at once', async t => {
    const cli = await createCli(t)
    const url = await createDatabase()
    const env = { DATABASE_URL: url }
    const outcomes = await Promise.all([1, 2].map(() => cli.run(['migrate'], { env })))
    for (const { code, stderr } of outcomes) assert.deepEqual([code, stderr], [0, ''])
    const { rows } = await runSql(url, 'SELECT version FROM fatura.migrations ORDER BY version')
    assert.deepEqual(rows.map(({ version }) => version).at(-1), migrations.length)
    assert.equal(rows.length, migrations.length)
  })

  it('keeps a whole version when a migration is killed, and the next run continues from there', async t => {
    const cli = await createCli(t)
    const watcher = new pg.Client(`${server.url}postgres`)
    await watcher.connect()
    t.after(() => watcher.end())
    const found: string[] = []
    for (const delay of [0, 2, 4, 8, 12, 16, 24, 40]) {
      const url = await createDatabase()
      const proxy = await startProxy(t, server.port)
      const isConnected = async () => {
        const { rowCount } = await watcher.query(
          "SELECT FROM pg_stat_activity WHERE datname = $1 AND application_name = 'fatura-writer'",
          [new URL(url).pathname.slice(1)],
        )
        return rowCount !== 0
      }
      const program = cli.start(['migrate'], { env: { DATABASE_URL: proxy.through(url) } })
      await Promise.race([proxy.connected, program.exited])
      while (program.child.exitCode === null && !(await isConnected())) await sleep(1)
      await sleep(delay)
      await program.stop('SIGKILL')
      await eventually('its session has ended', async () => !(await isConnected()))

      const { rows } = await runSql(
        url,
        `SELECT to_regclass('fatura.migrations') IS NOT NULL AS begun,
         (SELECT count(*)::int FROM pg_class WHERE relnamespace = to_regnamespace('fatura') AND relkind = 'r') AS tables,
         (SELECT count(*)::int FROM pg_proc WHERE pronamespace = to_regnamespace('fatura')) AS functions`,
      )
      const [{ begun, tables, functions }] = rows
      const version = begun
        ? (await runSql(url, 'SELECT max(version) AS version FROM fatura.migrations')).rows[0].version
        : null
      found.push(`${delay} ms: version ${version ?? (begun ? 0 : 'none')}`)
      assert.deepEqual(
        [tables, functions],
        begun ? countObjects(version ?? 0) : [0, 0],
        'all of a version or nothing of it',
      )
      assert.deepEqual(await migrateStore(url), { from: version ?? 0, to: migrations.length })
      const store = await openWriteStore(url)
      assert.deepEqual(await store.listTokens(), [])
      await store.close()
    }
    t.diagnostic(`killed after ${found.join(', ')}`)
  })

  it('breaks the connection of a command in the middle of its work: one line, nothing half done', async t => {
    const cli = await createCli(t)
    const { url } = await createStore()
    const release = await lock(t, url, 'LOCK TABLE fatura.invoices IN ACCESS EXCLUSIVE MODE')
    const importing = cli.start(['import', '-'], {
      env: { DATABASE_URL: url },
      input: ndjson(makeInvoice({ id: 'in_new' })),
    })
    await runSql(url, `SELECT pg_terminate_backend(${await waitingBackend(url, 'fatura-writer')})`)
    assertBroken(await importing.exited)
    await release()
    assert.equal((await runSql(url, "SELECT FROM fatura.invoices WHERE id = 'in_new'")).rowCount, 0)

    const empty = await createDatabase()
    const unlock = await lock(t, empty, 'SELECT pg_advisory_xact_lock(7261328547)')
    const migrating = cli.start(['migrate'], { env: { DATABASE_URL: empty } })
    await runSql(empty, `SELECT pg_terminate_backend(${await waitingBackend(empty, 'fatura-writer')})`)
    assertBroken(await migrating.exited)
    await unlock()
    assert.deepEqual(await migrateStore(empty), { from: 0, to: migrations.length })
  })

  it('is not blamed for what fails in the middle of a transaction by itself', async t => {
    const store = await openWriteStore((await createStore()).url)
    t.after(() => store.close())
    const fault = new Error('the input changed')
    const failing = store.transaction(async tx => {
      await tx.saveInvoices([makeRecord()])
      throw fault
    })
    await assert.rejects(failing, error => error === fault)
  })

  it('keeps a lock from a command for longer than its patience: one line', async t => {
    const cli = await createCli(t)
    const { url } = await createStore()
    await lock(t, url, 'LOCK TABLE fatura.invoices IN ACCESS EXCLUSIVE MODE')
    const impatient = `${url}?lock_timeout=300`
    const outcome = await cli.run(['import', '-'], {
      env: { DATABASE_URL: impatient },
      input: ndjson(makeInvoice()),
    })
    assertBroken(outcome)
    assert.match(outcome.stderr, /lock timeout/)
  })
})

/** One line, whichever way the connection broke. */
function assertBroken(outcome: Outcome): void {
  assert.match(outcome.stderr, /^fatura: The database cannot (be reached|do this right now): [^\n]+\n$/)
  assert.equal(outcome.code, 1)
}

describe('what answers in the place of PostgreSQL', { concurrency: true }, () => {
  it('falls silent behind the network: 503 within 7 s, and 200 again once it speaks', async t => {
    const cli = await createCli(t)
    const { url, token } = await createStore()
    const proxy = await startProxy(t, server.port)
    const api = await serve(cli, proxy.through(url))
    const socketsAtFirst = await countSockets(api.pid)
    const burst = () =>
      Promise.all(
        Array.from({ length: 3 * poolSize }, (_, i) => ask(api.address + (i % 2 ? list : detail), token)),
      )
    for (const how of ['thaw', 'cut'] as const) {
      for (const { status, text } of await burst()) assert.equal(status, 200, text)
      proxy.freeze()
      // At first with the connections there are, then with none.
      const samples = [...(await burst()), ...(await burst())]
      for (const sample of samples) assertBlip(sample)
      for (const { status } of samples) assert.equal(status, 503)
      assert.ok(worst(samples) < 7_000, `a request took ${figure(worst(samples))}`)
      proxy[how]()
      const recovery = await untilAnswered(api.address + list, token)
      t.diagnostic(`${how}: worst ${figure(worst(samples))}, 200 again after ${figure(recovery)}`)
      assert.ok(recovery < campaign(5_000, 2_000), `it recovered after ${figure(recovery)}`)
      await assertFewSockets(api.pid, socketsAtFirst)
    }
    proxy.freeze()
    const asked = performance.now()
    const giveUp = setTimeout(() => api.child.kill('SIGKILL'), 10_000)
    assertCleanEnd(await api.stop())
    clearTimeout(giveUp)
    const took = performance.now() - asked
    t.diagnostic(`stopped in ${figure(took)} while the database was silent`)
    assert.ok(took < 10_000, `it stopped after ${figure(took)}`)
    proxy.cut()
    await assertNoBackend(url)
  })

  const oddities: [what: string, greet: (socket: Socket) => void][] = [
    ['accepts and never answers', () => {}],
    ['hangs up at once', socket => socket.end()],
    ['resets the connection', socket => socket.resetAndDestroy()],
    ['speaks HTTP', socket => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
    [
      'speaks the language of MySQL',
      socket => {
        socket.write('\x4a\0\0\0\x0a8.4.0\0\x08\0\0\0abcdefgh\0'.padEnd(90, 'x'))
        socket.once('data', () => socket.end())
      },
    ],
  ]
  for (const [place, [what, greet]] of oddities.entries())
    it(`${what}: each command fails with one line, in time`, async t => {
      const cli = await createCli(t)
      const sockets = new Set<Socket>()
      const other = createServer(socket => {
        sockets.add(socket)
        socket.on('error', () => {}).on('data', () => {})
        greet(socket)
      }).listen(0, '127.0.0.1')
      t.after(() => {
        other.close()
        for (const socket of sockets) socket.destroy()
      })
      await once(other, 'listening')
      const url = `postgres://fatura:test@127.0.0.1:${(other.address() as AddressInfo).port}/fatura`
      const asked = performance.now()
      const line = await refusalAt(openReadStore, url, StoreUnavailable)
      const took = performance.now() - asked
      assert.ok(took < 10_000, `took ${figure(took)}`)
      const told = /The database at 127\.0\.0\.1:\d+ cannot be reached: ./
      // Each command's way, and of the commands themselves one in turn.
      const [serving, migrating] = commands
      const { args = [] } = (place % 2 === 0 ? serving : migrating) ?? {}
      const [outcome, otherLine] = await Promise.all([
        cli.run(args, { env: { DATABASE_URL: url }, patience: 60_000 }),
        refusalAt(migrateStore, url, StoreUnavailable),
      ])
      assertOneLine(outcome, told)
      for (const text of [line, otherLine]) {
        assert.match(text, told)
        assert.doesNotMatch(text, /\n/)
      }
    })

  it('names several addresses that all refuse: the reason is told', () => {
    // What Node says then has no message of its own.
    const refusals = Object.assign(new AggregateError([new Error('one'), new Error('two')]), {
      code: 'ECONNREFUSED',
    })
    assert.match(String(translate(refusals)), /cannot be reached: ECONNREFUSED/)
  })
})

interface Proxy {
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

async function startProxy(t: TestContext, port: number): Promise<Proxy> {
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
