/** `fatura export` and `fatura copy` write over no database, and over no other file without `--force`. */
import assert from 'node:assert/strict'
import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { findObstacle } from '../../src/export/overwriting.ts'
import { assertOneLine, createCli } from '../support/clients/cli.ts'
import { createFolder } from '../support/databases/engines.ts'
import { makeInvoice } from '../support/worlds/records.ts'

describe('overwriting files', () => {
  it('an export overwrites earlier exports, and refuses stores, databases and other files', async t => {
    const folder = await createFolder(t)
    const at = (name: string) => join(folder, name)
    const storeFile = at('fatura.db')
    for (const name of ['fatura.db', 'other.db']) new DatabaseSync(at(name)).exec('CREATE TABLE a (b)')
    await writeFile(at('report.csv'), 'id,number\r\n')
    await writeFile(at('index.csv'), 'invoice_id\r\n')
    await symlink(storeFile, at('link.csv'))
    await mkdir(at('folder'))
    const isOwn = (beginning: string) => beginning.startsWith('invoice_id\r\n')
    const cases: [name: string, unforced: RegExp | null, forced: RegExp | null][] = [
      ['new.csv', null, null],
      ['report.csv', /already exists.*--force/, null],
      ['index.csv', null, null],
      ['fatura.db', /it is the store/, /it is the store/],
      ['folder/../fatura.db', /it is the store/, /it is the store/],
      ['link.csv', /it is the store/, /it is the store/],
      ['fatura.db-wal', /SQLite keeps data/, /SQLite keeps data/],
      ['fatura.db-shm', /SQLite keeps data/, /SQLite keeps data/],
      ['other.db-journal', /SQLite keeps data/, /SQLite keeps data/],
      ['other.db', /an SQLite database/, /an SQLite database/],
      ['daily-journal', null, null],
      ['folder', null, null],
    ]
    for (const [name, unforced, forced] of cases)
      for (const force of [false, true]) {
        const obstacle = await findObstacle(at(name), { storeFile, force, isOwn })
        const wanted = force ? forced : unforced
        if (wanted === null) assert.equal(obstacle, null, name)
        else assert.match(String(obstacle), wanted, name)
      }
  })
})

async function createStore(t: TestContext) {
  const cli = await createCli(t)
  await cli.load(makeInvoice({ id: 'in_1' }))
  return { cli, read: () => readFile(cli.database) }
}

describe('fatura export', { concurrency: 2 }, () => {
  it('does not overwrite the store, its logs, other databases and other files', async t => {
    const { cli, read } = await createStore(t)
    const before = await read()
    const other = join(cli.folder, 'other.db')
    await copyFile(cli.database, other)
    await writeFile(join(cli.folder, 'older.csv'), 'older')
    const cases: [path: string, says: RegExp][] = [
      ['data/fatura.db', /data\/fatura\.db was not written: it is the store/],
      ['data/fatura.db-wal', /was not written: SQLite keeps data/],
      ['data/fatura.db-shm', /was not written: SQLite keeps data/],
      ['other.db', /was not written: it is an SQLite database/],
    ]
    for (const [path, says] of cases)
      for (const force of [[], ['--force']])
        assertOneLine(await cli.run(['export', '--output', path, ...force]), says)
    assertOneLine(
      await cli.run(['export', '--output', 'older.csv']),
      /older\.csv was not written: it already exists/,
    )
    assert.equal(await readFile(join(cli.folder, 'older.csv'), 'utf8'), 'older')
    assert.deepEqual(await read(), before)
    assert.deepEqual(await readdir(join(cli.folder, 'data')), ['fatura.db'])

    const forced = await cli.run(['export', '--output', 'older.csv', '--force'])
    assert.equal(forced.code, 0, forced.stderr)
    assert.match(await readFile(join(cli.folder, 'older.csv'), 'utf8'), /^id,number/)
  })

  it('with --pdfs does not overwrite an index.csv of another program', async t => {
    const { cli } = await createStore(t)
    const env = { STRIPE_API_KEY: 'sk_test_unused', STRIPE_API_BASE: 'http://127.0.0.1:9' }
    await mkdir(join(cli.folder, 'month'))
    const index = join(cli.folder, 'month', 'index.csv')
    await writeFile(index, 'chapter,page\r\n')
    const outcome = await cli.run(['export', '--pdfs', 'month', '--kind', 'payments'], { env })
    assertOneLine(outcome, /month\/index\.csv was not written: it already exists.*--force/)
    assert.equal(await readFile(index, 'utf8'), 'chapter,page\r\n')
    // The store itself, under the name of the index.
    await mkdir(join(cli.folder, 'linked'))
    await symlink(cli.database, join(cli.folder, 'linked', 'index.csv'))
    const linked = await cli.run(['export', '--pdfs', 'linked', '--kind', 'payments', '--force'], { env })
    assertOneLine(linked, /linked\/index\.csv was not written: it is the store/)
  })
})

describe('fatura copy', { concurrency: 2 }, () => {
  it('refuses its own source under another name, and names of SQLite’s internal files', async t => {
    const { cli, read } = await createStore(t)
    const before = await read()
    await symlink(cli.database, join(cli.folder, 'link.db'))
    const cases: [to: string, says: RegExp][] = [
      ['sqlite:./data/fatura.db', /same file/],
      ['sqlite:link.db', /same file/],
      ['sqlite:data/fatura.db-wal', /SQLite keeps its own data under such names/],
      ['sqlite:data/fatura.db-shm', /SQLite keeps its own data under such names/],
    ]
    for (const [to, says] of cases) {
      const { code, stderr, stdout } = await cli.run(['copy', 'sqlite:data/fatura.db', to])
      assert.notEqual(code, 0, to)
      assert.match(stderr, says)
      assert.equal(stdout, '')
    }
    assert.deepEqual(await read(), before)
    assert.deepEqual(await readdir(join(cli.folder, 'data')), ['fatura.db'])
  })

  it('leaves a file that is not a store unchanged', async t => {
    const { cli } = await createStore(t)
    const path = join(cli.folder, 'letter.txt')
    await writeFile(path, 'Dear Sir or Madam,\n')
    const other = join(cli.folder, 'other.db')
    new DatabaseSync(other).exec('CREATE TABLE letters (text)')
    const bytes = await readFile(other)
    assertOneLine(
      await cli.run(['copy', 'sqlite:data/fatura.db', 'sqlite:letter.txt']),
      /is not a SQLite database/,
    )
    assertOneLine(await cli.run(['copy', 'sqlite:data/fatura.db', 'sqlite:other.db']), /another program/)
    assert.equal(await readFile(path, 'utf8'), 'Dear Sir or Madam,\n')
    assert.deepEqual(await readFile(other), bytes)
  })
})
