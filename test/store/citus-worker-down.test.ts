/** A cluster of which one worker is down: what all others' customers can still do, and what waits for it. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import pg from 'pg'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { reportFigure } from '../support/checks/campaign.ts'
import { createCli, createStoredToken, eventually, unwrapped } from '../support/clients/cli.ts'
import { addWorker, createCitusDatabase, skipCitus } from '../support/databases/citus-cluster.ts'
import { type Engine, runSql } from '../support/databases/engines.ts'
import { mayKillWorkers, openKillable } from '../support/databases/kill-worker.ts'
import { startProxy } from '../support/databases/postgres-proxy.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { assertTrue, eventsStream, startRig, truthOf } from '../support/worlds/sync.ts'

/** A migrated store on a coordinator and two workers, the first of which can fall. */
async function createCluster(t: TestContext) {
  const [coordinator = '', worker = '', other = ''] = await createCitusDatabase(t, undefined, 0)
  const doomed = await (mayKillWorkers ? openKillable : startProxy)(t, worker)
  for (const node of [doomed.url, other]) await addWorker(coordinator, node)
  await migrateStore(coordinator)
  /** Tells which customers' rows lie on the worker that can fall. */
  const findDoomed = async (customers: readonly string[]): Promise<Set<string>> => {
    const { rows } = await runSql(
      coordinator,
      `SELECT id FROM (VALUES ${customers.map(id => `('${id}')`).join(', ')}) AS given (id)
       JOIN pg_dist_shard_placement ON shardid = get_shard_id_for_distribution_column('fatura.invoices', id)
       WHERE nodeport = ${new URL(doomed.url).port}`,
    )
    return new Set(rows.map(({ id }) => id))
  }
  return { coordinator, doomed, other, findDoomed }
}

/** The worker is up again at the end, whatever happens: only then can the databases be dropped. */
async function whileDown(
  worker: { fall(): Promise<void>; rise(): Promise<void> },
  work: () => Promise<void>,
) {
  await worker.fall()
  try {
    await work()
  } finally {
    await worker.rise()
  }
}

describe('a Citus cluster with one worker down', { skip: skipCitus }, () => {
  test('saves invoices for customers of other workers, and revokes a token', async t => {
    const { coordinator, doomed, other, findDoomed } = await createCluster(t)
    const customers = Array.from({ length: 12 }, (_, i) => `cus_${i}`)
    const down = await findDoomed(customers)
    assert.ok(down.size > 0 && down.size < customers.length)
    const [live = ''] = customers.filter(customer => !down.has(customer))
    const writer = await openWriteStore(coordinator)
    t.after(() => writer.close())
    const write = (customer_id: string, total_cents: number) =>
      writer.transaction(async tx => {
        await tx.saveInvoices([makeRecord({ id: 'in_1', customer_id, total_cents })])
        await tx.saveSuccess('import', total_cents)
      })
    for (const customer of customers) await write(customer, 1)
    const token = await createStoredToken(coordinator, null)
    const cli = await createCli(t)
    const env = { DATABASE_URL: coordinator }
    const api = await cli.serve([], { env: { ...env, DATABASE_READ_URL: other } })
    const list = `/api/v1/client/${live}/invoices`
    assert.equal((await api.get(list, token)).status, 200)
    const [dead = ''] = down
    await whileDown(doomed, async () => {
      await write(live, 2)
      const synced = new Date(2).toISOString()
      await eventually('the write is served, and how fresh it is', async () => {
        const { status, headers, json } = await api.get(list, token)
        const [invoice] = (json as { invoices: { total_cents: number }[] }).invoices
        return status === 200 && invoice?.total_cents === 2 && headers.get('fatura-synced-at') === synced
      })
      await assert.rejects(write(dead, 2), StoreUnavailable)
      const { stdout } = await cli.run(['token', 'list', '--json'], { env })
      const { id } = JSON.parse(stdout.split('\n')[0] ?? '') as { id: string }
      assert.equal((await cli.run(['token', 'revoke', id], { env })).code, 0)
      await eventually('the token is refused', async () => (await api.get(list, token)).status === 401)
      assert.equal((await api.get('/ready')).status, 200)
    })
    reportFigure(t, 'R16', 'writes, reads and a revocation of the others with a worker down')
    await eventually('the worker is written to again', () =>
      write(dead, 3).then(
        () => true,
        () => false,
      ),
    )
  })

  test('syncs the customers of other workers, and catches up for all once the worker is back', async t => {
    const { coordinator, doomed, findDoomed } = await createCluster(t)
    const engine: Engine = { name: 'citus', createStore: async () => coordinator }
    const rig = await startRig(t, engine, { invoices: 60, customers: 12, lines: 1, days: 5 })
    const { account, store, connector } = rig
    await connector.backfill()
    await connector.catchUp()
    await assertTrue(account, store)
    const customerOf = (id: string) => String(account.invoices.get(id)?.customer)
    const down = await findDoomed([...account.customers.keys()])
    const countWaiting = async () =>
      (await store.countSetAside()).find(({ kind }) => kind === 'waiting')?.count ?? 0
    await whileDown(doomed, async () => {
      account.clock += 60
      const open = [...account.invoices.values()].filter(({ status }) => status === 'open')
      for (const { id } of open) account.change('pay', id)
      const created = Array.from({ length: 8 }, () => account.change('create'))
      const before = await rig.stream(eventsStream)
      await connector.catchUp()
      const after = await rig.stream(eventsStream)
      assert.ok(Number(after?.succeeded_at) > Number(before?.succeeded_at))
      const reader = await openReadStore(coordinator)
      t.after(() => reader.close())
      const changed = [...open.map(({ id }) => id), ...created]
      const live = changed.filter(id => !down.has(customerOf(id)))
      assert.ok(live.length > 0 && live.length < changed.length, `${live.length} of ${changed.length}`)
      for (const id of live) {
        const found = await reader.findInvoice(customerOf(id), id)
        assert.equal(JSON.parse(found?.summary ?? '{}').status, account.invoices.get(id)?.status, id)
      }
      reportFigure(
        t,
        'R16',
        `${live.length} of ${changed.length} changes synchronized, the others once it is back`,
      )
      assert.equal(await countWaiting(), changed.length)
      await assert.rejects(connector.retrySetAside('all'), StoreUnavailable)
      assert.equal(await countWaiting(), changed.length)
    })
    await eventually('what waited is caught up', async () => {
      await connector.retrySetAside('all').catch(error => assert.ok(error instanceof StoreUnavailable))
      return (await countWaiting()) === 0
    })
    await connector.catchUp()
    await assertTrue(account, store)
    assert.equal(await store.checkCounts(), 0)
  })

  test('continues the first list, and stores the delayed invoices after a restart', async t => {
    const { coordinator, doomed, findDoomed } = await createCluster(t)
    const engine: Engine = { name: 'citus', createStore: async () => coordinator }
    const { account, store, connector, connect } = await startRig(t, engine, {
      invoices: 250,
      customers: 12,
      lines: 1,
    })
    const down = await findDoomed([...account.customers.keys()])
    await whileDown(doomed, async () => {
      await connector.backfill()
      assert.ok(await connector.isListed())
      const reader = await openReadStore(coordinator)
      t.after(() => reader.close())
      for (const { customer_id, id } of truthOf(account))
        if (!down.has(customer_id)) assert.notEqual(await reader.findInvoice(customer_id, id), null, id)
    })
    const again = await connect()
    await eventually('what waited is caught up', async () => {
      await again.retrySetAside('all').catch(error => assert.ok(error instanceof StoreUnavailable))
      return (await store.countSetAside()).every(({ kind }) => kind !== 'waiting')
    })
    await assertTrue(account, store)
  })
})

describe('commands on a faulty Citus cluster', { skip: skipCitus }, () => {
  test('fatura doctor names a node that is down, a node without writes and a node that is open to everybody', async t => {
    const { coordinator, doomed, other, findDoomed } = await createCluster(t)
    const cli = await createCli(t)
    const examine = async () =>
      unwrapped((await cli.run(['doctor'], { env: { DATABASE_URL: coordinator } })).stdout)
    const node = `Database: node 127\\.0\\.0\\.1:${new URL(doomed.url).port}`
    await whileDown(doomed, async () =>
      assert.match(await examine(), new RegExp(`^FAIL +${node} +it does not answer: .* → Start it`, 'm')),
    )
    const database = new URL(coordinator).pathname.slice(1)
    // Each node alone, as a superuser sets it up.
    const here = 'SET citus.enable_ddl_propagation = off'
    for (const each of [coordinator, doomed.url, other])
      await runSql(each, `${here}; REVOKE CONNECT ON DATABASE ${database} FROM PUBLIC`)
    await eventually('all is well', async () => /^ok +Database: nodes +all 3 /m.test(await examine()))
    await runSql(doomed.url, `${here}; GRANT CONNECT ON DATABASE ${database} TO PUBLIC`)
    await runSql(doomed.url, `ALTER DATABASE ${database} SET default_transaction_read_only = on`)
    const told = await examine()
    assert.match(told, new RegExp(`^FAIL +${node} +its sessions are read-only`, 'm'))
    assert.match(told, new RegExp(`^warn +${node} +every role may connect`, 'm'))
    const [customer_id = ''] = await findDoomed(Array.from({ length: 12 }, (_, i) => `cus_${i}`))
    const writer = await openWriteStore(coordinator)
    t.after(() => writer.close())
    await assert.rejects(
      writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1', customer_id })])),
      /The node 127\.0\.0\.1:\d+ of Citus accepts no writes/,
    )
  })

  test('fatura migrate refuses a Citus cluster with copies of shards in one line', async t => {
    const [url = ''] = await createCitusDatabase(t)
    await runSql(
      url,
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET citus.shard_replication_factor = 2`,
    )
    await assert.rejects(migrateStore(url), /citus\.shard_replication_factor must be 1, not 2/)
  })
})

describe('a lock that another session holds at a Citus worker', { skip: skipCitus }, () => {
  test('makes a reader wait for the usual time, unless the reader’s client leaves', async t => {
    const { coordinator, findDoomed } = await createCluster(t)
    const customers = Array.from({ length: 12 }, (_, i) => `cus_${i}`)
    const [customer_id = ''] = await findDoomed(customers)
    const setup = await openWriteStore(coordinator)
    const record = makeRecord({ id: 'in_1', customer_id })
    await setup.transaction(tx => tx.saveInvoices([record]))
    await setup.close()
    const holder = new pg.Client(coordinator).on('error', () => {})
    await holder.connect()
    t.after(() => holder.end())
    await holder.query(
      `BEGIN; UPDATE fatura.customers SET version = version WHERE customer_id = '${customer_id}'`,
    )
    const writer = await openWriteStore(coordinator, { patienceMs: 1_000 })
    t.after(() => writer.close())
    await assert.rejects(
      writer.transaction(tx => tx.saveInvoices([record])),
      /lock timeout/,
    )

    const lines = `${JSON.stringify(record.invoice)}\n`
    const cli = await createCli(t)
    const program = cli.start(['import', '-'], { env: { DATABASE_URL: coordinator }, input: lines })
    const countWaiting = async () => {
      const { rows } = await runSql(
        coordinator,
        `SELECT count(*)::int AS count FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'fatura-writer' AND state = 'active'`,
      )
      return rows[0].count as number
    }
    await eventually('the import waits', async () => (await countWaiting()) > 0)
    program.child.kill('SIGKILL')
    await eventually('its session is gone', async () => (await countWaiting()) === 0)
  })
})
