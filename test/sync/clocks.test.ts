/** A clock that was set back, or was ahead for a while, loses nothing. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { observationStamp } from '../../src/store/store.ts'
import { createCli, ndjson } from '../support/cli.ts'
import { type Engine, engines } from '../support/engines.ts'
import { makeInvoice } from '../support/records.ts'
import { readAll } from '../support/sync.ts'

const day = 86_400_000
const invoice = makeInvoice({ status: 'open' })

/** A store that was written to by a clock which was a day ahead of ours. */
async function createAhead(t: TestContext, engine: Engine): Promise<string> {
  const url = await engine.createStore(t)
  const store = await openWriteStore(url)
  const stamp = observationStamp(Date.now() + day)
  await store.transaction(tx => tx.saveInvoices([{ invoice, lines: null }], stamp))
  await store.close()
  return url
}

async function statusOf(url: string): Promise<string | undefined> {
  const store = await openWriteStore(url)
  const [row] = await readAll(store)
  await store.close()
  return row && JSON.parse(row.summary).status
}

for (const engine of engines)
  describe(`a store that is a day ahead, on ${engine.name}`, { concurrency: 2 }, () => {
    it('takes what is imported', async t => {
      const url = await createAhead(t, engine)
      const cli = await createCli(t)
      const imported = (status: 'paid' | 'void') =>
        cli.run(['import', '-'], { input: ndjson({ ...invoice, status }), env: { DATABASE_URL: url } })
      assert.match((await imported('paid')).stdout, /^Imported 1 invoice: 1 new or changed, 0 as before/)
      assert.equal(await statusOf(url), 'paid')
      assert.match(
        (await imported('void')).stdout,
        /: 1 new or changed/,
        'and again, though it was just ahead',
      )
      assert.equal(await statusOf(url), 'void')
      assert.match((await imported('void')).stdout, /: 0 new or changed, 1 as before/)
    })

    it('takes what is copied', async t => {
      const [from, to] = [await engine.createStore(t), await createAhead(t, engine)]
      const store = await openWriteStore(from)
      await store.transaction(async tx => {
        await tx.saveInvoices([{ invoice: { ...invoice, status: 'paid' }, lines: null }])
        await tx.savePin({ system: 'stripe', account: 'acct_1 test', pinned_at: 1 })
      })
      await store.close()
      const cli = await createCli(t)
      const { code, stderr } = await cli.run(['copy', from, to])
      assert.equal(code, 0, stderr)
      assert.equal(await statusOf(to), 'paid')
      const copied = await openWriteStore(to)
      assert.equal(
        (await copied.listPins())[0]?.account,
        'acct_1 test',
        'whose records they are goes with them',
      )
      await copied.close()
    })
  })
