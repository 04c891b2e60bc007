import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { createCli } from '../support/cli.ts'

describe('fatura migrate', { concurrency: 2 }, () => {
  it('makes the database where none is, in WAL mode, and then has nothing to do', async t => {
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

  it('may run several times at once', async t => {
    const cli = await createCli(t)
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => cli.run(['migrate'])))
    for (const { code, stderr } of outcomes) assert.deepEqual([code, stderr], [0, ''])
    assert.match((await cli.run(['migrate'])).stdout, /up to date/)
  })

  it('waits for another writer, and leaves out what another run has done in the meantime', async t => {
    const cli = await createCli(t)
    const db = new DatabaseSync(join(cli.folder, 'busy.db'))
    t.after(() => db.close())
    db.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
    const runs = [1, 2].map(() => cli.run(['migrate', '--database-url', 'sqlite:busy.db']))
    // Time for both to come to the lock; in less, this would prove less, but not fail.
    await sleep(1_500)
    db.exec('ROLLBACK')
    for (const { code, stderr } of await Promise.all(runs)) assert.deepEqual([code, stderr], [0, ''])
  })

  it('reports before fatura serve --migrate that it waits for another writer, and ends at a signal', async t => {
    const cli = await createCli(t)
    const db = new DatabaseSync(join(cli.folder, 'busy.db'))
    t.after(() => db.close())
    db.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
    const serving = cli.start(['serve', '--migrate', '--port', '0', '--database-url', 'sqlite:busy.db'])
    await serving.waitFor(/"msg":"waiting: another process writes to this store"/)
    const { code, stdout, stderr } = await serving.stop('SIGTERM')
    assert.deepEqual([code, stderr], [0, ''])
    assert.doesNotMatch(stdout, /"msg":"listening"/)
  })

  it('may be killed at any moment, and goes on from there when run again', async t => {
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
