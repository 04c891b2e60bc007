/** Text that a store cannot hold is refused alike on every engine, before anything is written; and so is a server that cannot hold it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mapDocument } from '../../src/sources/invoicexpress/map-document.ts'
import { migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { whatServerLacks } from '../../src/store/facts.ts'
import { StoreError } from '../../src/store/store.ts'
import { assertOneLine, createCli, ndjson } from '../support/clients/cli.ts'
import { engines, postgresServer, runSql } from '../support/databases/engines.ts'
import { makeInvoice, makeRecord, withDocument } from '../support/worlds/records.ts'

/** Text that no server can compress. */
const noise = (characters: number, from = 0x4e00) =>
  String.fromCodePoint(
    ...Array.from({ length: characters }, (_, i) => from + ((i * 7919 + i * i * 31) % 20_000)),
  )

for (const engine of engines)
  describe(`unusual input on ${engine.name}`, () => {
    test('an ix_status over 255 characters is refused by import, and one of 255 is stored and found', async t => {
      const cli = await createCli(t)
      const env = { DATABASE_URL: await engine.createStore(t) }
      const [long, longest] = [noise(3_000), noise(255, 0x20000)]
      const line = (id: string, ix_status: string) => makeInvoice({ ...withDocument, id, ix_status })
      const refused = await cli.run(['import', '-'], {
        env,
        input: ndjson(line('in_1', 'x'), line('in_2', long)),
      })
      assert.equal(refused.code, 1)
      assert.match(
        refused.stderr,
        /^line 2: ix_status must be text of at most 255 characters, without NUL, or null/,
      )
      const many = Array.from({ length: 520 }, (_, i) => ({
        ...line(`in_${'i'.repeat(240)}${i}`, longest),
        number: noise(400),
      }))
      const taken = await cli.run(['import', '-'], { env, input: ndjson(...many) })
      assert.equal(taken.code, 0, taken.stderr)
      const reader = await openReadStore(env.DATABASE_URL)
      const page = await reader.listInvoices({
        customer_id: 'cus_ana',
        page: 2,
        page_size: 10,
        ix_status: longest,
      })
      await reader.close()
      assert.equal(page.total, 520)
    })

    test('a document’s reference of any length is stored and found', async t => {
      const store = await openWriteStore(await engine.createStore(t))
      t.after(() => store.close())
      const reference = noise(5_000)
      const document = mapDocument({ id: 7, type: 'Invoice', status: 'final', reference, total: 1 })
      assert.ok(document)
      await store.transaction(tx => tx.saveDocuments([document], 1))
      assert.deepEqual(
        (await store.findDocuments({ ids: [], references: [reference] })).map(({ id }) => id),
        [7],
      )
    })
  })

test('a document whose status has more than 255 characters is refused', () => {
  const payload = { id: 7, type: 'Invoice', reference: null, total: 1 }
  assert.throws(() => mapDocument({ ...payload, status: 'x'.repeat(256) }), /does not fit/)
  assert.equal(mapDocument({ ...payload, status: 'x'.repeat(255) })?.status.length, 255)
})

describe('the requirements for PostgreSQL', () => {
  test('refuse every encoding but UTF-8 in migrate, and doctor reports it', async t => {
    const cli = await createCli(t)
    const name = `fatura_latin1_${process.pid}`
    await runSql(
      postgresServer(),
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'`,
    )
    t.after(() => runSql(postgresServer(), `DROP DATABASE ${name} WITH (FORCE)`))
    const env = { DATABASE_URL: postgresServer() + name }
    assertOneLine(
      await cli.run(['migrate'], { env }),
      /encoding is LATIN1, and Fatura needs UTF8/,
      /ENCODING 'UTF8'/,
    )
    const { rows } = await runSql(env.DATABASE_URL, "SELECT to_regnamespace('fatura') AS made")
    assert.deepEqual(rows, [{ made: null }])
    const { stdout } = await cli.run(['doctor', '--json', '--sample', '0'], { env })
    const findings = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    const { result, detail } = findings.find(({ check }) => check === 'Database')
    assert.deepEqual([result, detail], ['FAIL', "the database's encoding is LATIN1, and Fatura needs UTF8"])
  })

  test('refuse version 14, and accept versions 15 to 18', () => {
    const lacks = (major: number) => whatServerLacks({ major, encoding: 'UTF8' })
    assert.match(lacks(14)?.found ?? '', /PostgreSQL 14 is too old/)
    for (const major of [15, 16, 17, 18]) assert.equal(lacks(major), null)
  })

  test('are met by the server of the tests', async t => {
    const url = await (
      engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
    ).createStore(t)
    assert.deepEqual((await migrateStore(url)).from, (await migrateStore(url)).to)
  })
})

test('a value that is too long for an index of PostgreSQL is reported in one line', async t => {
  const url = await (engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]).createStore(
    t,
  )
  const store = await openWriteStore(url)
  t.after(() => store.close())
  await assert.rejects(
    store.transaction(tx => tx.saveInvoices([makeRecord({ ...withDocument, ix_status: noise(3_000) })])),
    (error: Error) => error instanceof StoreError && /cannot store a record/.test(error.message),
  )
})
