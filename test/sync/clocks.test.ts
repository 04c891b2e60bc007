/** A clock that was set back, or was ahead for a while, loses nothing. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { observationStamp } from '../../src/store/store.ts'
import { readDueDocuments } from '../../src/sync/documents/set-aside-documents.ts'
import { nothingApplied } from '../../src/sync/invoices/apply-answers.ts'
import type { Refetch } from '../../src/sync/invoices/refetch-invoices.ts'
import { retrySetAside } from '../../src/sync/invoices/retry-set-aside.ts'
import type { SyncContext } from '../../src/sync/invoices/sync-context.ts'
import { dueAtOf, noId, type SetAsideKind } from '../../src/sync/set-aside.ts'
import { createCli, ndjson } from '../support/clients/cli.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeInvoice } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'
import { readAll } from '../support/worlds/sync.ts'

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
  describe(`a store with stamps one day ahead, on ${engine.name}`, { concurrency: 2 }, () => {
    it('accepts an import', async t => {
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

    it('accepts a copy of another store', async t => {
      const [from, to] = [await engine.createStore(t), await createAhead(t, engine)]
      const store = await openWriteStore(from)
      await store.transaction(async tx => {
        await tx.saveInvoices([{ invoice: { ...invoice, status: 'paid' }, lines: null }])
        await tx.saveBoundAccount({ system: 'stripe', account: 'acct_1 test', bound_at: 1 })
      })
      await store.close()
      const cli = await createCli(t)
      const { code, stderr } = await cli.run(['copy', from, to])
      assert.equal(code, 0, stderr)
      assert.equal(await statusOf(to), 'paid')
      const copied = await openWriteStore(to)
      assert.equal(
        (await copied.listBoundAccounts())[0]?.account,
        'acct_1 test',
        'whose records they are goes with them',
      )
      await copied.close()
    })
  })

/** Stored by a clock that was a day ahead, and is right again. */
describe('times in the future', () => {
  for (const engine of engines)
    it(`on ${engine.name}, set-aside records that were tried in the future are tried again first`, async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const tried = (system: string, kind: SetAsideKind, id: string, at: number) => {
        const record = { system, kind, id, reason: 'no_customer', due_at: dueAtOf(kind, id, at) }
        return store.transaction(tx => tx.setAside(record, at))
      }
      await tried('stripe', 'refused', 'in_now', Date.now())
      await tried('stripe', 'refused', 'in_ahead', Date.now() + day)
      await tried('stripe', 'refused', noId, Date.now() + day)
      const fetched: string[] = []
      await retrySetAside(
        { source: { system: 'stripe' }, store, signal: t.signal } as unknown as SyncContext,
        {
          fetchEach: async (keys: { id: string }[]) => {
            fetched.push(...keys.map(({ id }) => id))
            return nothingApplied
          },
        } as unknown as Refetch,
        'due',
      )
      assert.deepEqual(fetched, ['in_ahead'])
      const left = await store.listSetAside(1, 'stripe')
      assert.deepEqual(
        left.map(({ id }) => id),
        ['in_ahead'],
        'the oldest',
      )
      assert.equal((await store.listSetAside(9, 'stripe', { id: noId })).length, 0, 'forgotten')

      await tried('ix', 'document', '7', Date.now() + day)
      const { documents } = await readDueDocuments({ system: 'ix', store }, Date.now() - 1_000)
      assert.deepEqual(documents, [7])
    })

  for (const engine of engines)
    it(`on ${engine.name}, rechecks in the future are not counted`, async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const now = Date.now()
      const add = (checked: number, corrected: number, at: number) =>
        store.transaction(tx => tx.addRecheck({ system: 'stripe', checked, corrected }, at))
      await add(9, 9, now + day)
      await add(3, 1, now)
      await add(2, 0, now)
      const [found, ...others] = await store.readRechecks(now)
      assert.deepEqual({ ...found }, { system: 'stripe', checked: 5, corrected: 1 })
      assert.deepEqual(others, [])
      assert.deepEqual(await store.readRechecks(now + day), [], 'a day later')
    })

  it('a last success in the future makes /ready answer 503', async t => {
    const [engine] = engines as [Engine]
    const service = await startService(t, engine, { readyMaxLagMs: 3_600_000 })
    const ready = async (at: number) => {
      await service.store.transaction(tx => tx.saveSuccess('import', at))
      return (await service.get('/ready')).status
    }
    assert.equal(await ready(Date.now() + day), 503)
  })
})
