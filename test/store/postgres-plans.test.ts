/** What a server with JIT makes of the API's functions: nothing is compiled, and no table is read as a whole. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import pg from 'pg'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { openReadPool, openWritePool } from '../../src/store/postgres/pool.ts'
import { type RowFilterName, rowFilterNames } from '../../src/store/sql/filters.ts'
import { eventually } from '../support/clients/cli.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'

/** Arguments for the filters of a list, as SQL. A filter that is not given is NULL. */
const filters = (given: Partial<Record<RowFilterName, string>>) =>
  rowFilterNames.map(name => given[name] ?? 'NULL').join(', ')

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]

/** A plan above 100,000 is compiled by a server as it comes. Reads by a key stay far below. */
const dearest = 1_000

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Total Cost': number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

interface Installed {
  name: string
  settings: string[]
  body: string
}

/** The functions that the API calls, as the server holds them. */
async function readFunctions(client: pg.Client): Promise<Installed[]> {
  const { rows } = await client.query<Installed>(
    `SELECT proname AS name, proconfig AS settings, prosrc AS body FROM pg_proc
     WHERE pronamespace = 'fatura'::regnamespace AND prosecdef ORDER BY 1`,
  )
  return rows
}

/** The statements of a body, with values in the place of what the function was given. */
function statementsOf(body: string): string[] {
  return [...body.matchAll(/\bSELECT\b[^;]*/g)].map(([statement]) =>
    statement
      .replace(/ INTO [\w, ]+?(?=\s+FROM)/, '')
      .replace(/\)$/, match => (statement.split('(').length === statement.split(')').length ? match : ''))
      .replace(/\bp_customer_id\b/g, "'cus_ana'")
      .replace(/\bp_(invoice_)?id\b/g, "'in_1'")
      .replace(/\bp_expanded\b/g, 'true'),
  )
}

async function connect(t: TestContext, url: string): Promise<pg.Client> {
  // The database goes away before its connections do.
  const client = new pg.Client(url).on('error', () => {})
  await client.connect()
  t.after(() => client.end())
  return client
}

/** The plans of all statements that run in calls of functions, as texts. */
async function explainCalls(client: pg.Client, calls: readonly string[]): Promise<string[]> {
  await client.query(
    "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on",
  )
  await client.query('SET auto_explain.log_nested_statements = on; SET client_min_messages = log')
  const told: string[] = []
  client.on('notice', ({ message }) => told.push(message ?? ''))
  for (const call of calls) await client.query(`SELECT * FROM ${call}`)
  return told
}

describe('query plans on PostgreSQL', () => {
  test('functions that read by a key scan no table, and no function is compiled by JIT', async t => {
    const url = await postgres.createStore(t)
    const writer = await openWriteStore(url)
    await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1' })]))
    await writer.close()
    const client = await connect(t, url)
    const functions = await readFunctions(client)
    assert.ok(functions.length >= 7, `${functions.length} functions`)
    let planned = 0
    for (const { name, settings, body } of functions) {
      if (settings.includes('jit=off')) continue
      for (const setting of settings) await client.query(`SET ${setting}`)
      for (const statement of statementsOf(body)) {
        const { rows } = await client.query(`EXPLAIN (FORMAT JSON) ${statement}`)
        const plan: Plan = rows[0]['QUERY PLAN'][0].Plan
        assert.ok(plan['Total Cost'] < dearest, `${name}: ${plan['Total Cost']}`)
        const whole = nodesOf(plan).filter(node => node['Node Type'] === 'Seq Scan')
        assert.deepEqual(whole, [], name)
        planned++
      }
      await client.query('RESET ALL')
    }
    assert.equal(planned, 10, 'every statement of the functions that read by a key')
  })

  test('an invoice is found by its key, however uneven the customers’ numbers of invoices are', async t => {
    const url = await postgres.createStore(t)
    const writer = await openWriteStore(url)
    await writer.transaction(async tx => {
      await tx.saveInvoices(
        Array.from({ length: 3_000 }, (_, i) => makeRecord({ customer_id: `cus_${i}`, id: `in_${i}` })),
      )
      await tx.saveInvoices(Array.from({ length: 450 }, (_, i) => makeRecord({ id: `in_ana_${i}` })))
    })
    await writer.close()
    const client = await connect(t, url)
    await client.query('ANALYZE; SET plan_cache_mode = force_generic_plan')
    const statements = {
      one: 'SELECT summary FROM fatura.invoices WHERE customer_id = $1 AND id = $2',
      batch: `UPDATE fatura.invoices AS stored SET observed_stamp = 1 FROM unnest(ARRAY[$1], ARRAY[$2]) AS given (customer_id, id)
        WHERE stored.customer_id = given.customer_id AND stored.id = given.id`,
    }
    for (const [name, statement] of Object.entries(statements)) {
      await client.query(`PREPARE ${name} (text, text) AS ${statement}`)
      const { rows } = await client.query(`EXPLAIN EXECUTE ${name} ('cus_ana', 'in_ana_1')`)
      assert.match(JSON.stringify(rows), /using invoices_pkey/, name)
    }
  })

  test('a writer finds a batch of invoices by their keys, even in a small table', async t => {
    const url = await postgres.createStore(t)
    const client = await connect(t, url)
    const readReads = async () => {
      const { rows } = await client.query<{ whole: string; by_key: string }>(
        `SELECT sum(seq_tup_read) AS whole, sum(idx_scan) AS by_key FROM pg_stat_user_tables
         WHERE schemaname = 'fatura' AND relname IN ('invoices', 'invoice_lines', 'invoice_payments')`,
      )
      return { whole: Number(rows[0]?.whole), byKey: Number(rows[0]?.by_key) }
    }
    const writer = await openWriteStore(url)
    for (const status of ['open', 'paid', 'paid', 'void'] as const)
      await writer.transaction(tx =>
        tx.saveInvoices(Array.from({ length: 100 }, (_, i) => makeRecord({ id: `in_${i}`, status }))),
      )
    await writer.close()
    // A server process tells what it read when it ends.
    await eventually('the writer’s reads are told', async () => (await readReads()).byKey >= 400)
    assert.equal((await readReads()).whole, 0)
  })

  test('a search reads only the list’s index in order, and the rows of the page', async t => {
    const url = await postgres.createStore(t)
    const writer = await openWriteStore(url)
    await writer.transaction(tx =>
      tx.saveInvoices(Array.from({ length: 300 }, (_, i) => makeRecord({ id: `in_${i}` }))),
    )
    await writer.close()
    const client = await connect(t, url)
    for (const prepare of ['SELECT', 'ANALYZE']) {
      await client.query(prepare)
      const plans = await explainCalls(client, [
        `fatura.search_invoices('cus_ana', 1, 10, NULL, ${filters({ status: "'paid'", issued_from: '0' })}, '{lima,zz}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', NULL)`,
      ])
      const [scan] = plans.filter(plan => plan.includes('words'))
      assert.match(scan ?? '', /-> {2}Index Only Scan using invoices_in_order on invoices i /, prepare)
      for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan|Bitmap|Sort|Hash/, plan)
    }
  })

  test('a server with JIT compiles no request’s function, even when the session allows JIT', async t => {
    const url = await postgres.createStore(t)
    const client = await connect(t, url)
    const { rows } = await client.query(
      "SELECT current_setting('jit') AS jit, pg_jit_available() AS available",
    )
    if (!rows[0].available) return t.skip('this server has no JIT')
    // As behind a PgBouncer that drops the options: only what the functions say themselves holds.
    await client.query('SET jit = on')
    const calls = [
      "fatura.read_version('cus_ana')",
      "fatura.find_invoice('cus_ana', 'in_1')",
      "fatura.read_token('fat_x')",
      "fatura.read_key('key_x')",
      "fatura.covers_customer('key_x', 'cus_ana')",
      'fatura.schema_version()',
      `fatura.list_invoices('cus_ana', 2, 10, '{document}', ${filters({ status: "'paid'", issued_from: '0' })})`,
      "fatura.read_account('cus_ana', '', '~', 1, 50)",
      `fatura.search_invoices('cus_ana', 1, 10, NULL, ${filters({})}, '{lima}', '{NULL}', '{NULL}', '{NULL}', NULL)`,
    ]
    const told = await explainCalls(client, calls)
    assert.ok(told.length > calls.length, `${told.length} plans`)
    for (const plan of told) assert.doesNotMatch(plan, /\bJIT:/, plan)
  })

  test('the sessions of readers and writers turn JIT off', async t => {
    const url = await postgres.createStore(t)
    await (await openReadStore(url)).close()
    for (const pool of [openReadPool(url), openWritePool(url)]) {
      t.after(() => pool.end())
      assert.deepEqual((await pool.query('SHOW jit')).rows, [{ jit: 'off' }])
    }
  })
})
