/** What only Citus has, on a real cluster: what is spread where. The suites that loop over all engines run there as well. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { migrateStore, openReadStore, readFacts } from '../../src/store/engines.ts'
import { distributedTables, referenceTables } from '../../src/store/postgres/schema.ts'
import { createCitusDatabase, skipCitus } from '../support/citus-cluster.ts'
import { postgresServer, runSql } from '../support/engines.ts'
import { storesFolder } from '../support/kept-stores.ts'

async function misplaced(url: string): Promise<readonly string[] | null | undefined> {
  return (await readFacts(url)).server?.misplaced
}

/** A store of version 1 with its rows, as it lies on one node. */
async function restoreFirst(t: TestContext): Promise<string> {
  const [url = ''] = await createCitusDatabase(t)
  await runSql(url, gunzipSync(readFileSync(join(storesFolder, '1.sql.gz'))).toString())
  return url
}

const totals = `SELECT (SELECT count(*) FROM fatura.invoices) AS invoices, (SELECT count(*) FROM fatura.links) AS links,
  (SELECT count(*) FROM fatura.tokens) AS tokens, (SELECT sum(n) FROM fatura.counts) AS counted`

describe('migrate on Citus', { skip: skipCitus }, () => {
  test('a new store is spread, and every node knows it', async t => {
    const nodes = await createCitusDatabase(t)
    await migrateStore(nodes[0] as string)
    assert.deepEqual(await misplaced(nodes[0] as string), [])
    for (const node of nodes) {
      assert.deepEqual(await misplaced(node), [])
      const store = await openReadStore(node)
      t.after(() => store.close())
      assert.equal((await store.readSnapshot('cus_ana')).version, 0)
      assert.equal(await store.findToken('none'), null)
    }
  })

  test('what fails leaves nothing behind, and goes on once the reason is gone', async t => {
    const [coordinator = '', worker = ''] = await createCitusDatabase(t)
    if (worker === '') return t.skip('the cluster has no worker')
    await runSql(
      worker,
      'SET citus.enable_ddl_propagation = off; CREATE SCHEMA fatura; CREATE TABLE fatura.links (odd integer)',
    )
    await assert.rejects(migrateStore(coordinator), /links/)
    assert.equal((await readFacts(coordinator)).schema, 0)
    await runSql(worker, 'SET citus.enable_ddl_propagation = off; DROP TABLE fatura.links')
    assert.deepEqual(await migrateStore(coordinator), { from: 0, to: 2 })
    assert.deepEqual(await misplaced(coordinator), [])
  })

  test('a store of the first version is upgraded and spread with its rows', async t => {
    const url = await restoreFirst(t)
    const { rows: before } = await runSql(url, totals)
    assert.deepEqual(await migrateStore(url), { from: 1, to: 2 })
    assert.deepEqual((await runSql(url, totals)).rows, before)
    assert.deepEqual(await misplaced(url), [])
  })

  test('so is one that was spread before', async t => {
    const url = await restoreFirst(t)
    const { rows: before } = await runSql(url, totals)
    const { rows: there } = await runSql(
      url,
      "SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'fatura'::regnamespace AND relkind = 'r'",
    )
    const isThere = (table: string) => there.some(({ name }) => name === table)
    for (const table of referenceTables.filter(isThere))
      await runSql(url, `SELECT create_reference_table('${table}')`)
    for (const table of distributedTables.filter(isThere))
      await runSql(url, `SELECT create_distributed_table('${table}', 'customer_id')`)
    assert.deepEqual(await migrateStore(url), { from: 1, to: 2 })
    assert.deepEqual((await runSql(url, totals)).rows, before)
    assert.deepEqual(await misplaced(url), [])
  })

  test('what is not spread is named, and the next migrate spreads it', async t => {
    const [url = ''] = await createCitusDatabase(t, process.env.TEST_CITUS_TEMPLATE)
    await runSql(url, "SELECT undistribute_table('fatura.journal')")
    await runSql(url, 'DROP FUNCTION fatura.first_page(text)')
    assert.deepEqual(await misplaced(url), ['fatura.journal', 'fatura.first_page()'])
    await migrateStore(url)
    assert.deepEqual(await misplaced(url), ['fatura.first_page()'])
  })
})

test('without the extension nothing is misplaced', async () => {
  assert.equal(await misplaced(`${postgresServer()}postgres`), null)
})
