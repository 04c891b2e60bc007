/** SQLite has one writer at a time: whoever waits for it stands in nobody's way, and says what it waits for. */
import assert from 'node:assert/strict'
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { prepareStore } from '../../src/store/engines.ts'
import { assertOneLine, createCli, eventually, ndjson } from '../support/cli.ts'
import { ask } from '../support/load.ts'
import { onThisMachine } from '../support/machine-speed.ts'
import { quickClock } from '../support/quick-clock.ts'
import { makeInvoice } from '../support/records.ts'
import { lockSqlite } from '../support/sqlite-lock.ts'
import {
  assertTruth,
  createSyncWorld,
  readStored,
  type SyncWorld,
  trueRecord,
} from '../support/sync-truth.ts'

const waiting = /Waiting for another process that writes to \S*fatura\.db …\n/
const isListed = /"step":"rereadUnsettled"/

async function startUp(world: SyncWorld) {
  await prepareStore(world.url)
  const env = quickClock(10)
  const program = world.start(['up', '--port', '0', '--rate-limit', 'off'], { env })
  const [, address = ''] = await program.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
  return { program, address }
}

describe('a locked sqlite store', { concurrency: 4 }, () => {
  // First, as they wait longest: the others run beside them.
  it('fatura up serves on, and tries again, when the lock outlasts its patience just after the start', async t => {
    const world = await createSyncWorld(t, { invoices: 40, seed: 74 })
    world.sandbox.faults.set('retrieve_account', 'too_many', { times: 1, retryAfter: '20' })
    const { program, address } = await startUp(world)
    await eventually('it asks whose records they are', () => world.sandbox.requests.has('retrieve_account'))
    const held = lockSqlite(t, world.url)
    await program.waitFor(/"msg":"waiting: another process writes to this store"/)
    await program.waitFor(/"msg":"sync failed; trying again"/)
    assert.equal((await ask(`${address}/live`, '')).status, 200)
    held.release()
    await program.waitFor(isListed)
    await assertTruth(world.url, world.account)
    assert.equal((await program.stop()).code, 0)
  })

  it('a command gives up after 30 s, with one line more', async t => {
    const cli = await createCli(t)
    await cli.createToken()
    lockSqlite(t, cli.database)
    const started = performance.now()
    const program = cli.start(['token', 'create', '--all-customers'], { env: quickClock(10) })
    const outcome = await program.exited
    assert.match(outcome.stderr, waiting)
    assertOneLine({ ...outcome, stderr: outcome.stderr.replace(waiting, '') }, /is locked by another writer/)
    assert.ok(performance.now() - started > 3_000, '30 s by its clock')
  })

  it('fatura up starts while another process keeps the store locked, and synchronizes once it is free', async t => {
    const world = await createSyncWorld(t, { invoices: 40, seed: 71 })
    await prepareStore(world.url)
    const held = lockSqlite(t, world.url)
    const bound = onThisMachine(10_000)
    const starts = performance.now()
    const { program } = await startUp(world)
    assert.ok(performance.now() - starts < bound, 'a start has nothing to write, and waits for nobody')
    await program.waitFor(/"msg":"waiting: another process writes to this store, or it is out of reach"/)
    held.release()
    await program.waitFor(isListed)
    await assertTruth(world.url, world.account)

    await t.test(
      'and tells in its log what it waits for; what came meanwhile is stored afterwards',
      async t => {
        const before = program.stdout.length
        const held = lockSqlite(t, world.url)
        let id = world.account.change('create')
        // Not every one has a customer.
        while (trueRecord(world.account, id) === null) id = world.account.change('create')
        await eventually('it tells', () =>
          /"msg":"waiting: another process writes to this store"/.test(program.stdout.slice(before)),
        )
        held.release()
        await eventually('it is stored', async () => (await readStored(world.url)).records.has(id))
        await assertTruth(world.url, world.account)
      },
    )
    assert.equal((await program.stop()).code, 0)
  })

  it('a command says after 2 s what it waits for, and goes on when the store is free', async t => {
    const cli = await createCli(t)
    const token = await cli.createToken()
    const held = lockSqlite(t, cli.database)
    const started = performance.now()
    const programs = (
      [
        [['token', 'create', '--all-customers'], ''],
        [['token', 'revoke', token.slice(0, 16)], ''],
        [['import', '-'], ndjson(makeInvoice())],
      ] as const
    ).map(([args, input]) => cli.start(args, { input }))
    await Promise.all(
      programs.map(async program => {
        await eventually('it says so', () => waiting.test(program.stderr) || program.child.exitCode !== null)
        assert.match(program.stderr, waiting)
        assert.ok(performance.now() - started > 2_000, 'it did not wait to say so')
      }),
    )
    held.release()
    for (const { exited } of programs) {
      const { code, stderr } = await exited
      assert.equal(code, 0, stderr)
      assert.equal(stderr.split('Waiting').length, 2, 'it is said once')
    }
  })

  it('fatura up ends at a signal while its start waits for the lock', async t => {
    const world = await createSyncWorld(t, { invoices: 1 })
    const path = join(world.cli.folder, 'new', 'fatura.db')
    await mkdir(dirname(path))
    new DatabaseSync(path).exec('PRAGMA journal_mode = WAL')
    lockSqlite(t, path)
    const program = world.start(['up', '--port', '0'], { env: { DATABASE_URL: `sqlite:${path}` } })
    await program.waitFor(/"msg":"waiting: another process writes to this store"/)
    const bound = onThisMachine(10_000)
    const signalled = performance.now()
    assert.equal((await program.stop()).code, 0)
    assert.ok(performance.now() - signalled < bound)
  })

  it('fatura up ends with code 1 when the thread that synchronizes crashes', async t => {
    const world = await createSyncWorld(t, { invoices: 1 })
    const crash = join(world.cli.folder, 'crash.mjs')
    await writeFile(
      crash,
      `import { isMainThread } from 'node:worker_threads'
       if (!isMainThread) setTimeout(() => { throw new Error('planted') }, 1_000)`,
    )
    const outcome = await world.run(['up', '--port', '0'], { env: { NODE_OPTIONS: `--import=${crash}` } })
    assert.equal(outcome.code, 1)
    assert.match(outcome.stderr, /^fatura: unexpected failure, please report it: Error: planted\n/)
  })
})

describe('a sqlite file', () => {
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

  it('is for its owner alone, and so are its folder and the files beside it', async t => {
    const cli = await createCli(t)
    const umask = process.umask(0o022)
    t.after(() => process.umask(umask))
    assert.equal((await cli.run(['token', 'create', '--all-customers', '--create'])).code, 0)
    const { stop } = await cli.serve()
    for (const path of [cli.database, `${cli.database}-wal`, `${cli.database}-shm`])
      assert.equal(await modeOf(path), '600', path)
    assert.equal(await modeOf(dirname(cli.database)), '700')
    await stop()
  })

  it('keeps the permissions that it was given', async t => {
    const cli = await createCli(t)
    await mkdir(dirname(cli.database))
    await chmod(dirname(cli.database), 0o750)
    assert.equal((await cli.run(['token', 'create', '--all-customers', '--create'])).code, 0)
    assert.equal(await modeOf(dirname(cli.database)), '750')
    await chmod(cli.database, 0o640)
    assert.equal((await cli.run(['token', 'create', '--all-customers', '--create'])).code, 0)
    assert.equal(await modeOf(cli.database), '640')
  })
})
