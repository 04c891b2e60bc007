/** What the connector writes through. On SQLite it is in a thread of its own, and nothing else differs. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { migrateStore, openConnectorStores, openOperatorStore } from '../../src/store/engines.ts'
import { StoreError } from '../../src/store/store.ts'
import { createFolder, type Engine, engines, postgresServer, runSql } from '../support/databases/engines.ts'
import { countBackends } from '../support/databases/own-postgres.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { stopClock, until } from '../support/worlds/stopped-clock.ts'

async function openStores(t: TestContext, engine: Engine) {
  const url = await engine.createStore(t)
  const stores = await openConnectorStores(url, { leasePatienceMs: 2_000 })
  t.after(async () => {
    await stores.leases.close()
    await stores.store.close()
  })
  return { ...stores, url }
}

test('a transaction stores nothing after a failure for which SQLite rolls back by itself', async t => {
  const url = `sqlite:${join(await createFolder(t), 'fatura.db')}`
  await migrateStore(url)
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  // What a full disk does.
  db.exec(`CREATE TRIGGER no_room BEFORE INSERT ON invoices WHEN NEW.id = 'in_7'
    BEGIN SELECT RAISE(ROLLBACK, 'no room'); END`)
  const { store, leases } = await openConnectorStores(url, { leasePatienceMs: 2_000 })
  t.after(async () => {
    await leases.close()
    await store.close()
  })
  const records = Array.from({ length: 1_000 }, (_, i) => makeRecord({ id: `in_${i}` }))
  await assert.rejects(
    store.transaction(tx => tx.saveInvoices(records, 1)),
    /no room/,
  )
  assert.deepEqual(await store.readInvoices(null, 10), [])
  db.exec('DROP TRIGGER no_room')
  db.close()
  assert.equal(await store.transaction(tx => tx.saveInvoices(records, 2)), 1_000, 'the next one works')
})

for (const engine of engines)
  describe(`the connector’s store on ${engine.name}`, () => {
    test('shows a transaction with all its records to other processes once it resolves', async t => {
      const { store, url } = await openStores(t, engine)
      const records = Array.from({ length: 700 }, (_, i) => makeRecord({ id: `in_${i}` }))
      const changed = await store.transaction(async tx => {
        await tx.saveSuccess('stripe:invoices', 5)
        return tx.saveInvoices(records, 7)
      })
      assert.equal(changed, 700)
      const others = await openOperatorStore(url)
      t.after(() => others.close())
      assert.equal((await others.readInvoices(null, 1_000)).length, 700)
      assert.equal(await others.readLastObserved(), 7)
      assert.deepEqual(
        (await others.listStreams()).map(({ name, succeeded_at }) => [name, succeeded_at]),
        [['stripe:invoices', 5]],
      )
      const again = await store.transaction(tx => tx.saveInvoices(records, 8))
      assert.equal(again, 0, 'nothing differs from what is stored')
    })

    test('passes on an error of the transaction’s function unchanged, and stores nothing', async t => {
      const { store } = await openStores(t, engine)
      const reason = new RangeError('not today')
      const failing = store.transaction(async tx => {
        await tx.saveInvoices([makeRecord()], 1)
        throw reason
      })
      await assert.rejects(failing, error => error === reason)
      assert.deepEqual(await store.readInvoices(null, 10), [])
      assert.equal(await store.transaction(tx => tx.saveInvoices([makeRecord()], 2)), 1, 'the next one works')
    })

    test('runs simultaneous transactions one after another, and each sees the previous ones', async t => {
      const { store } = await openStores(t, engine)
      const key = { customer_id: 'cus_1', id: 'in_1' }
      const saved = Array.from({ length: 12 }, () =>
        store.transaction(async tx => {
          const [known] = await tx.findKnown([key])
          const last = known?.observed_stamp ?? 0
          await tx.saveInvoices([makeRecord({ ...key, total_cents: last })], last + 1)
          return last
        }),
      )
      const seen = (await Promise.all(saved)).sort((a, b) => a - b)
      assert.deepEqual(
        seen,
        Array.from({ length: 12 }, (_, i) => i),
      )
    })

    test('renews the lease even when transactions follow each other without a pause', async t => {
      const { store, leases } = await openStores(t, engine)
      const held = await leases.takeLease(await leases.readLease(), 'this process')
      assert.ok(held)
      let isOver = false
      const busy = (async () => {
        for (let i = 0; !isOver; i++)
          await store.transaction(async tx => {
            await tx.saveInvoices(
              Array.from({ length: 50 }, (_, n) => makeRecord({ id: `in_${i}_${n}` })),
              i + 1,
            )
            await tx.beatLease(held.epoch)
          })
      })()
      for (let beat = 0; beat < 10; beat++) assert.ok(await leases.renewLease(held.epoch))
      isOver = true
      await busy
      assert.ok((await leases.readLease()).beats > held.beats + 10, 'of the lease, and of each commit')
    })
  })

test('the connector reports a missing store and leaves no thread running', async t => {
  const path = join(await createFolder(t), 'none.db')
  await assert.rejects(
    openConnectorStores(`sqlite:${path}`, { leasePatienceMs: 1 }),
    error => error instanceof StoreError && /There is no database at .*none\.db/.test(error.message),
  )
})

test('the connector on PostgreSQL reports that the lease gets no connection, and closes the writer’s connection', {
  timeout: 600_000,
}, async t => {
  const postgres = engines.find(({ name }) => name === 'postgres') as Engine
  const address = new URL(await postgres.createStore(t))
  const role = `one_${address.pathname.slice(1)}`
  await runSql(
    address.href,
    `CREATE ROLE ${role} LOGIN PASSWORD 'test' CONNECTION LIMIT 1; GRANT USAGE ON SCHEMA fatura TO ${role}`,
  )
  t.after(() => runSql(postgresServer(), `DROP ROLE IF EXISTS ${role}`))
  const url = Object.assign(new URL(address), { username: role, password: 'test' }).href
  // Otherwise a connection that nobody closes is let go of, once it was idle for 10 s.
  stopClock(t)
  await assert.rejects(openConnectorStores(url, { leasePatienceMs: 2_000 }), /too many connections for role/)
  await until(async () => (await countBackends(address.href, 'fatura-writer')) === 0)
})
