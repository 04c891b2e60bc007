/** A SQLite file that is damaged, or lost its content: named as that, answered with 503, and never begun anew in silence. */
import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, statSync, truncateSync, writeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { openOperatorStore, openReadStore, openWriteStore, prepareStore } from '../../src/store/engines.ts'
import { examineHere } from '../support/checks/examine.ts'
import { assertOneLine, createCli, eventually } from '../support/clients/cli.ts'
import { createFolder, engines } from '../support/databases/engines.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const [sqlite] = engines
const restore = /docs\/backup\.md/

/** Overwrites the pages of a table and its indexes, as a disk does that fails. */
function damage(path: string, table: string): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const pages = db
    .prepare('SELECT rootpage FROM sqlite_schema WHERE tbl_name = ? AND rootpage > 0')
    .all(table)
  db.close()
  const file = openSync(path, 'r+')
  for (const { rootpage } of pages)
    writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, (Number(rootpage) - 1) * 4096)
  closeSync(file)
}

async function createStore(t: TestContext): Promise<{ path: string; url: string }> {
  const path = join(await createFolder(t), 'fatura.db')
  const url = `sqlite:${path}`
  await prepareStore(url)
  const store = await openWriteStore(url)
  await store.transaction(tx => tx.saveInvoices([{ invoice: makeInvoice(), lines: null }]))
  await store.close()
  return { path, url }
}

async function findWrong(url: string, deep = false) {
  const findings = await examineHere({ DATABASE_URL: url }, { deep })
  const one = (check: string) => findings.find(finding => finding.check === check)
  return { one, wrong: findings.filter(({ result }) => result === 'FAIL') }
}

describe('a damaged SQLite file', () => {
  it('leads to 503 for requests of the damaged part, and is named in the log', async t => {
    assert.ok(sqlite)
    const service = await startService(t, sqlite, { records: [{ invoice: makeInvoice(), lines: null }] })
    damage(service.url.slice('sqlite:'.length), 'invoices')
    const { status, json } = await service.list('?page_size=5&status=paid')
    assert.deepEqual([status, json.error.code], [503, 'unavailable'])
    assert.match(service.logs.join(''), /malformed.*damaged/)
  })

  it('is named by fatura doctor, with the docs page about restoring', async t => {
    const { path, url } = await createStore(t)
    assert.equal((await findWrong(url)).one('Database: integrity')?.result, 'ok')
    assert.match((await findWrong(url, true)).one('Database: integrity')?.detail ?? '', /integrity_check/)
    damage(path, 'invoices')
    const { one, wrong } = await findWrong(url)
    assert.equal(one('Database: integrity')?.result, 'FAIL')
    assert.match(one('Database: integrity')?.next ?? '', restore)
    assert.deepEqual(
      wrong.map(({ check }) => check),
      ['Database: integrity'],
      'nothing else is advised',
    )
  })

  it('stops a command that writes, with one line', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice())
    damage(cli.database, 'tokens')
    assertOneLine(await cli.run(['token', 'create', '--all-customers']), /is damaged/, restore)
  })
})

describe('a SQLite file that lost its content', () => {
  const lost = /has lost its content/

  it('is refused as lost, and no new store is created in its place', async t => {
    const cli = await createCli(t)
    await cli.load(makeInvoice())
    const api = await cli.serve()
    truncateSync(cli.database)
    await eventually('it is noticed', async () => (await api.get('/ready')).status === 503)
    assert.equal((await api.stop()).code, 0)
    for (const args of [['migrate'], ['serve', '--port', '0'], ['token', 'list']])
      assertOneLine(await cli.run(args), lost, restore)
    assert.equal(statSync(cli.database).size, 0)
    const { one } = await findWrong(`sqlite:${cli.database}`)
    assert.match(one('Database')?.detail ?? '', lost)
    assert.match(one('Database')?.next ?? '', restore)
  })

  it('is refused as lost when the file exists without its tables', async t => {
    const { path, url } = await createStore(t)
    const db = new DatabaseSync(path, { defensive: false })
    db.exec('PRAGMA writable_schema = ON; DELETE FROM sqlite_schema')
    db.close()
    for (const open of [openReadStore, openOperatorStore, openWriteStore, prepareStore])
      await assert.rejects(open(url), lost)
  })
})

it('a new SQLite file appears only with its tables, even after a killed creation', async t => {
  const path = join(await createFolder(t), 'fatura.db')
  await writeFile(`${path}.new-1`, '')
  await Promise.all([prepareStore(`sqlite:${path}`), prepareStore(`sqlite:${path}`)])
  assert.ok(existsSync(path))
  await (await openReadStore(`sqlite:${path}`)).close()
})
