/** What PostgreSQL and the network do to a service: a blip or one clear line, never a hang, a stack or a leak. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { migrateStore, openOperatorStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { openReadPool, translate } from '../../src/store/postgres/pool.ts'
import { schema } from '../../src/store/postgres/schema.ts'
import { StoreError, StoreUnavailable } from '../../src/store/store.ts'
import { assertOneLine, createCli, eventually, ndjson, type Outcome } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { runSql } from '../support/databases/engines.ts'
import {
  createDatabase,
  createStore,
  detail,
  lock,
  serve,
  server,
  startFreezingProxy,
  useOwnPostgres,
} from '../support/databases/own-postgres.ts'
import { freePort } from '../support/databases/postgres-server.ts'
import { makeInvoice, makeRecord } from '../support/worlds/records.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'

/** Number of tables at a version, of which one holds the version itself, and of functions once they are made. */
function countObjects(version: number, hasFunctions: boolean): number[] {
  const sql = schema.migrations.slice(0, version).map(migration => migration.sql)
  const functions = schema.functions?.sql.match(/^CREATE OR REPLACE FUNCTION/gm) ?? []
  return [sql.join('').split('CREATE TABLE').length, hasFunctions ? functions.length : 0]
}

useOwnPostgres()

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

/** One line, whichever way the connection broke. */
function assertBroken(outcome: Outcome): void {
  assert.match(outcome.stderr, /^fatura: The database cannot (be reached|do this right now): [^\n]+\n$/)
  assert.equal(outcome.code, 1)
}

describe('an unusable database server', () => {
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
  const told = /^The database at 127\.0\.0\.1:\d+ cannot be reached: .+$/

  for (const [place, [what, greet]] of oddities.entries())
    it(`that ${what}: each command gives up within 10 s with one line`, { timeout: 600_000 }, async t => {
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
      // A server that says nothing is only left by the clock: the command that waits least shows it as a program.
      const { args = [] } = (/never|HTTP/.test(what) ? commands[0] : commands[place % commands.length]) ?? {}
      assertOneLine(
        await cli.run(args, { env: { DATABASE_URL: url } }),
        /^fatura: The database at .* cannot be reached: ./,
      )

      const clock = stopClock(t)
      const before = sockets.size
      const lines = Promise.all(commands.map(({ open }) => refusalAt(open, url, StoreUnavailable)))
      await until(() => sockets.size >= before + commands.length)
      await clock.pass(10_000)
      for (const line of await lines) assert.match(line, told)
    })

  it('each command reports a stopped PostgreSQL in one line and exits with 1', async t => {
    const cli = await createCli(t)
    const url = `postgres://fatura:test@127.0.0.1:${await freePort()}/fatura`
    const stopped = [
      ['serve', '--port', '0'],
      ['serve', '--port', '0', '--migrate'],
      ['migrate'],
      ['token', 'list'],
    ]
    for (const args of stopped)
      assertOneLine(
        await cli.run(args, { env: { DATABASE_URL: url } }),
        /The database at [\w.]+:\d+ cannot be reached: .*ECONNREFUSED.* Check that PostgreSQL is running there, and check DATABASE_URL\.$/m,
      )
  })

  it('each command gives the reason when all of several database addresses refuse', () => {
    // What Node says then has no message of its own.
    const refusals = Object.assign(new AggregateError([new Error('one'), new Error('two')]), {
      code: 'ECONNREFUSED',
    })
    assert.match(String(translate(refusals)), /cannot be reached: ECONNREFUSED/)
  })
})

describe('fatura with a reachable PostgreSQL', { concurrency: 2 }, () => {
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

  it('names a refused login, database or permission in one line', async t => {
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

  it('reports a missing, old or new schema at the start of serve, and migrates only with --migrate', async t => {
    const cli = await createCli(t)
    const url = await createDatabase()
    const env = { DATABASE_URL: url }
    const run = (...args: string[]) => cli.run([...args, '--port', '0'], { env })
    const readSchema = async () =>
      (await runSql(url, "SELECT to_regnamespace('fatura') AS name")).rows[0].name

    assertOneLine(await run('serve'), /version 0/, /Run: fatura migrate/)
    assert.equal(await readSchema(), null, 'nothing was made')
    const migrated = await cli.serve(['--migrate'], { env })
    assert.equal((await migrated.get('/ready')).status, 200)
    assert.equal((await migrated.stop()).code, 0)

    const newer = schema.migrations.length + 1
    const newerVersion = new RegExp(`version ${newer}`)
    await runSql(url, `INSERT INTO fatura.migrations (version) VALUES (${newer})`)
    assertOneLine(await run('serve'), newerVersion, /newer/, /Upgrade Fatura/)
    assertOneLine(await run('serve', '--migrate'), newerVersion, /newer/, /Upgrade Fatura/)
    await runSql(url, 'DELETE FROM fatura.migrations')
    assertOneLine(await run('serve'), /version 0/, /Run: fatura migrate/)
    const { rowCount } = await runSql(url, 'SELECT FROM fatura.migrations')
    assert.equal(rowCount, 0, 'nothing was written')
  })

  it('cannot write in the API’s sessions, whatever the address or the statement says', async t => {
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

  it('migrates once when two processes migrate at the same time', async t => {
    const cli = await createCli(t)
    const url = await createDatabase()
    const env = { DATABASE_URL: url }
    const outcomes = await Promise.all([1, 2].map(() => cli.run(['migrate'], { env })))
    for (const { code, stderr } of outcomes) assert.deepEqual([code, stderr], [0, ''])
    const { rows } = await runSql(url, 'SELECT version FROM fatura.migrations ORDER BY version')
    const versions = [0, ...schema.migrations.map(({ version }) => version)]
    assert.deepEqual(
      rows.map(({ version }) => version),
      versions,
    )
  })

  it('keeps a complete version when a migration is killed, and the next run continues from it', async t => {
    const cli = await createCli(t)
    const watcher = new pg.Client(`${server.url}postgres`)
    await watcher.connect()
    t.after(() => watcher.end())
    const found: string[] = []
    for (const delay of [0, 24, 60, 120]) {
      const url = await createDatabase()
      const proxy = await startFreezingProxy(t, server.port)
      const isConnected = async () => {
        const { rowCount } = await watcher.query(
          "SELECT FROM pg_stat_activity WHERE datname = $1 AND application_name = 'fatura-writer'",
          [new URL(url).pathname.slice(1)],
        )
        return rowCount !== 0
      }
      const program = cli.start(['migrate'], { env: { DATABASE_URL: proxy.through(url) } })
      await Promise.race([proxy.connected, program.exited])
      await eventually(
        'its session has begun',
        async () => program.child.exitCode !== null || (await isConnected()),
      )
      // A moment of its work: whichever it is.
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
      const kept = begun
        ? (
            await runSql(
              url,
              'SELECT max(version) AS version, min(version) = 0 AS made FROM fatura.migrations',
            )
          ).rows[0]
        : {}
      const { version, made } = kept
      found.push(`${delay} ms: version ${version ?? (begun ? 0 : 'none')}`)
      assert.deepEqual(
        [tables, functions],
        begun ? countObjects(version ?? 0, made ?? false) : [0, 0],
        'all of a version or nothing of it',
      )
      assert.deepEqual(await migrateStore(url), { from: version ?? 0, to: schema.migrations.length })
      const store = await openWriteStore(url)
      assert.deepEqual(await store.listTokens(), [])
      await store.close()
    }
    t.diagnostic(`killed after ${found.join(', ')}`)
  })

  it('ends with one line and stores nothing when a command’s connection breaks', async t => {
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
    assert.deepEqual(await migrateStore(empty), { from: 0, to: schema.migrations.length })
  })

  it('passes on an error inside a transaction that PostgreSQL did not cause', async t => {
    const store = await openWriteStore((await createStore()).url)
    t.after(() => store.close())
    const fault = new Error('the input changed')
    const failing = store.transaction(async tx => {
      await tx.saveInvoices([makeRecord()])
      throw fault
    })
    await assert.rejects(failing, error => error === fault)
  })

  it('ends with one line when a lock lasts longer than lock_timeout', async t => {
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
