/** A cluster that changes under load: a worker that is killed, one that is added, shards that move. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { createToken } from '../../src/http/access/token.ts'
import { migrateStore, openWriteStore } from '../../src/store/engines.ts'
import type { WriteStore } from '../../src/store/store.ts'
import { createCli, eventually, get } from '../support/clients/cli.ts'
import { type Sample, startLoad } from '../support/clients/load.ts'
import { addWorker, createCitusDatabase, skipCitus } from '../support/databases/citus-cluster.ts'
import { runSql } from '../support/databases/engines.ts'
import { mayKillWorkers, openKillable } from '../support/databases/kill-worker.ts'
import { startProxy } from '../support/databases/postgres-proxy.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'

const customers = Array.from({ length: 24 }, (_, i) => `cus_${i}`)
const requestsOf = (customer: string) => [
  `/api/v1/client/${customer}/invoices`,
  `/api/v1/client/${customer}/invoices?status=paid&page_size=2`,
  `/api/v1/client/${customer}/invoices?q=in_1`,
  `/api/v1/client/${customer}/invoice/in_1`,
]

/** Each customer is asked for in turn. */
const everything = {
  paths: customers.flatMap(requestsOf),
  loops: 5,
  pause: 10,
  atMost: Number.POSITIVE_INFINITY,
}

/** Three invoices of each customer, and a token for all of them. */
async function fill(t: TestContext, url: string): Promise<{ writer: WriteStore; token: string }> {
  const writer = await openWriteStore(url)
  t.after(() => writer.close())
  const records = customers.flatMap(customer_id =>
    [1, 2, 3].map(i => makeRecord({ id: `in_${i}`, customer_id, status: 'paid' }, [makeLine()])),
  )
  await writer.transaction(tx => tx.saveInvoices(records))
  const { id, token, hash } = createToken()
  const never = { expires_at: null, revoked_at: null }
  await writer.saveToken({ id, name: 'test', hash, customers: null, created_at: Date.now(), ...never })
  return { writer, token }
}

/** The customers whose rows lie on a node, by the port under which the others know it. */
async function customersAt(coordinator: string, node: string): Promise<string[]> {
  const { rows } = await runSql(
    coordinator,
    `SELECT customer_id FROM fatura.customers
     WHERE get_shard_id_for_distribution_column('fatura.invoices', customer_id) IN (
       SELECT shardid FROM pg_dist_shard_placement WHERE nodeport = ${new URL(node).port})`,
  )
  return rows.map(({ customer_id }) => customer_id)
}

const customerOf = (path: string) => path.split('/')[4] ?? ''
const told = (samples: readonly Sample[]) =>
  samples.slice(0, 3).map(({ status, text, path }) => `${path}: ${status} ${text}`)

describe('a Citus cluster under load', { skip: skipCitus }, () => {
  test('answers 503 only to the customers of a killed worker, until the worker is back', async t => {
    const [coordinator = '', worker = '', other] = await createCitusDatabase(t, undefined, 0)
    if (other === undefined) return t.skip('the cluster has not two workers')
    // Processes that end are one thing, connections that break another: each has its turn.
    const doomed = await (mayKillWorkers ? openKillable : startProxy)(t, worker)
    for (const node of [doomed.url, other]) await addWorker(coordinator, node)
    await migrateStore(coordinator)
    const { writer, token } = await fill(t, coordinator)
    const there = new Set(await customersAt(coordinator, doomed.url))
    assert.ok(there.size > 0 && there.size < customers.length, `${there.size} of ${customers.length}`)
    const cli = await createCli(t)
    const api = await cli.serve(['--rate-limit', 'off'], {
      env: { DATABASE_URL: coordinator, DATABASE_READ_URL: other },
    })
    const load = startLoad({ address: api.address, token, ...everything })
    t.after(() => load.stop())
    const failed = () => load.samples.filter(({ status }) => status !== 200)
    const seen = (n: number) => {
      const until = load.samples.length + n
      return eventually(`${n} more answers`, () => load.samples.length >= until)
    }
    await seen(200)
    assert.deepEqual(told(failed()), [])
    await doomed.fall()
    // Each loop asks for everything once, and a little more.
    await seen(520)
    const ready = await get(`${api.address}/ready`)
    await doomed.rise()
    const isBack = () => load.samples.slice(-200).every(({ status }) => status === 200)
    await seen(200)
    await eventually('all are served again', isBack)
    await load.stop()
    const changed = customers.map(customer_id => makeRecord({ id: 'in_2', customer_id, total_cents: 7 }))
    assert.equal(await writer.transaction(tx => tx.saveInvoices(changed)), customers.length)
    const refused = failed()
    assert.deepEqual(told(refused.filter(({ path }) => !there.has(customerOf(path)))), [])
    assert.deepEqual(
      told(refused.filter(({ status, headers }) => status !== 503 || !headers['retry-after'])),
      [],
    )
    assert.deepEqual(new Set(refused.map(({ path }) => customerOf(path))), there)
    assert.equal(ready.status, 200)
    t.diagnostic(
      `${mayKillWorkers ? 'killed' : 'cut off'}: ${refused.length} of ${load.samples.length} answers were 503`,
    )
  })

  test('fails no request and loses no write while shards move to a new worker', async t => {
    const [coordinator = '', first = '', second] = await createCitusDatabase(t, undefined, 1)
    if (second === undefined) return t.skip('the cluster has not two workers')
    await migrateStore(coordinator)
    const { writer, token } = await fill(t, coordinator)
    const cli = await createCli(t)
    const api = await cli.serve(['--rate-limit', 'off'], {
      env: { DATABASE_URL: coordinator, DATABASE_READ_URL: first },
    })
    const load = startLoad({ address: api.address, token, ...everything })
    t.after(() => load.stop())
    let isOver = false
    let last = 0
    const writing = (async () => {
      for (let turn = 1; !isOver; turn++) {
        const changed = customers.map(customer_id =>
          makeRecord({ id: 'in_2', customer_id, total_cents: turn }),
        )
        await writer.transaction(tx => tx.saveInvoices(changed))
        last = turn
      }
    })()
    await addWorker(coordinator, second)
    await runSql(coordinator, "SELECT replicate_reference_tables('block_writes')")
    await runSql(coordinator, "SELECT rebalance_table_shards(shard_transfer_mode => 'block_writes')")
    const until = load.samples.length + 200
    await eventually('more answers', () => load.samples.length >= until)
    isOver = true
    await writing
    await load.stop()
    assert.deepEqual(told(load.samples.filter(({ status }) => status !== 200)), [])
    assert.ok((await customersAt(coordinator, second)).length > 0)
    for (const customer of customers) {
      const [stored] = (await writer.readLinked(null, 10, customer)).filter(({ id }) => id === 'in_2')
      assert.equal(JSON.parse(stored?.summary ?? '{}').total_cents, last, customer)
    }
    assert.equal(await writer.checkCounts(), 0)
    t.diagnostic(`${load.samples.length} answers, ${last} transactions`)
  })
})
