import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { writePassages } from '../../scripts/write-functions.ts'
import {
  migrateStore,
  openOperatorStore,
  openReadStore,
  openWriteStore,
  readFacts,
} from '../../src/store/engines.ts'
import { explainState, type OnRewrite, type Schema } from '../../src/store/migrations.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'
import { schema as ofPostgres } from '../../src/store/postgres/schema.ts'
import { migrateSqlite, schema as ofSqlite } from '../../src/store/sqlite/migrations.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { campaign, reportFigure } from '../support/checks/campaign.ts'
import { createDatabase, createFolder, engines, runSql } from '../support/databases/engines.ts'
import { changeRows, readRows } from '../support/databases/store-rows.ts'
import { makeInvoice, makeRecord } from '../support/worlds/records.ts'

const schemas: Record<string, Schema> = { sqlite: ofSqlite, postgres: ofPostgres, citus: ofPostgres }

test('functions.sql contains PostgreSQL’s functions as npm run functions writes them', () => {
  assert.equal(ofPostgres.functions?.sql, writePassages(ofPostgres.functions?.sql ?? ''))
})

async function createNothing(t: TestContext, engine: string): Promise<string> {
  return engine === 'sqlite' ? `sqlite:${join(await createFolder(t), 'fatura.db')}` : createDatabase(t)
}

function migrateTo(url: string, wanted: Schema, onRewrite?: OnRewrite) {
  return url.startsWith('sqlite:')
    ? migrateSqlite(url.slice('sqlite:'.length), onRewrite, {}, wanted)
    : migratePostgres(url, onRewrite, wanted)
}

/** A next version that is made up: a column, and a pass that fills it. `onStep` is called within each step. */
function makeNext(schema: Schema, prefix: string, onStep: (after: string) => void): Schema {
  const atOnce = 100
  const next = {
    version: schema.migrations.length + 1,
    sql: `ALTER TABLE ${prefix}customers ADD COLUMN passes integer NOT NULL DEFAULT 0;`,
    sha256: 'made up',
    rewrite: {
      title: 'counting passes',
      async step(db: Parameters<NonNullable<Schema['migrations'][0]['rewrite']>['step']>[0], after: string) {
        const found = await db.query<{ customer_id: string }>(
          'SELECT customer_id FROM fatura.customers WHERE customer_id > $1 ORDER BY customer_id LIMIT $2',
          [after, atOnce],
        )
        const last = found.at(-1)?.customer_id ?? after
        await db.query(
          'UPDATE fatura.customers SET passes = passes + 1 WHERE customer_id > $1 AND customer_id <= $2',
          [after, last],
        )
        onStep(after)
        return { next: found.length < atOnce ? null : last, customers: found.length }
      },
    },
  }
  return { ...schema, migrations: [...schema.migrations, next] }
}

for (const engine of engines) {
  const schema = schemas[engine.name] as Schema
  const prefix = engine.name === 'sqlite' ? '' : 'fatura.'
  const customers = campaign(350, 1_000_000)
  const version = schema.migrations.length

  async function createFilled(t: TestContext): Promise<string> {
    const url = await engine.createStore(t)
    const store = await openWriteStore(url)
    await store.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1', customer_id: 'cus_000' })]))
    await store.close()
    const numbers =
      engine.name === 'sqlite'
        ? `WITH RECURSIVE given (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM given WHERE n < ${customers}) SELECT 'cus_' || n, 1 FROM given`
        : `SELECT 'cus_' || n, 1 FROM generate_series(1, ${customers}) AS n`
    await changeRows(url, `INSERT INTO fatura.customers (customer_id, version) ${numbers}`)
    return url
  }

  const passesOf = (url: string) =>
    readRows(url, 'SELECT passes, count(*) AS n FROM fatura.customers GROUP BY passes')

  describe(`migrations on ${engine.name}`, () => {
    test('a killed migration pass continues where it stopped, and changes each customer once', async t => {
      const url = await createFilled(t)
      let steps = 0
      const killed = makeNext(schema, prefix, () => {
        if (++steps === 3) throw new Error('killed')
      })
      await assert.rejects(migrateTo(url, killed), /killed/)
      const state = { hashes: killed.migrations.map(({ sha256 }) => sha256), isRewriting: true }
      assert.match(
        explainState('It', { ...state, functions: schema.functions?.sha256 ?? null }, killed) ?? '',
        /not completely migrated/,
      )
      const [kept] = await readRows(
        url,
        `SELECT rewriting FROM fatura.migrations WHERE version = ${version + 1}`,
      )
      assert.ok(String(kept?.rewriting) > 'cus_', 'two steps are kept')
      const resumed: string[] = []
      const told: number[] = []
      const whole = makeNext(schema, prefix, after => resumed.push(after))
      assert.deepEqual(await migrateTo(url, whole, (_title, _done, part) => told.push(part)), {
        from: version + 1,
        to: version + 1,
      })
      assert.equal(resumed[0], kept?.rewriting)
      assert.equal(told.at(-1), 1)
      assert.deepEqual(
        (await passesOf(url)).map(({ passes, n }) => [Number(passes), Number(n)]),
        [[1, customers + 1]],
      )
      reportFigure(t, 'R13', `${engine.name}: killed midway, each of ${customers} customers migrated once`)
    })

    test('two simultaneous migrations migrate the store once', async t => {
      const url = await createFilled(t)
      const outcomes = await Promise.all(
        [1, 2].map(() =>
          migrateTo(
            url,
            makeNext(schema, prefix, () => {}),
          ),
        ),
      )
      for (const { to } of outcomes) assert.equal(to, version + 1)
      assert.deepEqual(
        (await passesOf(url)).map(({ passes }) => Number(passes)),
        [1],
      )
    })

    test('a store that another text of 0001.sql created is refused with one line of advice, and left unchanged', async t => {
      const url = await createFilled(t)
      await changeRows(url, "UPDATE fatura.migrations SET sha256 = 'another' WHERE version = 1")
      for (const open of [openReadStore, openWriteStore, openOperatorStore, migrateStore])
        await assert.rejects(open(url), ({ message }: Error) => {
          assert.match(
            message,
            /another schema version 1\. Start with a new store: run "fatura sync" or "fatura import" again, and make tokens and keys again\.$/,
          )
          return true
        })
      assert.match((await readFacts(url)).schemaProblem ?? '', /Start with a new store/)
      assert.equal((await readRows(url, 'SELECT id FROM fatura.invoices')).length, 1)
    })

    test('a store with several unreleased versions is refused with one line of advice', async t => {
      const url = await createFilled(t)
      await changeRows(url, "UPDATE fatura.migrations SET sha256 = 'another' WHERE version = 1")
      const others = `VALUES (${version + 1}, 'b'), (${version + 2}, 'c')`
      await changeRows(url, `INSERT INTO fatura.migrations (version, sha256) ${others}`)
      if (engine.name === 'sqlite') await changeRows(url, `PRAGMA user_version = ${version + 2}`)
      for (const open of [openReadStore, migrateStore])
        await assert.rejects(open(url), /Start with a new store/)
    })

    test('a running process can read but no longer write after a newer Fatura migrates the store', async t => {
      const url = await createFilled(t)
      const [reader, writer] = [await openReadStore(url), await openWriteStore(url)]
      t.after(async () => {
        await reader.close()
        await writer.close()
      })
      const save = () =>
        writer.transaction(tx => tx.saveInvoices([{ invoice: makeInvoice({ id: 'in_late' }), lines: null }]))
      await save()
      const before = await readRows(url, 'SELECT count(*) AS n FROM fatura.invoices')
      await migrateTo(
        url,
        makeNext(schema, prefix, () => {}),
      )
      const told = new RegExp(
        `has schema version ${version + 1}, newer than this Fatura's ${version}. Upgrade Fatura, or restore a backup from before the upgrade. See docs/backup.md.`,
      )
      await assert.rejects(save(), told)
      await assert.rejects(migrateStore(url), told)
      assert.deepEqual(await readRows(url, 'SELECT count(*) AS n FROM fatura.invoices'), before)
      const query = { customer_id: 'cus_000', page: 1, page_size: 20 }
      assert.equal((await reader.listInvoices(query)).total, 1)
      await changeRows(
        url,
        engine.name === 'sqlite'
          ? 'DROP TABLE fatura.invoice_lines'
          : 'DROP FUNCTION fatura.find_invoice(text, text)',
      )
      await assert.rejects(reader.findInvoice('cus_000', 'in_1'), error => {
        assert.ok(error instanceof StoreUnavailable)
        assert.match(error.message, /changed by a newer Fatura while this process ran. Upgrade it/)
        return true
      })
      assert.equal((await reader.listInvoices(query)).total, 1, 'the rest is served on')
    })

    test('a new store is created by the first run and not changed by the second', async t => {
      const url = await createNothing(t, engine.name)
      assert.deepEqual(await migrateStore(url), { from: 0, to: version })
      assert.deepEqual(await migrateStore(url), { from: version, to: version })
    })
  })
}

test('a store with outdated PostgreSQL functions is refused until fatura migrate replaces them', async t => {
  const postgres = engines.find(({ name }) => name === 'postgres')
  assert.ok(postgres !== undefined)
  const url = await postgres.createStore(t)
  const other = "SELECT 'another text'::text"
  await runSql(
    url,
    `CREATE OR REPLACE FUNCTION fatura.read_version(p_customer_id text) RETURNS bigint LANGUAGE sql AS $$ SELECT 7 $$;
     UPDATE fatura.migrations SET sha256 = (${other}) WHERE version = 0`,
  )
  for (const open of [openReadStore, openWriteStore])
    await assert.rejects(open(url), /has the functions of another Fatura. Run: fatura migrate/)
  await migrateStore(url)
  const reader = await openReadStore(url)
  t.after(() => reader.close())
  assert.equal((await reader.readSnapshot('cus_none')).version, 0)
})
