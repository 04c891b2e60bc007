import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { functions, functionsMark } from '../../src/store/postgres/functions.ts'
import { migrations as ofPostgres } from '../../src/store/postgres/schema-version.ts'
import { migrations as ofSqlite } from '../../src/store/sqlite/migrations.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { changeRows, restoreStore, storesFolder } from '../support/kept-stores.ts'
import { makeInvoice } from '../support/records.ts'

/** The files of released versions. One that is listed here never changes; add a line with each release. */
const released = {
  sqlite: [
    'ba9a7c9a4799f0f833d12fb4900f7faa9526da1764693adb832a3cfb8364f3cf',
    'b20bcf1f5937c7fb66b1c1b0367aecd0e7f5abcd623d5fe271e568eb27b323d9',
  ],
  postgres: [
    'bca4b5310232c33a7fec3c94b88e304d460ca5ac8e4e28c4e72389838374804c',
    '16921e91b80e9348c573cc4a30fe7f33bdbf4b3de153cbd8904abaa60892cbfc',
  ],
}

describe('released migrations', () => {
  for (const [engine, migrations] of [
    ['sqlite', ofSqlite],
    ['postgres', ofPostgres],
  ] as const)
    test(`never change, and only the newest is not released: ${engine}`, () => {
      const hashes = migrations.map(({ sha256 }) => sha256)
      assert.deepEqual(hashes.slice(0, released[engine].length), released[engine])
      assert.ok(hashes.length - released[engine].length <= 1, 'one version at a time is in the making')
    })

  test('each has a store of its own, of both engines', () => {
    const files = readdirSync(storesFolder).filter(name => name.endsWith('.gz'))
    const expected = released.sqlite.flatMap((_, index) => [`${index + 1}.db.gz`, `${index + 1}.sql.gz`])
    assert.deepEqual(files.sort(), expected.sort())
  })

  test('PostgreSQL’s functions stand in the newest migration as npm run functions writes them', () => {
    const [, written] = ofPostgres.at(-1)?.sql.split(functionsMark) ?? []
    assert.equal(written, `${functions}\n`)
  })
})

for (const engine of ['sqlite', 'postgres'] as const)
  describe(`a store of an earlier version, on ${engine}`, () => {
    for (let version = 1; version <= released[engine].length; version++)
      test(`of version ${version} is migrated, and nothing is lost`, async t => {
        const { url, rows } = await restoreStore[engine](t, version)
        await assert.rejects(
          openReadStore(url),
          new RegExp(`has schema version ${version}, this Fatura needs \\d+. Run: fatura migrate`),
        )
        const invoices = await rows(
          'SELECT customer_id, id, summary FROM fatura.invoices ORDER BY customer_id, id',
        )
        const tokens = await rows('SELECT id, revoked_at FROM fatura.tokens ORDER BY id')
        const documents = await rows('SELECT count(*) AS n FROM fatura.documents')
        assert.equal(invoices.length, 574)
        assert.equal(tokens.length, 2)

        const newest = engine === 'sqlite' ? ofSqlite.length : ofPostgres.length
        assert.deepEqual(await migrateStore(url), { from: version, to: newest })
        assert.deepEqual(await migrateStore(url), { from: newest, to: newest })
        const [reader, writer] = [await openReadStore(url), await openWriteStore(url)]
        t.after(async () => {
          await reader.close()
          await writer.close()
        })
        for (const { customer_id, id, summary } of invoices)
          assert.equal((await reader.findInvoice(String(customer_id), String(id)))?.summary, summary)
        for (const { id, revoked_at } of tokens)
          assert.equal(String((await reader.findToken(String(id)))?.revoked_at), String(revoked_at))
        for (const { id, customers } of await writer.listTokens())
          for (const customer of customers ?? []) assert.ok(await reader.coversCustomer(id, customer))
        assert.ok((await rows('SELECT id FROM fatura.scopes')).length > 0)
        assert.deepEqual(await rows('SELECT count(*) AS n FROM fatura.documents'), documents)
        assert.equal(await writer.checkCounts(), 0)
        const query = { customer_id: 'cus_big', page: 1, page_size: 10 }
        assert.equal((await reader.listInvoices(query)).total, 520)
        assert.equal((await reader.listInvoices({ ...query, words: [['outraana', null]] })).total, 75)
        assert.equal(
          (await reader.listInvoices({ ...query, status: 'void', ix_status: 'settled' })).total,
          86,
        )
      })

    test('names that no invoice has any more are removed, also by a second run of a migration that was killed', async t => {
      const { url, rows } = await restoreStore[engine](t, 1)
      const before = await rows(
        'SELECT customer_id, party_id FROM fatura.parties ORDER BY customer_id, party_id',
      )
      const orphans = ['cus_a', 'cus_big', 'cus_z'].map(customer => `('${customer}', 7, 'gone')`).join(', ')
      await changeRows(url, `INSERT INTO fatura.parties (customer_id, party_id, text) VALUES ${orphans}`)
      await migrateStore(url)
      // As a kill leaves it behind the first step.
      await changeRows(url, "UPDATE fatura.migrations SET rewriting = 'cus_a' WHERE version = 2")
      await changeRows(
        url,
        `INSERT INTO fatura.parties (customer_id, party_id, text) VALUES ('cus_z', 8, 'gone')`,
      )
      await assert.rejects(openReadStore(url), /is not completely migrated/)
      const told: [string, boolean][] = []
      await migrateStore(url, (title, done, part) => told.push([title, done > 0 && part > 0 && part <= 1]))
      assert.deepEqual(told, [['removing names that no invoice has any more', true]])
      assert.deepEqual(
        await rows('SELECT customer_id, party_id FROM fatura.parties ORDER BY customer_id, party_id'),
        before,
      )
      await (await openReadStore(url)).close()
    })

    test('a version 1 of an unreleased checkout is refused, in words that tell what differs', async t => {
      for (const [harm, told] of [
        ['DROP TABLE fatura.journal', /it has no (table|column) journal/],
        [
          'ALTER TABLE fatura.parties ADD COLUMN more text',
          /(its table parties is another|it has a column parties.more)/,
        ],
      ] as const) {
        const { url, rows } = await restoreStore[engine](t, 1)
        await changeRows(url, harm)
        const tables = () => rows('SELECT count(*) AS n FROM fatura.invoices')
        await assert.rejects(migrateStore(url), told)
        await assert.rejects(migrateStore(url), /Start with a new store/)
        assert.equal(Number((await tables())[0]?.n), 574, 'nothing was touched')
      }
    })

    test('a process that runs while a newer Fatura migrates writes nothing any more, and reads what is still there', async t => {
      const { url, rows } = await restoreStore[engine](t, 1)
      const { to } = await migrateStore(url)
      const [reader, writer] = [await openReadStore(url), await openWriteStore(url)]
      t.after(async () => {
        await reader.close()
        await writer.close()
      })
      const save = () =>
        writer.transaction(tx => tx.saveInvoices([{ invoice: makeInvoice({ id: 'in_late' }), lines: null }]))
      await save()
      const before = await rows('SELECT count(*) AS n FROM fatura.invoices')
      await changeRows(url, `INSERT INTO fatura.migrations (version, sha256) VALUES (${to + 1}, 'newer')`)
      if (engine === 'sqlite') await changeRows(url, `PRAGMA user_version = ${to + 1}`)
      const told = new RegExp(`has schema version ${to + 1}, newer than this Fatura's ${to}. Upgrade Fatura.`)
      await assert.rejects(save(), told)
      await assert.rejects(migrateStore(url), told)
      assert.deepEqual(await rows('SELECT count(*) AS n FROM fatura.invoices'), before)
      const query = { customer_id: 'cus_big', page: 2, page_size: 10 }
      assert.equal((await reader.listInvoices(query)).total, 520)
      await changeRows(
        url,
        engine === 'sqlite'
          ? 'DROP TABLE fatura.invoice_lines'
          : 'DROP FUNCTION fatura.find_invoice(text, text)',
      )
      await assert.rejects(reader.findInvoice('cus_big', 'in_late'), error => {
        assert.ok(error instanceof StoreUnavailable)
        assert.match(error.message, /changed by a newer Fatura while this process ran. Upgrade it/)
        return true
      })
      assert.equal((await reader.listInvoices(query)).total, 520, 'the rest is served on')
    })

    test('the newest version of another checkout is refused by everything that opens a store', async t => {
      const { url } = await restoreStore[engine](t, 1)
      await migrateStore(url)
      await changeRows(url, "UPDATE fatura.migrations SET sha256 = 'another'")
      for (const open of [openReadStore, openWriteStore, migrateStore])
        await assert.rejects(open(url), /has a schema version \d that is not this Fatura's/)
    })
  })
