/** The check of what is counted ahead of time: it keeps nobody waiting, writes nothing, and reads every row but a few times. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import pg from 'pg'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { countedAbove } from '../../src/store/sql/counters.ts'
import { eventually } from '../support/clients/cli.ts'
import { engines, runSql } from '../support/databases/engines.ts'
import { flipCounters } from '../support/databases/flip-counters.ts'
import { makeRecord } from '../support/worlds/records.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
const sqlite = engines.find(({ name }) => name === 'sqlite') as (typeof engines)[number]

/** So many customers of one invoice each, and one of many. */
async function fill(url: string, customers: number, many = 600): Promise<void> {
  const store = await openWriteStore(url)
  const records = Array.from({ length: customers }, (_, i) =>
    makeRecord({ customer_id: `cus_${String(i).padStart(6, '0')}` }),
  )
  await store.transaction(async tx => {
    await tx.saveInvoices(records)
    await tx.saveInvoices(Array.from({ length: many }, (_, i) => makeRecord({ id: `in_${i}` })))
  })
  await store.close()
}

/** A session tells what it read when it ends, before it is gone: only then do the statistics hold it. */
function othersEnded(url: string): Promise<void> {
  return eventually('every other session has ended', async () => {
    const { rowCount } = await runSql(
      url,
      'SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    return rowCount === 0
  })
}

describe('a recount of counters on PostgreSQL', () => {
  test('writes no row and waits for no lock, even when every customer is locked', async t => {
    const url = await postgres.createStore(t)
    await fill(url, 450)
    const rowsNow = async () =>
      (await runSql(url, 'SELECT customer_id, ctid, xmin, xmax FROM fatura.customers ORDER BY 1')).rows
    const before = await rowsNow()
    const other = new pg.Client(url).on('error', () => {})
    await other.connect()
    t.after(() => other.end())
    const store = await openWriteStore(`${url}?lock_timeout=2000`)
    t.after(() => store.close())
    assert.equal(await store.checkCounts(), 0)
    assert.deepEqual(await rowsNow(), before, 'nothing was written, not even a lock')
    await other.query('BEGIN; LOCK TABLE fatura.customers, fatura.invoices IN ROW EXCLUSIVE MODE')
    await other.query('SELECT FROM fatura.customers FOR UPDATE')
    assert.equal(await store.checkCounts(), 0)
  })

  test('reads each invoice only a few times for any number of customers, and reports its progress', async t => {
    const url = await postgres.createStore(t)
    const [customers, many] = [1_400, 600]
    await fill(url, customers, many)
    await runSql(url, 'ANALYZE')
    const tuplesRead = async () => {
      await othersEnded(url)
      const { rows } = await runSql(
        url,
        `SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'invoices')
           + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'invoices') AS n`,
      )
      return Number(rows[0].n)
    }
    const before = await tuplesRead()
    const store = await openWriteStore(url)
    const steps: [number, number | null][] = []
    assert.equal(await store.checkCounts((invoices, of) => steps.push([invoices, of])), 0)
    await store.close()
    const read = (await tuplesRead()) - before
    t.diagnostic(`${read} rows read of ${customers + many}`)
    assert.ok(read > customers, `${read} rows read`)
    assert.ok(read < 6 * (customers + many), `${read} rows read of ${customers + many}`)
    assert.ok(steps.length >= customers / 200, `${steps.length} steps`)
    assert.deepEqual(steps.at(-1), [customers + many, customers + many])
  })

  test('with repair, waits for no customer whose counters are correct', async t => {
    const url = await postgres.createStore(t)
    await fill(url, 300)
    await runSql(url, "UPDATE fatura.customers SET total = 7 WHERE customer_id IN ('cus_000007', 'cus_ana')")
    const other = new pg.Client(url).on('error', () => {})
    await other.connect()
    t.after(() => other.end())
    await other.query(
      "BEGIN; SELECT FROM fatura.customers WHERE customer_id NOT IN ('cus_000007', 'cus_ana') FOR UPDATE",
    )
    const store = await openWriteStore(`${url}?lock_timeout=2000`)
    t.after(() => store.close())
    assert.equal(await store.repairCounts(), 2)
    assert.equal(await store.checkCounts(), 0)
  })

  test('is not needed to save an invoice: few rows are read for a customer with 450 invoices', async t => {
    const url = await postgres.createStore(t)
    await fill(url, 1_000, 450)
    await runSql(url, 'VACUUM ANALYZE')
    const rowsRead = async (work: () => Promise<void>) => {
      const read = async () => {
        await othersEnded(url)
        const { rows } = await runSql(
          url,
          "SELECT seq_tup_read + idx_tup_fetch AS n FROM pg_stat_user_tables WHERE relname = 'invoices'",
        )
        return Number(rows[0].n)
      }
      const before = await read()
      await work()
      return (await read()) - before
    }
    const saving = await rowsRead(async () => {
      const store = await openWriteStore(url)
      for (const status of ['open', 'paid'] as const)
        await store.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_new', status })]))
      await store.close()
    })
    t.diagnostic(`${saving} rows read`)
    assert.ok(saving > 0 && saving < 10, `${saving} rows read`)
  })
})

describe('a recount of counters on SQLite', () => {
  test('neither waits for a writer nor delays one', async t => {
    const url = await sqlite.createStore(t)
    await fill(url, 50)
    const other = new DatabaseSync(url.slice('sqlite:'.length))
    other.exec('BEGIN IMMEDIATE')
    const store = await openWriteStore(url)
    const steps: [number, number | null][] = []
    assert.equal(await store.checkCounts((invoices, of) => steps.push([invoices, of])), 0)
    assert.deepEqual(steps.at(-1), [650, 650])
    other.exec('ROLLBACK')
    other.close()
    await store.close()
  })

  test('leaves no page of a list empty while counters appear and disappear', async t => {
    const url = await sqlite.createStore(t)
    await fill(url, 1, countedAbove + 100)
    const flipping = await flipCounters(t, url)
    const reader = await openReadStore(url)
    t.after(() => reader.close())
    const question = { customer_id: 'cus_ana', page: 2, page_size: 10, status: 'paid' } as const
    const totals = new Map<number, number>()
    while ((await flipping.flips()) < 2_000) {
      for (let turn = 0; turn < 200; turn++) {
        const { total, page, summaries } = await reader.listInvoices(question)
        assert.deepEqual([page, summaries.length > 1_000], [2, true], `${total} invoices`)
        totals.set(total, (totals.get(total) ?? 0) + 1)
      }
    }
    await flipping.stop()
    t.diagnostic(`${[...totals.values()]} answers`)
    assert.deepEqual([...totals.keys()], [countedAbove + 100])
  })
})
