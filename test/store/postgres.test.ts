/** What only PostgreSQL has: the second wall, one round trip, and what Citus asks of a schema. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type pg from 'pg'
import type { Invoice } from '../../src/domain/invoice.ts'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { schema } from '../../src/store/postgres/schema.ts'
import { rowFilterNames, rowFilters } from '../../src/store/sql/filters.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { engines, postgresServer, runSql } from '../support/databases/engines.ts'
import { startProxy } from '../support/databases/postgres-proxy.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
const list = { customer_id: 'cus_ana', page: 1, page_size: 10 }

/** A role with no right but those that docs/postgresql.md gives to the API's. */
async function createApiRole(t: TestContext, url: string): Promise<string> {
  const name = `api_${new URL(url).pathname.slice(1)}`
  await runSql(url, `CREATE ROLE ${name} LOGIN PASSWORD 'test'; GRANT USAGE ON SCHEMA fatura TO ${name}`)
  t.after(() => runSql(postgresServer(), `DROP ROLE IF EXISTS ${name}`))
  const address = new URL(url)
  address.username = name
  address.password = 'test'
  return address.href
}

describe('PostgreSQL’s permissions as a second wall', () => {
  test('the API’s role serves every request, and cannot read a table by any statement', async t => {
    const url = await postgres.createStore(t)
    const writer = await openWriteStore(url)
    t.after(() => writer.close())
    await writer.transaction(tx =>
      tx.saveInvoices([
        makeRecord({ id: 'in_a' }, [makeLine()]),
        makeRecord({ id: 'in_b', customer_id: 'cus_bob' }),
      ]),
    )
    const roleUrl = await createApiRole(t, url)
    const reader = await openReadStore(roleUrl)
    assert.equal((await reader.listInvoices(list)).total, 1)
    assert.equal((await reader.listInvoices({ ...list, words: searchWords('ana') })).total, 1)
    assert.ok((await reader.findInvoice('cus_ana', 'in_a'))?.lines)
    assert.equal(await reader.findInvoice('cus_ana', 'in_b'), null)
    assert.ok((await reader.readSnapshot('cus_ana')).version > 0)
    assert.equal((await reader.readSums('cus_ana')).sums.length, 1)
    assert.deepEqual((await reader.readOpen('cus_ana', '2026-10-28')).sums, [])
    assert.equal(
      (await reader.readAccount({ customer_id: 'cus_ana', page: 1, page_size: 5 })).entries.length,
      2,
    )
    assert.equal((await reader.readChanges('cus_ana', 0, 10))?.changes.length, 1)
    assert.equal((await reader.readChanges(null, 0, 10))?.changes.length, 2)
    await reader.close()

    const tables = [
      'invoices',
      'invoice_lines',
      'invoice_payments',
      'account_entries',
      'customers',
      'counters',
      'streams',
      'bound_accounts',
      'lease',
      'set_aside',
      'tokens',
      'keys',
      'scopes',
      'changes',
      'commits',
      'feed',
      'outgoing_webhooks',
      'migrations',
    ]
    const attempts = [
      ...tables.map(table => `SELECT * FROM fatura.${table}`),
      ...tables.map(table => `SELECT count(*) FROM fatura.${table}`),
      ...tables.map(table => `DELETE FROM fatura.${table}`),
      'SELECT summary FROM fatura.invoices ORDER BY issued_at DESC, id DESC LIMIT 10',
      'COPY fatura.invoices TO STDOUT',
      'SELECT * FROM fatura.invoices_readable',
      'CREATE TABLE fatura.mine (x int)',
      "CREATE FUNCTION fatura.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
      // What writers call has no rights of its own.
      "SELECT fatura.find_known('cus_ana', false, '{cus_ana}', '{in_a}')",
      `SELECT fatura.count_customers('cus_ana', false, '{cus_ana}', '{1}', '{1}', ${Array(6).fill('NULL')}, 1, 1)`,
    ]
    for (const sql of attempts) await assert.rejects(runSql(roleUrl, sql), { code: '42501' }, sql)
  })

  test('the API’s role may not run the functions’ statements without the customer’s predicate', async t => {
    const url = await postgres.createStore(t)
    const roleUrl = await createApiRole(t, url)
    const reading = functionSources().filter(({ body }) => customerTable.test(body))
    assert.equal(reading.length, 9)
    for (const { name, source } of reading) {
      const open = source
        .replace(name, name.replace('fatura.', 'public.open_'))
        .replace('SECURITY DEFINER', '')
        .replace(/\b\w\.customer_id = p_customer_id/g, 'true')
      assert.ok(!open.includes('.customer_id = p_customer_id'), name)
      const { rows } = await runSql(url, `SELECT pronargs AS n FROM pg_proc WHERE oid = '${name}'::regproc`)
      const texts = ["'{x}'", "'{NULL}'", "'{NULL}'", "'{NULL}'", 'NULL']
      const filters = rowFilterNames.map(filter => (rowFilters[filter].type === 'text' ? "'paid'" : '0'))
      const given = ["'cus_ana'", '1', '10', 'NULL', ...filters, ...texts]
      const others = {
        'fatura.find_invoice': "'in_1'",
        'fatura.read_open': "'2026-10-28'",
        'fatura.read_account': "'', '~', 1, 50",
      }
      const other = others[name as keyof typeof others]
      const values = other === undefined ? given.slice(0, rows[0].n) : ["'cus_ana'", other]
      const call = `SELECT * FROM ${name.replace('fatura.', 'public.open_')}(${values})`
      await runSql(url, open)
      await runSql(url, call)
      await assert.rejects(runSql(roleUrl, call), { code: '42501' }, name)
    }
  })

  test('a caller’s search path does not change what the functions return', async t => {
    const url = await postgres.createStore(t)
    await runSql(
      url,
      "CREATE SCHEMA evil; CREATE FUNCTION evil.strpos(text, text) RETURNS int LANGUAGE sql AS 'SELECT 1'; GRANT USAGE ON SCHEMA evil TO public",
    )
    const writer = await openWriteStore(url)
    t.after(() => writer.close())
    await writer.transaction(tx => tx.saveInvoices([makeRecord()]))
    const { rows } = await runSql(
      url,
      `SET search_path = evil, pg_catalog; SELECT fatura.search_invoices('cus_ana', 1, 10, NULL, ${rowFilterNames.map(() => 'NULL')}, '{nothing}', '{NULL}', '{NULL}', '{NULL}', NULL) AS page`,
    ).then(results => (results as unknown as pg.QueryResult[])[1] as pg.QueryResult)
    assert.match(rows[0].page, /^0 \d+ 1\n$/)
  })
})

describe('a read on PostgreSQL', () => {
  test('a list, a search, a detail and a 304 each take one round trip with a prepared statement', async t => {
    // The freshness, which is remembered for half a second, stays known.
    stopClock(t)
    const url = await postgres.createStore(t)
    const proxy = await startProxy(t, url)
    const writer = await openWriteStore(url)
    t.after(() => writer.close())
    await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1' }, [makeLine()])]))
    const reader = await openReadStore(proxy.url)
    t.after(() => reader.close())
    const requests = {
      newest: () => reader.listInvoices(list),
      list: () =>
        reader.listInvoices({ ...list, status: 'paid', ix_status: 'x', issued_from: 0, issued_before: 9e12 }),
      search: () =>
        reader.listInvoices({
          ...list,
          words: searchWords('ana PT509442013'),
        }),
      detail: () => reader.findInvoice('cus_ana', 'in_1'),
      sums: () => reader.readSums('cus_ana'),
      open: () => reader.readOpen('cus_ana', '2026-10-28'),
      snapshot: () => reader.readSnapshot('cus_ana'),
      token: () => reader.findToken('fat_x'),
      key: () => reader.findKey('key_x'),
      scope: () => reader.coversCustomer('fat_x', 'cus_ana'),
    }
    for (const [name, request] of Object.entries(requests)) {
      await request()
      proxy.messages.length = 0
      await request()
      // Bind, describe, execute, sync: no parse, and one sync is one round trip.
      assert.equal(proxy.messages.join(''), 'BDES', name)
    }
  })
})

describe('shared connections of PostgreSQL readers', () => {
  test('give each customer only their own answers, even while connections are cut', async t => {
    const url = await postgres.createStore(t)
    const writer = await openWriteStore(url)
    t.after(() => writer.close())
    const customers = Array.from({ length: 9 }, (_, i) => `cus_${i}`)
    const versions = new Map<string, number>()
    const reader = await openReadStore(url)
    t.after(() => reader.close())
    for (const [i, customer_id] of customers.entries()) {
      const records = Array.from({ length: i + 1 }, (_, n) => makeRecord({ customer_id, id: `in_${i}_${n}` }))
      await writer.transaction(tx => tx.saveInvoices(records))
      versions.set(customer_id, (await reader.readSnapshot(customer_id)).version)
    }
    const ask = async (i: number): Promise<'answered' | 'unavailable'> => {
      const place = i % customers.length
      const customer_id = customers[place] as string
      try {
        const page = await reader.listInvoices({ ...list, customer_id })
        const owners = JSON.parse(`[${page.summaries}]`).map((one: Invoice) => one.customer_id)
        assert.deepEqual(owners, Array(place + 1).fill(customer_id))
        assert.deepEqual([page.total, page.version], [place + 1, versions.get(customer_id)])
        assert.equal((await reader.readSnapshot(customer_id)).version, versions.get(customer_id))
        const found = await reader.findInvoice(customer_id, `in_${place}_0`)
        assert.equal(JSON.parse(found?.summary ?? '{}').customer_id, customer_id)
        assert.equal(await reader.findInvoice(customer_id, `in_${(place + 1) % 9}_0`), null)
        return 'answered'
      } catch (error) {
        if (error instanceof StoreUnavailable) return 'unavailable'
        throw error
      }
    }
    const seen = { answered: 0, unavailable: 0, cuts: 0 }
    for (let round = 0; round < 20; round++) {
      const asked = Promise.all(Array.from({ length: 60 }, (_, i) => ask(round + i)))
      if (round % 2 === 1) {
        const { rows } = await runSql(
          url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND application_name = 'fatura-api'`,
        )
        seen.cuts += rows.length
      }
      for (const outcome of await asked) seen[outcome]++
    }
    t.diagnostic(JSON.stringify(seen))
    assert.ok(seen.answered > 600 && seen.cuts > 10, JSON.stringify(seen))
  })
})

describe('the order of invoices on PostgreSQL', () => {
  test('does not depend on the server’s locale', async t => {
    const name = `fatura_order_${process.pid}`
    await runSql(
      postgresServer(),
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'`,
    )
    t.after(() => runSql(postgresServer(), `DROP DATABASE ${name} WITH (FORCE)`))
    const url = postgresServer() + name
    await migrateStore(url)
    const { rows } = await runSql(url, "SELECT 'a' < 'B' AS by_locale, 'a' < 'B' COLLATE \"C\" AS by_bytes")
    assert.deepEqual(rows, [{ by_locale: true, by_bytes: false }])
    const { rows: columns } = await runSql(
      url,
      `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
       WHERE table_schema = 'fatura' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
    )
    assert.deepEqual(columns, [], 'every text is compared by bytes')
  })
})

describe('the rules for tables on Citus', () => {
  test('every primary key and index of a customer’s table begins with customer_id', async t => {
    const url = await postgres.createStore(t)
    const { rows } = await runSql(
      url,
      `SELECT c.relname AS index, t.relname AS table, a.attname AS first
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
       JOIN pg_namespace n ON n.oid = t.relnamespace
       JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
       WHERE n.nspname = 'fatura' AND t.relname NOT IN ('tokens', 'keys', 'scopes', 'streams', 'migrations', 'observation', 'freshness', 'documents', 'document_clients', 'document_relations', 'bound_accounts', 'lease', 'set_aside', 'rechecks', 'corrections', 'commits', 'feed', 'outgoing_webhooks')
         -- The connector comes from a document or a payment to its invoice, and counts what lacks one; it asks every shard, the API never does.
         -- The feed of all customers asks every shard, too.
         AND c.relname NOT IN ('links_by_invoice', 'links_by_claim', 'links_by_document', 'links_by_number', 'invoice_payments_by_payment', 'tombstones_by_id', 'invoices_uncertified', 'changes_by_commit')`,
    )
    assert.ok(rows.length >= 4)
    for (const { index, first } of rows) assert.equal(first, 'customer_id', index)
    const { rows: others } = await runSql(
      url,
      `SELECT 'sequence ' || sequencename AS name FROM pg_sequences WHERE schemaname = 'fatura'
       UNION ALL SELECT 'foreign key ' || conname FROM pg_constraint WHERE contype = 'f' AND connamespace = 'fatura'::regnamespace
       UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
         WHERE NOT tgisinternal AND relnamespace = 'fatura'::regnamespace`,
    )
    assert.deepEqual(others, [])
  })

  test('every statement of a request filters each customer’s table by the given customer', () => {
    let checked = 0
    for (const { name, body } of functionSources()) {
      const uses = Map.groupBy(body.matchAll(new RegExp(customerTable, 'g')), ([, , alias]) => alias)
      for (const [alias, of] of uses) {
        const own = body.split(new RegExp(`${alias}\\.customer_id = (?:p_customer_id|\\$1)`)).length - 1
        const joined = body.split(`${alias}.customer_id = i.customer_id`).length - 1
        assert.equal(own + joined, of.length, `${name}: each use of ${of[0]?.[1]} as ${alias}`)
        checked += of.length
      }
      // Within a statement that is made at run time, $1 is the customer.
      const made = body.match(/\bEXECUTE\b/g)?.length ?? 0
      assert.equal(body.match(/\bUSING p_customer_id\b/g)?.length ?? 0, made, name)
    }
    assert.ok(checked >= 8, `${checked} uses of tables`)
  })
})

const customerTable = /\bfatura\.(invoices|invoice_lines|customers|counters|changes) (\w)\b/

/** Each function that the API calls, as it is installed. */
function functionSources(): { name: string; source: string; body: string }[] {
  const found = (schema.functions?.sql ?? '')
    .split('-- Functions that writers call')[0]
    ?.matchAll(
      /CREATE OR REPLACE FUNCTION (fatura\.\w+)(?:(?!CREATE OR REPLACE FUNCTION)[\s\S])*?\$body\$([\s\S]*?)\$body\$/g,
    )
  const all = [...(found ?? [])].map(([source, name = '', body = '']) => ({ name, source, body }))
  // Those who may read all customers are shown the ids of what changed.
  return all.filter(({ name }) => name !== 'fatura.commit_changes')
}
