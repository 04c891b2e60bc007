/** The store's contract, where HTTP does not reach: transactions, read-only handles, migrations. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { searchWords } from '../../src/store/sql/search.ts'
import { openReadOnly, openReadWrite } from '../../src/store/sqlite/database.ts'
import { StoreError } from '../../src/store/store.ts'
import { eventually } from '../support/clients/cli.ts'
import { createFolder, engines } from '../support/databases/engines.ts'
import { readRows } from '../support/databases/store-rows.ts'
import { makeLine, makeRecord } from '../support/worlds/records.ts'

const question = { customer_id: 'cus_ana', page: 1, page_size: 50 }

for (const engine of engines) {
  describe(`store on ${engine.name}`, () => {
    test('a transaction is visible as a whole or not at all, and a failed one stores nothing', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      const total = async () => (await reader.listInvoices(question)).total
      await writer.transaction(async tx => {
        await tx.saveInvoices([makeRecord(), makeRecord()])
        assert.equal(await total(), 0)
      })
      assert.equal(await total(), 2)
      const failure = writer.transaction(async tx => {
        await tx.saveInvoices([makeRecord({ id: 'in_never' })])
        await tx.saveSuccess('import', 1)
        throw new Error('on the way')
      })
      await assert.rejects(failure, /on the way/)
      assert.equal(await total(), 2)
      assert.equal((await reader.readSnapshot('cus_ana')).synced_at, null)
      await writer.transaction(tx => tx.saveInvoices([makeRecord()]))
      assert.equal(await total(), 3)
      await reader.close()
      await writer.close()
    })

    test('saving returns the number of records that differ from the stored ones', async t => {
      const writer = await openWriteStore(await engine.createStore(t))
      const [a, b] = [makeRecord({}, [makeLine()]), makeRecord()]
      const save = (...records: (typeof a)[]) => writer.transaction(tx => tx.saveInvoices(records))
      assert.equal(await save(a, b), 2)
      assert.equal(await save(a, b), 0)
      assert.equal(await save(a, { ...b, lines: [] }), 1)
      assert.equal(await save({ ...a, lines: null }, b), 2)
      assert.equal(await save({ invoice: { ...a.invoice, status: 'void' }, lines: null }), 1)
      assert.equal(await save(), 0)
      await writer.close()
    })

    test('texts with quotes, special characters or no characters are read back unchanged', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      const odd = ['"', '\\', '\r', '\f', '\n\t', '{}', 'a,b', 'NULL', '--', '"\\"\r\f"', '\u2028', 'çã😀']
      const records = odd.map((text, i) =>
        makeRecord(
          {
            id: text,
            number: text,
            display_name: text,
            customer_tax_id: text,
            ix_status: i % 2 ? text : null,
          },
          i % 3 === 0 ? null : [makeLine({ description: text })],
        ),
      )
      const empty = makeRecord({ id: '---', number: '', display_name: '', customer_name: '' })
      const save = (...some: (typeof empty)[]) => writer.transaction(tx => tx.saveInvoices(some))
      const check = async (customer_id: string) => {
        for (const { invoice, lines } of [...records, empty]) {
          const found = await reader.findInvoice(customer_id, invoice.id)
          assert.deepEqual(JSON.parse(found?.summary ?? ''), { ...invoice, customer_id })
          assert.equal(found?.lines ?? null, lines === null ? null : JSON.stringify(lines))
        }
      }
      const of = (customer_id: string) =>
        [...records, empty].map(record => ({ ...record, invoice: { ...record.invoice, customer_id } }))
      assert.equal(await save(...of('cus_together')), odd.length + 1)
      assert.equal(await save(...of('cus_together')), 0)
      await check('cus_together')
      for (const record of of('cus_apart')) assert.equal(await save(record), 1)
      for (const record of of('cus_apart')) assert.equal(await save(record), 0)
      await check('cus_apart')
      await reader.close()
      await writer.close()
    })

    test('the freshness is that of the oldest stream, once every record was read', async t => {
      const url = await engine.createStore(t)
      const writer = await openWriteStore(url)
      const freshAfter = async (name: string, succeeded_at: number | null) => {
        await writer.transaction(tx =>
          tx.saveStream({ name, cursor: null, succeeded_at, failed_at: null, error: null }),
        )
        return Number((await readRows(url, 'SELECT synced_at FROM fatura.freshness'))[0]?.synced_at ?? 0)
      }
      const steps: [name: string, succeededAt: number | null, freshAfter: number][] = [
        ['import', 9_000, 9_000],
        ['stripe:backfill', null, 0],
        ['stripe:backfill', 1_000, 1_000],
        ['stripe:events', null, 0],
        ['stripe:events', 3_000, 3_000],
        ['stripe:events', 4_000, 4_000],
        ['import', 2_000, 4_000],
        ['stripe:relist', null, 4_000],
        ['stripe:unsettled', 10, 4_000],
        ['another:stream', 10, 4_000],
        ['ix:all', null, 0],
        ['ix:all', 2_500, 2_500],
        ['ix:recent', 2_400, 2_400],
        ['ix:open', 2_300, 2_300],
        ['stripe:backfill', null, 0],
      ]
      for (const [name, at, fresh] of steps) assert.equal(await freshAfter(name, at), fresh, `${name} ${at}`)
      await freshAfter('stripe:backfill', 1)
      const reader = await openReadStore(url)
      assert.equal((await reader.readSnapshot('cus_ana')).synced_at, 2_300)
      await freshAfter('ix:open', 3_000)
      await eventually('it is told', async () => (await reader.listInvoices(question)).synced_at === 2_400)
      assert.equal((await reader.readFreshness()).synced_at, 2_400)
      await reader.close()
      await writer.close()
    })

    test('a customer’s version only rises, and is 0 without invoices', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      const version = async () => (await reader.readSnapshot('cus_ana')).version
      assert.equal(await version(), 0)
      let last = 0
      for (let i = 0; i < 50; i++) {
        await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1' })]))
        const now = await version()
        assert.ok(now > last, `${now} after ${last}`)
        assert.equal((await reader.listInvoices(question)).version, now)
        last = now
      }
      await reader.close()
      await writer.close()
    })

    test('a list’s page, total and version are of one moment during writes', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      // Every transaction adds one paid and one open invoice: any snapshot holds as many of the one as of the other.
      const writing = (async () => {
        for (let i = 0; i < 200; i++)
          await writer.transaction(async tx => {
            await tx.saveInvoices([makeRecord({ status: 'paid' })])
            await new Promise(resolve => setImmediate(resolve))
            await tx.saveInvoices([makeRecord({ status: 'open' })])
          })
      })()
      let seen = 0
      while (seen < 400) {
        const page = await reader.listInvoices({ ...question, page: 1_000_000 })
        const rows = JSON.parse(`[${page.summaries}]`)
        assert.equal(page.total % 2, 0)
        assert.equal(page.page, Math.max(1, Math.ceil(page.total / 50)))
        assert.equal(rows.length, page.total === 0 ? 0 : page.total - (page.page - 1) * 50)
        seen = page.total
        await new Promise(resolve => setImmediate(resolve))
      }
      await writing
      await reader.close()
      await writer.close()
    })

    /** The part that tokens and keys share. */
    const forTwo = { name: "Ana's", customers: ['cus_a', 'cus_b'], created_at: 1, revoked_at: null }

    test('tokens are read back as saved, newest first', async t => {
      const url = await engine.createStore(t)
      const writer = await openWriteStore(url)
      const token = { id: 'fat_a', hash: 'h', expires_at: 5, ...forTwo }
      const other = { ...token, id: 'fat_b', customers: null, created_at: 2, expires_at: null }
      await writer.saveToken(token)
      await writer.saveToken(other)
      assert.deepEqual(await writer.listTokens(), [other, token])
      const reader = await openReadStore(url)
      const access = { id: 'fat_a', hash: 'h', every_customer: false, expires_at: 5, revoked_at: null }
      assert.deepEqual({ ...(await reader.findToken('fat_a')) }, access)
      assert.equal((await reader.findToken('fat_b'))?.every_customer, true)
      assert.equal(await reader.findToken('fat_c'), null)
      for (const [id, customer, covered] of [
        ['fat_a', 'cus_a', true],
        ['fat_a', 'cus_b', true],
        ['fat_a', 'cus_c', false],
        ['fat_b', 'cus_a', false],
        ['fat_c', 'cus_a', false],
      ] as const)
        assert.equal(await reader.coversCustomer(id, customer), covered, `${id} ${customer}`)
      await assert.rejects(writer.saveToken({ ...other, id: 'fat_a' }), 'a token is never replaced')
      const half = { ...token, id: 'fat_half', customers: [null as never] }
      await assert.rejects(writer.saveToken(half), 'a customer that cannot be stored')
      assert.equal(await reader.findToken('fat_half'), null, 'a token and its customers are saved together')
      assert.equal(await reader.coversCustomer('fat_a', 'cus_a'), true)
      await reader.close()
      await writer.close()
    })

    test('keys are read back as saved, newest first, and keep their first revocation', async t => {
      const url = await engine.createStore(t)
      const writer = await openWriteStore(url)
      const key = { kid: 'key_a', x: 'h', ...forTwo }
      const other = { ...key, kid: 'key_b', customers: null, created_at: 2 }
      await writer.saveKey(key)
      await writer.saveKey(other)
      assert.deepEqual(
        (await writer.listKeys()).map(each => ({ ...each })),
        [other, key],
      )
      const reader = await openReadStore(url)
      const access = { kid: 'key_a', x: 'h', every_customer: false, revoked_at: null }
      assert.deepEqual({ ...(await reader.findKey('key_a')) }, access)
      assert.equal((await reader.findKey('key_b'))?.every_customer, true)
      assert.deepEqual(
        [await reader.coversCustomer('key_a', 'cus_a'), await reader.coversCustomer('key_a', 'cus_c')],
        [true, false],
      )
      assert.equal(await reader.findKey('key_c'), null)
      await assert.rejects(writer.saveKey({ ...other, kid: 'key_a' }), 'a key is never replaced')
      assert.equal(await writer.revokeKey('key_c', 3), null)
      assert.equal((await writer.revokeKey('key_a', 3))?.revoked_at, 3)
      assert.equal((await writer.revokeKey('key_a', 4))?.revoked_at, 3)
      assert.equal((await reader.findKey('key_a'))?.revoked_at, 3)
      assert.equal((await reader.findKey('key_b'))?.revoked_at, null)
      await reader.close()
      await writer.close()
    })
  })
}

describe('a SQLite store', () => {
  const path = async (t: Parameters<typeof createFolder>[0]) =>
    join(await createFolder(t), 'deep/er/fatura.db')

  test('the API’s handle cannot write, because its connection is read-only', async t => {
    const file = await path(t)
    await migrateStore(`sqlite:${file}`)
    const db = openReadOnly(file)
    for (const sql of [
      'DELETE FROM invoices',
      "INSERT INTO streams (name) VALUES ('x')",
      'DROP TABLE tokens',
      'PRAGMA user_version = 9',
    ])
      assert.throws(() => db.exec(sql), /readonly|read-only/i, sql)
    assert.throws(() => db.exec('PRAGMA query_only = OFF; DELETE FROM invoices'), /readonly/i)
    db.close()
  })

  test('the writer commits durably, by WAL with synchronous=FULL', async t => {
    const file = await path(t)
    await migrateStore(`sqlite:${file}`)
    const db = await openReadWrite(file, { create: false })
    assert.equal(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal')
    assert.equal(db.prepare('PRAGMA synchronous').get()?.synchronous, 2)
    db.close()
  })

  test('migrations can be repeated, and a failed one keeps the earlier version', async t => {
    const file = await path(t)
    const first = await migrateStore(`sqlite:${file}`)
    assert.equal(first.from, 0)
    assert.deepEqual(await migrateStore(`sqlite:${file}`), { from: first.to, to: first.to })
    // A table in the way makes the first migration fail half-way: nothing of it stays.
    const db = new DatabaseSync(file)
    const tables = () => db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all().length
    const others = db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'tokens'")
      .all()
    for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").all())
      db.exec(`DROP VIEW ${name}`)
    for (const { name } of others) db.exec(`DROP TABLE ${name}`)
    db.exec('PRAGMA user_version = 0')
    assert.equal(tables(), 1)
    await assert.rejects(migrateStore(`sqlite:${file}`), StoreError)
    assert.equal(tables(), 1)
    assert.equal(db.prepare('PRAGMA user_version').get()?.user_version, 0)
    db.exec('DROP TABLE tokens')
    assert.deepEqual(await migrateStore(`sqlite:${file}`), { from: 0, to: first.to })
    db.close()
  })

  test('a file that cannot be opened is refused with a line of advice', async t => {
    const folder = await createFolder(t)
    const file = join(folder, 'fatura.db')
    await assert.rejects(openReadStore(`sqlite:${file}`), /There is no database at .*fatura migrate/)
    await assert.rejects(openWriteStore(`sqlite:${file}`), /There is no database at .*fatura migrate/)
    for (const url of ['', 'sqlite:', 'sqlite::memory:', 'mysql://x', 'data/fatura.db'])
      await assert.rejects(openReadStore(url), /DATABASE_URL.* must be sqlite:/, url)
    await writeFile(file, 'this is no database, but it is long enough to be looked at'.repeat(100))
    for (const open of [openReadStore, migrateStore])
      await assert.rejects(open(`sqlite:${file}`), /is not a SQLite database/)
    const foreign = join(folder, 'foreign.db')
    const db = new DatabaseSync(foreign)
    db.exec('CREATE TABLE theirs (x)')
    db.close()
    for (const open of [openReadStore, openWriteStore, migrateStore])
      await assert.rejects(open(`sqlite:${foreign}`), /belongs to another program/)
    await mkdir(join(folder, 'dir.db'))
    await assert.rejects(
      migrateStore(`sqlite:${join(folder, 'dir.db')}`),
      /Cannot open the database|is a folder/,
    )
    await assert.rejects(migrateStore(`sqlite:${join(file, 'below/a/file.db')}`), /Cannot create the folder/)
  })

  test('a schema that is too old or too new stops the start', async t => {
    const file = await path(t)
    const { to } = await migrateStore(`sqlite:${file}`)
    const db = new DatabaseSync(file)
    db.exec(`PRAGMA user_version = ${to + 1}`)
    for (const open of [openReadStore, openWriteStore, migrateStore])
      await assert.rejects(open(`sqlite:${file}`), /newer than this Fatura.*Upgrade/)
    db.exec('PRAGMA user_version = 0')
    for (const open of [openReadStore, openWriteStore])
      await assert.rejects(open(`sqlite:${file}`), /Run: fatura migrate/)
    db.close()
  })

  test('a list and a search count and skip rows in the index alone', async t => {
    const file = await path(t)
    await migrateStore(`sqlite:${file}`)
    const { matchingRows } = await import('../../src/store/sqlite/read-pages.ts')
    const db = openReadOnly(file)
    const words = searchWords('ana 12')
    for (const filters of [
      { status: 'paid' },
      { ix_status: 'settled' },
      { issued_from: 0 },
      { words },
    ] as const) {
      const { from, order, values } = matchingRows({ ...question, ...filters, issued_before: 1 })
      const plan = db.prepare(`EXPLAIN QUERY PLAN SELECT rowid ${from} ${order} LIMIT 9`).all(...values)
      const steps = plan.map(row => String(row.detail))
      assert.equal(steps.length, 1, steps.join('\n'))
      assert.match(steps[0] ?? '', /USING COVERING INDEX invoices_in_order \(customer_id=\?/)
    }
    db.close()
  })
})
