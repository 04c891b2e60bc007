/** The file of a SQLite store is replaced or deleted under processes that have it open: they follow, or answer nothing. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { copyFile, rename, rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openOperatorStore, openReadStore, openWriteStore, prepareStore } from '../../src/store/engines.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { campaign, reportFigure } from '../support/campaign.ts'
import { createCli, eventually, type Serving } from '../support/cli.ts'
import { createFolder } from '../support/engines.ts'
import { assertWithin } from '../support/machine-speed.ts'
import { quickClock } from '../support/quick-clock.ts'
import { makeInvoice } from '../support/records.ts'
import { assertTruth, createSyncWorld } from '../support/sync-truth.ts'

/** As docs/backup.md makes one. */
function backUp(path: string, name = 'backup'): string {
  const backup = `${path}.${name}`
  const db = new DatabaseSync(path)
  db.exec(`VACUUM INTO '${backup}'`)
  db.close()
  return backup
}

async function removeLog(path: string): Promise<void> {
  for (const ending of ['-wal', '-shm']) await rm(`${path}${ending}`, { force: true })
}

/** As docs/backup.md restores one, but under processes that run. */
async function restore(path: string, backup: string): Promise<void> {
  await removeLog(path)
  await copyFile(backup, `${path}.new`)
  await rename(`${path}.new`, path)
}

async function save(url: string, ...ids: string[]): Promise<void> {
  const store = await openWriteStore(url)
  const records = ids.map(id => ({ invoice: makeInvoice({ id }), lines: null }))
  await store.transaction(tx => tx.saveInvoices(records))
  await store.close()
}

async function createStore(t: TestContext): Promise<{ path: string; url: string }> {
  const path = `${await createFolder(t)}/fatura.db`
  const url = `sqlite:${path}`
  await prepareStore(url)
  await save(url, 'in_1')
  return { path, url }
}

const query = { customer_id: 'cus_ana', page: 1, page_size: 10 }

describe('a sqlite file that is replaced or deleted', { concurrency: 2 }, () => {
  it('is followed by every worker of fatura serve, which says 503 while there is none', async t => {
    const cli = await createCli(t)
    const { database } = cli
    await cli.load(makeInvoice({ id: 'in_1' }))
    const token = await cli.createToken()
    const backup = backUp(database)
    await cli.load(makeInvoice({ id: 'in_2' }))
    const api = await cli.serve(['--workers', '2', '--rate-limit', 'off'])
    /** Over new connections, so that both workers are asked. */
    const askAll = (path: string) => Promise.all(Array.from({ length: 6 }, () => api.get(path, token)))
    const becomes = (
      what: string,
      path: string,
      fits: (answer: Awaited<ReturnType<Serving['get']>>) => boolean,
    ) => eventually(what, async () => (await askAll(path)).every(fits))
    const list = '/api/v1/client/cus_ana/invoices'
    await becomes('both serve', list, ({ json }) => json.total === 2)

    const newer = backUp(database, 'newer')
    let slowestMs = 0
    const replacements = campaign(1, 41)
    for (let turn = 0; turn < replacements; turn++) {
      const [file, total] = turn % 2 === 0 ? [backup, 1] : [newer, 2]
      await restore(database, file)
      const replaced = performance.now()
      await becomes(
        'the other content is served',
        list,
        ({ status, json }) => status === 200 && json.total === total,
      )
      slowestMs = Math.max(slowestMs, performance.now() - replaced)
      // All of these may come from one worker; each looks four times a second.
      await sleep(300)
      for (const { json } of await askAll(list)) assert.equal(json.total, total, 'the former content is back')
    }
    assertWithin(slowestMs, 5_000)
    reportFigure(t, 'R15', `${replacements} files replaced: served after ${slowestMs.toFixed(0)} ms at most`)
    assert.equal((await cli.run(['token', 'revoke', token.slice(0, 16)])).code, 0)
    await becomes('the token is refused', list, ({ status }) => status === 401)

    await rm(database)
    await becomes(
      'there is nothing',
      list,
      ({ status, json }) => status === 503 && json.error.code === 'unavailable',
    )
    await becomes('it is not ready', '/ready', ({ status }) => status === 503)
    await restore(database, backup)
    await becomes('it is there again', list, ({ status, json }) => status === 200 && json.total === 1)
    await becomes('it is ready', '/ready', ({ status }) => status === 200)
    assert.equal((await api.stop()).code, 0)
  })

  it('is followed by fatura up, which writes into the new file and nowhere else', async t => {
    const world = await createSyncWorld(t, { invoices: 20, seed: 29 })
    const { database } = world.cli
    await prepareStore(world.url)
    const program = world.start(['up', '--port', '0', '--rate-limit', 'off'], { env: quickClock(10) })
    const isWhole = () =>
      assertTruth(world.url, world.account).then(
        () => true,
        () => false,
      )
    await program.waitFor(/"step":"rereadUnsettled"/)
    const backup = backUp(database)
    world.account.change('create')
    await restore(database, backup)
    await program.waitFor(/was replaced while it was open.*"msg":"sync failed; trying again"/)
    await eventually('the new file has everything', isWhole)
    await rm(database)
    await program.waitFor(/is gone|There is no database at/)
    assert.ok(!existsSync(database), 'nobody makes an empty store in its place')
    await restore(database, backup)
    world.account.change('create')
    await eventually('it goes on', isWhole)
    assert.equal((await program.stop()).code, 0)
  })

  it('gets nothing of a transaction that began before, and whoever began it learns of it', async t => {
    const { path, url } = await createStore(t)
    const backup = backUp(path)
    const writer = await openWriteStore(url)
    await assert.rejects(
      writer.transaction(async tx => {
        await tx.saveInvoices([{ invoice: makeInvoice({ id: 'in_2' }), lines: null }])
        await restore(path, backup)
      }),
      /was replaced while it was open/,
    )
    await assert.rejects(writer.saveToken({} as never), /was replaced while it was open/)
    await writer.close()
    const reader = await openReadStore(url)
    assert.equal((await reader.listInvoices(query)).total, 1)
    await reader.close()
  })

  it('is not read any more by a command that only looks, whatever it asks for', async t => {
    const { path, url } = await createStore(t)
    const backup = backUp(path)
    const operator = await openOperatorStore(url)
    t.after(() => operator.close())
    assert.equal((await operator.readAtPoints([0])).length, 1)
    await restore(path, backup)
    // It looks four times a second.
    await sleep(300)
    await assert.rejects(operator.readAtPoints([0]), /was replaced while it was open/)
    await assert.rejects(operator.readInvoices(null, 1), /was replaced while it was open/)
  })

  it('is not read with the log of the one before, which would change it', async t => {
    const { path, url } = await createStore(t)
    const backup = backUp(path)
    const writer = await openWriteStore(url)
    const reader = await openReadStore(url)
    await writer.transaction(tx => tx.saveInvoices([{ invoice: makeInvoice({ id: 'in_2' }), lines: null }]))
    const totalOf = async () => (await reader.listInvoices(query)).total
    // Until it has seen its log.
    await eventually('it is read', async () => (await totalOf()) === 2)
    await new Promise(resolve => setTimeout(resolve, 300))
    assert.equal(await totalOf(), 2)
    await rename(backup, path)
    await eventually('nothing is read', () =>
      totalOf().then(
        () => false,
        error => {
          assert.ok(error instanceof StoreUnavailable)
          return /Remove \S+-wal and \S+-shm/.test(error.message)
        },
      ),
    )
    await assert.rejects(writer.saveToken({} as never), /Remove \S+-wal and \S+-shm/)
    await writer.close()
    await removeLog(path)
    assert.equal(await totalOf(), 1)
    await reader.close()
  })
})
