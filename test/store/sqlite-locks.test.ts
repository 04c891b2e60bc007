/** SQLite has one writer at a time: whoever waits for it stands in nobody's way, and says what it waits for. */
import assert from 'node:assert/strict'
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, test } from 'node:test'
import { openWriteStore, prepareStore } from '../../src/store/engines.ts'
import {
  assertTruth,
  createSyncWorld,
  readStored,
  type SyncWorld,
  trueRecord,
  webhookSecret,
} from '../support/checks/sync-truth.ts'
import { assertOneLine, createCli, createStoredToken, eventually, ndjson } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { engines } from '../support/databases/engines.ts'
import { lockSqlite } from '../support/databases/sqlite-lock.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'
import { makeInvoice, makeRecord } from '../support/worlds/records.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

const waiting = /Waiting for another process that writes to \S*fatura\.db …\n/
const isListed = /"step":"rereadUnsettled"/

async function startUp(world: SyncWorld) {
  await prepareStore(world.url)
  const env = quickClock(10)
  const program = world.start(['up', '--port', '0', '--webhooks', '0', '--rate-limit', 'off'], { env })
  const [, address = ''] = await program.waitFor(/"address":"(http:[^"]+)","msg":"listening"/)
  return { program, address }
}

describe('a locked SQLite store', { concurrency: 4 }, () => {
  // First, as they wait longest: the others run beside them.
  it('does not end fatura up, which serves and repeats a failed sync during a long lock', async t => {
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

  it('makes a waiting command give up with one more line', async t => {
    const cli = await createCli(t)
    await cli.createToken()
    lockSqlite(t, cli.database)
    const program = cli.start(['token', 'create', '--all-customers'], { env: quickClock(20) })
    const outcome = await program.exited
    assert.match(outcome.stderr, waiting)
    assertOneLine({ ...outcome, stderr: outcome.stderr.replace(waiting, '') }, /is locked by another writer/)
  })

  it('does not stop fatura up from starting, serving, storing later changes and ending at a signal', async t => {
    const world = await createSyncWorld(t, { invoices: 40, seed: 71 })
    const token = await createStoredToken(world.url)
    const [customer] = world.account.customers.keys()
    let held = lockSqlite(t, world.url)
    const { program, address } = await startUp(world)
    const serves = async () => {
      for (const path of ['/live', `/api/v1/client/${customer}/invoices`])
        assert.equal((await ask(address + path, token)).status, 200)
    }
    await program.waitFor(/"msg":"waiting: the store is out of reach, or another process writes to it"/)
    await serves()
    held.release()
    await program.waitFor(isListed)
    await assertTruth(world.url, world.account)
    const [, port] = await program.waitFor(/"port":(\d+)},"msg":"receiving webhooks"/)

    const waits = (from: number) =>
      eventually('it tells what it waits for', () =>
        /"msg":"waiting: another process writes to this store"/.test(program.stdout.slice(from)),
      )
    let before = program.stdout.length
    held = lockSqlite(t, world.url)
    let id = world.account.change('create')
    // Not every one has a customer.
    while (trueRecord(world.account, id) === null) id = world.account.change('create')
    await waits(before)
    await serves()
    held.release()
    await eventually('it is stored', async () => (await readStored(world.url)).records.has(id))
    await assertTruth(world.url, world.account)

    before = program.stdout.length
    lockSqlite(t, world.url)
    world.sandbox.subscribe(`http://127.0.0.1:${port}/`, webhookSecret)
    world.account.change('create')
    const delivered = world.sandbox.deliver({ since: world.account.events.length - 1 })
    await waits(before)
    await serves()
    const { code, stderr } = await program.stop()
    assert.deepEqual([code, stderr], [0, ''])
    for (const { status } of await delivered) assert.notEqual(status, 200, 'nothing was stored')
  })

  for (const [command, argsOf, input] of [
    ['token create', () => ['--all-customers'], ''],
    ['token revoke', token => [token.slice(0, 16)], ''],
    ['import', () => ['-'], ndjson(makeInvoice())],
  ] satisfies [string, (token: string) => string[], string][])
    it(`makes fatura ${command} name the lock once, and continue when the store is free`, async t => {
      const cli = await createCli(t)
      const token = await cli.createToken()
      const held = lockSqlite(t, cli.database)
      const program = cli.start([...command.split(' '), ...argsOf(token)], { input })
      await eventually('it says so', () => waiting.test(program.stderr) || program.child.exitCode !== null)
      held.release()
      const { code, stderr } = await program.exited
      assert.equal(code, 0, stderr)
      assert.equal(stderr.split('Waiting').length, 2, stderr)
    })

  it('does not keep fatura up from ending at a signal while its start waits', async t => {
    const world = await createSyncWorld(t, { invoices: 1 })
    const path = join(world.cli.folder, 'new', 'fatura.db')
    await mkdir(dirname(path))
    new DatabaseSync(path).exec('PRAGMA journal_mode = WAL')
    lockSqlite(t, path)
    const program = world.start(['up', '--port', '0'], { env: { DATABASE_URL: `sqlite:${path}` } })
    await program.waitFor(/"msg":"waiting: another process writes to this store"/)
    assert.equal((await program.stop()).code, 0)
  })
})

it('fatura up ends with code 1 when its sync thread crashes', async t => {
  const world = await createSyncWorld(t, { invoices: 1 })
  const crash = join(world.cli.folder, 'crash.mjs')
  await writeFile(
    crash,
    `import { isMainThread } from 'node:worker_threads'
     if (!isMainThread) setTimeout(() => { throw new Error('planted') })`,
  )
  const outcome = await world.run(['up', '--port', '0'], { env: { NODE_OPTIONS: `--import=${crash}` } })
  assert.equal(outcome.code, 1)
  assert.match(outcome.stderr, /^fatura: unexpected failure, please report it: Error: planted\n/)
})

test('a SQLite writer reports after 2 s that it waits for another writer, and gives up after 30 s', async t => {
  const url = (await engines.find(({ name }) => name === 'sqlite')?.createStore(t)) ?? ''
  let told = 0
  const store = await openWriteStore(url, { onWait: () => told++ })
  t.after(() => store.close())
  const clock = stopClock(t)
  const write = () => store.transaction(tx => tx.saveInvoices([makeRecord()]))

  const held = lockSqlite(t, url)
  const written = write()
  await clock.pass(1_999)
  assert.equal(told, 0)
  await clock.pass(27_000)
  assert.equal(told, 1)
  held.release()
  await clock.pass(50)
  assert.equal(await written, 1)

  lockSqlite(t, url)
  const refused = assert.rejects(write(), /is locked by another writer/)
  let isOver = false
  void refused.finally(() => {
    isOver = true
  })
  await clock.pass(29_999)
  assert.ok(!isOver)
  await clock.pass(51)
  await refused
})

describe('the permissions of a SQLite file', () => {
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

  it('allow only its owner, also for its folder and the files beside it', async t => {
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

  it('stay as an operator sets them', async t => {
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
