/** Writers beside each other on PostgreSQL, as processes: who changes other customers never waits, whatever the others do. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openWriteStore } from '../../src/store/engines.ts'
import { beginWriting } from '../../src/store/postgres/write-limits.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { createSyncWorld, webhookSecret } from '../support/checks/sync-truth.ts'
import { createCli, ndjson } from '../support/clients/cli.ts'
import { engines, runSql } from '../support/databases/engines.ts'
import { makeInvoice, makeRecord } from '../support/worlds/records.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]

const invoicesOf = (customer_id: string, count: number) =>
  Array.from({ length: count }, (_, i) => makeInvoice({ customer_id, id: `in_${customer_id}_${i}` }))

/** A transaction of a writer of its own that has written a customer's invoices, and stands still until it is let go. */
async function standStill(t: TestContext, url: string, customer: string, count: number) {
  const store = await openWriteStore(url)
  t.after(() => store.close())
  const { promise: written, resolve: noteWritten } = Promise.withResolvers<void>()
  const { promise: gate, resolve: goOn } = Promise.withResolvers<void>()
  t.after(() => goOn())
  const ended = store.transaction(async tx => {
    await tx.saveInvoices(invoicesOf(customer, count).map(invoice => ({ invoice, lines: null })))
    noteWritten()
    await gate
  })
  // A failure is told by what is returned.
  await Promise.race([written, ended.catch(() => {})])
  return { ended, goOn }
}

/** Watches until it is stopped; then says which statements were seen to wait for a lock. */
async function watchWaits(t: TestContext, url: string): Promise<() => Promise<string[]>> {
  const client = new pg.Client(url).on('error', () => {})
  await client.connect()
  t.after(() => client.end())
  const seen = new Set<string>()
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const { rows } = await client.query(
        `SELECT left(query, 80) || right(query, 6) AS query FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'
           -- Not for another transaction, but for the moment in which another makes a file longer.
           AND wait_event <> 'extend'`,
      )
      for (const { query } of rows) seen.add(query)
      await sleep(5)
    }
  })()
  return async () => {
    isOver = true
    await watching
    return [...seen]
  }
}

describe('PostgreSQL writers of different customers', { concurrency: 2 }, () => {
  it('do not wait for a stalled transaction: import, sync, webhook and token all continue', async t => {
    const url = await postgres.createStore(t)
    const world = await createSyncWorld(t, { invoices: 60, seed: 31 }, url)
    const { cli } = world
    const env = { DATABASE_URL: url }
    const receiver = await world.receive()
    await receiver.waitFor(/"step":"backfill"/)

    // Longer than all of this takes.
    const patient = `${url}?idle_in_transaction_session_timeout=300000`
    const still = await standStill(t, patient, 'cus_still', 4_000)

    const other = await cli.run(['import', '-'], { env, input: ndjson(...invoicesOf('cus_other', 700)) })
    assert.match(other.stdout, /^Imported 700 invoices: 700 new/, other.stderr)
    assert.equal((await cli.run(['token', 'create', '--all-customers'], { env })).code, 0)
    world.sandbox.subscribe(receiver.url, webhookSecret)
    const since = world.account.events.length
    world.account.change('create')
    const deliveries = await world.sandbox.deliver({ since })
    assert.deepEqual(
      deliveries.map(({ status }) => status),
      deliveries.map(() => 200),
    )
    assert.ok(deliveries.length > 0)
    assert.equal((await receiver.stop()).code, 0)
    const synced = await world.run(['sync', '--once'])
    assert.equal(synced.code, 0, synced.stderr)

    const count = async () =>
      (await runSql(url, "SELECT FROM fatura.invoices WHERE customer_id = 'cus_still'")).rowCount
    assert.equal(await count(), 0, 'the transaction is still in its midst')
    still.goOn()
    await still.ended
    assert.equal(await count(), 4_000)
  })

  it('two imports and a sync in separate processes do not wait, and all records are stored', async t => {
    const url = await postgres.createStore(t)
    const world = await createSyncWorld(t, { invoices: 120, seed: 32 }, url)
    const waits = await watchWaits(t, url)
    const imports = ['cus_one', 'cus_two'].map(customer =>
      world.cli.run(['import', '-'], {
        env: { DATABASE_URL: url },
        input: ndjson(...invoicesOf(customer, 1_500)),
      }),
    )
    const outcomes = await Promise.all([...imports, world.run(['sync', '--once'])])
    for (const { code, stderr } of outcomes) assert.equal(code, 0, stderr)
    // Two commits may meet at the rows that all share: that is over with the commit, and nobody's limit is near. The beat of the
    // lease may meet a transaction of the same sync that commits: no import ever touches that row.
    const statements = (await waits()).filter(
      query => !query.endsWith('COMMIT') && !query.startsWith('UPDATE fatura.lease SET beats'),
    )
    assert.deepEqual(statements, [])
    const store = await openWriteStore(url)
    assert.equal(await store.checkCounts(), 0)
    assert.ok((await store.readLastObserved()) > 0)
    assert.ok((await store.listStreams()).some(({ name, succeeded_at }) => name === 'import' && succeeded_at))
    await store.close()
  })

  it('a document and unrelated invoices do not wait for each other', async t => {
    const store = await openWriteStore(await postgres.createStore(t))
    t.after(() => store.close())
    await store.transaction(async tx => {
      await tx.missDocument(1, 1)
      await store.transaction(async other => {
        await other.findKnown([{ customer_id: 'cus_ana', id: 'in_1' }])
        await other.findDocuments({ ids: [2], references: ['in_1'] })
        await other.saveInvoices([makeRecord({ id: 'in_1' })])
      })
    })
  })
})

describe('PostgreSQL writers of the same customer', { concurrency: true }, () => {
  it('continue after a stalled writer’s session is ended, and its records are discarded', async t => {
    const url = await postgres.createStore(t)
    // The usual limit, but shorter: nothing else ends the transaction.
    const still = await standStill(t, `${url}?idle_in_transaction_session_timeout=300`, 'cus_ana', 40)
    const store = await openWriteStore(url)
    t.after(() => store.close())
    const records = invoicesOf('cus_ana', 3).map(invoice => ({ invoice, lines: null }))
    assert.equal(await store.transaction(tx => tx.saveInvoices(records)), 3)
    still.goOn()
    await assert.rejects(still.ended, StoreUnavailable)
    const { rows } = await runSql(url, 'SELECT count(*)::int AS n FROM fatura.invoices')
    assert.deepEqual(rows, [{ n: 3 }])
  })

  it('are both stored after a deadlock, because one transaction is repeated', async t => {
    const url = await postgres.createStore(t)
    const stores = [await openWriteStore(url), await openWriteStore(url)]
    t.after(() => Promise.all(stores.map(store => store.close())))
    let [begun, runs] = [0, 0]
    const { promise: bothBegun, resolve: noteBoth } = Promise.withResolvers<void>()
    const customers = ['cus_ana', 'cus_bob']
    await Promise.all(
      stores.map((store, place) =>
        store.transaction(async tx => {
          runs++
          const [first = '', second = ''] = place === 0 ? customers : customers.toReversed()
          await tx.saveInvoices([makeRecord({ customer_id: first, id: `in_${place}_first` })])
          if (++begun === 2) noteBoth()
          await bothBegun
          await tx.saveInvoices([makeRecord({ customer_id: second, id: `in_${place}_second` })])
        }),
      ),
    )
    assert.ok(runs > 2, `${runs} runs: they crossed`)
    const { rows } = await runSql(url, 'SELECT count(*)::int AS n FROM fatura.invoices')
    assert.deepEqual(rows, [{ n: 4 }])
    assert.equal(await stores[0]?.checkCounts(), 0)
  })

  it('an import begins again after a deadlock, and imports its whole file', async t => {
    const url = await postgres.createStore(t)
    const cli = await createCli(t)
    // What a deadlock is to whoever is ended by it: after the first customer's rows, once.
    await runSql(
      url,
      `CREATE SEQUENCE public.crossings;
       CREATE FUNCTION public.cross_once() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN
         IF nextval('public.crossings') = 1 THEN RAISE EXCEPTION 'crossed' USING ERRCODE = 'deadlock_detected'; END IF;
         RETURN NEW;
       END $$;
       CREATE TRIGGER cross_once BEFORE INSERT ON fatura.invoices FOR EACH ROW
       WHEN (NEW.customer_id = 'cus_b') EXECUTE FUNCTION public.cross_once()`,
    )
    const { code, stdout, stderr } = await cli.run(['import', '-'], {
      env: { DATABASE_URL: url },
      input: ndjson(...invoicesOf('cus_a', 500), ...invoicesOf('cus_b', 500)),
    })
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^Imported 1000 invoices: 1000 new/)
    const { rows } = await runSql(url, 'SELECT last_value::int AS n FROM public.crossings')
    assert.deepEqual(rows, [{ n: 501 }], 'one row was refused, and all came again')
  })
})

describe('the time limits of a PostgreSQL writer', () => {
  it('hold when a proxy drops the session’s options, and the address can change them', async t => {
    const url = await postgres.createStore(t)
    const names = ['lock_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout', 'jit']
    const limitsOf = async (address: string) => {
      const client = new pg.Client(address).on('error', () => {})
      await client.connect()
      try {
        await client.query(beginWriting(false))
        const { rows } = await client.query(
          `SELECT ${names.map(name => `current_setting('${name}') AS ${name}`)}`,
        )
        return rows[0]
      } finally {
        await client.end()
      }
    }
    const limits = {
      lock_timeout: '30s',
      idle_in_transaction_session_timeout: '20s',
      statement_timeout: '15min',
      jit: 'off',
    }
    assert.deepEqual(await limitsOf(url), limits)
    assert.deepEqual(await limitsOf(`${url}?lock_timeout=300`), { ...limits, lock_timeout: '300ms' })
  })
})
