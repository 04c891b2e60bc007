import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { migrateStore } from '../../src/store/engines.ts'
import { schema } from '../../src/store/sqlite/migrations.ts'
import { createCli } from '../support/clients/cli.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'

describe('fatura migrate', { concurrency: 2 }, () => {
  it('creates a missing database in WAL mode, and does nothing the next time', async t => {
    const cli = await createCli(t)
    const first = await cli.run(['migrate'])
    assert.deepEqual([first.code, first.stderr], [0, ''])
    assert.match(first.stdout, /^Migrated the schema from version 0 to \d+\.\n$/)
    const bytes = await readFile(cli.database)
    assert.equal(bytes.toString('latin1', 0, 15), 'SQLite format 3')
    // https://sqlite.org/fileformat.html, section 1.3: 2 and 2 are WAL.
    assert.deepEqual([bytes[18], bytes[19]], [2, 2])

    const second = await cli.run(['migrate'])
    assert.deepEqual([second.code, second.stderr], [0, ''])
    assert.match(second.stdout, /^The schema is up to date: version \d+\.\n$/)
    assert.ok(bytes.equals(await readFile(cli.database)), 'the second run changed nothing')
  })

  it('can run several times simultaneously', async t => {
    const cli = await createCli(t)
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => cli.run(['migrate'])))
    for (const { code, stderr } of outcomes) assert.deepEqual([code, stderr], [0, ''])
    assert.match((await cli.run(['migrate'])).stdout, /up to date/)
  })

  it('with serve --migrate, reports that it waits for another writer, and ends at a signal', async t => {
    const cli = await createCli(t)
    const db = new DatabaseSync(join(cli.folder, 'busy.db'))
    t.after(() => db.close())
    db.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
    const serving = cli.start(['serve', '--migrate', '--port', '0', '--database-url', 'sqlite:busy.db'], {
      env: quickClock(20),
    })
    await serving.waitFor(/"msg":"waiting: another process writes to this store"/)
    const { code, stdout, stderr } = await serving.stop('SIGTERM')
    assert.deepEqual([code, stderr], [0, ''])
    assert.doesNotMatch(stdout, /"msg":"listening"/)
  })

  it('can be killed at any moment, and continues at the next run', async t => {
    const cli = await createCli(t)
    await Promise.all(
      [0, 1, 2, 4, 8].map(async delay => {
        const database = `killed-after-${delay}.db`
        const args = ['--database-url', `sqlite:${database}`]
        const program = cli.start(['migrate', ...args])
        while (program.child.exitCode === null && !existsSync(`${cli.folder}/${database}`)) await nextTurn()
        if (delay > 0) await sleep(delay)
        await program.stop('SIGKILL')

        const again = await cli.run(['migrate', ...args])
        assert.deepEqual([again.code, again.stderr], [0, ''], `killed ${delay} ms after the file appeared`)
        const created = await cli.run(['token', 'create', '--all-customers', ...args])
        assert.equal(created.code, 0, created.stderr)
      }),
    )
  })
})

// One after the other: this process has one clock.
it('fatura migrate waits for another writer, and skips migrations that another run has finished', async t => {
  const cli = await createCli(t)
  const path = join(cli.folder, 'busy.db')
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  db.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
  const clock = stopClock(t)
  const ended: unknown[] = []
  let waiting = 0
  for (let run = 0; run < 2; run++)
    migrateStore(`sqlite:${path}`, undefined, { onWait: () => waiting++ }).then(
      versions => ended.push(versions),
      error => ended.push(error),
    )
  await until(async () => {
    await clock.pass(100)
    return waiting === 2
  })
  assert.deepEqual(ended, [])
  db.exec('ROLLBACK')
  await until(async () => {
    await clock.pass(100)
    return ended.length === 2
  })
  const versions = { from: 0, to: schema.migrations.length }
  assert.deepEqual(ended, [versions, versions])
})
