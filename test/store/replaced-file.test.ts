/** The file of a SQLite store is replaced or deleted under processes that have it open: they follow, or answer nothing. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { describe, it, type TestContext } from 'node:test'
import { openOperatorStore, openReadStore, openWriteStore, prepareStore } from '../../src/store/engines.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { assertTruth, createSyncWorld } from '../support/checks/sync-truth.ts'
import { createCli, eventually, type Serving } from '../support/clients/cli.ts'
import { createFolder } from '../support/databases/engines.ts'
import { backUp, removeLog, restore } from '../support/databases/replace-file.ts'
import { quickClock } from '../support/worlds/quick-clock.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

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

describe('a replaced SQLite file', { concurrency: 2 }, () => {
  it('is opened by a running fatura serve, which answers 503 while no file exists', async t => {
    const cli = await createCli(t)
    const { database } = cli
    await cli.load(makeInvoice({ id: 'in_1' }))
    const token = await cli.createToken()
    const backup = backUp(database)
    await cli.load(makeInvoice({ id: 'in_2' }))
    const api = await cli.serve(['--rate-limit', 'off'])
    const becomes = (
      what: string,
      path: string,
      fits: (answer: Awaited<ReturnType<Serving['get']>>) => boolean,
    ) => eventually(what, async () => fits(await api.get(path, token)))
    const list = '/api/v1/client/cus_ana/invoices'
    await becomes('it serves', list, ({ json }) => json.total === 2)

    await restore(database, backup)
    await becomes(
      'the other content is served',
      list,
      ({ status, json }) => status === 200 && json.total === 1,
    )
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

  it('is opened by a running fatura up, which writes only into the new file', async t => {
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
})

describe('an open handle of a replaced SQLite file', () => {
  it('rejects a transaction that began before the replacement, and stores none of it', async t => {
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

  it('notices the replacement within 250 ms, and no longer reads the old content', async t => {
    const { path, url } = await createStore(t)
    const backup = backUp(path)
    await save(url, 'in_2')
    const clock = stopClock(t)
    const [reader, operator] = [await openReadStore(url), await openOperatorStore(url)]
    t.after(() => Promise.all([reader.close(), operator.close()]))
    assert.equal((await reader.listInvoices(query)).total, 2)
    assert.equal((await operator.readInvoices(null, 1)).length, 1)
    await restore(path, backup)
    await clock.pass(250)
    // A command only looks on; it does not open the other file.
    for (let turn = 0; turn < 2; turn++) {
      assert.equal((await reader.listInvoices(query)).total, 1)
      await assert.rejects(operator.readInvoices(null, 1), /was replaced while it was open/)
    }
  })

  it('does not apply the old file’s log to the new file', async t => {
    const { path, url } = await createStore(t)
    const backup = backUp(path)
    const clock = stopClock(t)
    const writer = await openWriteStore(url)
    const reader = await openReadStore(url)
    await writer.transaction(tx => tx.saveInvoices([{ invoice: makeInvoice({ id: 'in_2' }), lines: null }]))
    const totalOf = async () => (await reader.listInvoices(query)).total
    assert.equal(await totalOf(), 2)
    // Then it sees its log.
    await clock.pass(250)
    assert.equal(await totalOf(), 2)
    await rename(backup, path)
    await clock.pass(250)
    await assert.rejects(totalOf(), error => {
      assert.ok(error instanceof StoreUnavailable)
      return /Remove \S+-wal and \S+-shm/.test(error.message)
    })
    await assert.rejects(writer.saveToken({} as never), /Remove \S+-wal and \S+-shm/)
    await writer.close()
    await removeLog(path)
    assert.equal(await totalOf(), 1)
    await reader.close()
  })
})
