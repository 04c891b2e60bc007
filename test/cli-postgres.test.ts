/** The commands on PostgreSQL: nothing changes for people but the address. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { openWriteStore } from '../src/store/open-store.ts'
import { createCli, ndjson } from './support/cli.ts'
import { engines, postgresServer, runSql } from './support/engines.ts'
import { makeInvoice, makeLine, makeRecord } from './support/records.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
const list = '/api/v1/client/cus_ana/invoices'

async function createEmptyDatabase(t: TestContext): Promise<string> {
  const name = `fatura_empty_${process.pid}_${Date.now()}`
  await runSql(postgresServer(), `CREATE DATABASE ${name}`)
  t.after(() => runSql(postgresServer(), `DROP DATABASE ${name} WITH (FORCE)`))
  return postgresServer() + name
}

describe('fatura on postgres', () => {
  test('migrate, import, token and serve work as on a file; DATABASE_URL alone switches', async t => {
    const cli = await createCli(t)
    const env = { DATABASE_URL: await createEmptyDatabase(t) }
    for (const args of [
      ['serve', '--port', '0'],
      ['token', 'list'],
      ['import', '-'],
    ]) {
      const early = await cli.run(args, { env })
      assert.deepEqual([early.code, early.stdout], [1, ''], args.join(' '))
      assert.match(early.stderr, /^fatura: The database has schema version 0, .*Run: fatura migrate\n$/)
    }
    assert.match(
      (await cli.run(['migrate'], { env })).stdout,
      /^Migrated the schema from version 0 to \d+\.\n$/,
    )
    assert.match((await cli.run(['migrate'], { env })).stdout, /^The schema is up to date/)
    const input = ndjson({ ...makeInvoice({ id: 'in_1' }), lines: [makeLine()] }, makeInvoice({ id: 'in_2' }))
    const first = await cli.run(['import', '-'], { env, input })
    assert.match(first.stdout, /^Imported 2 invoices: 2 new or changed, 0 as before/, first.stderr)
    assert.match((await cli.run(['import', '-'], { env, input })).stdout, /0 new or changed, 2 as before/)
    const refused = await cli.run(['import', '-'], {
      env,
      input: `${ndjson(makeInvoice({ id: 'in_3' }))}{}\n`,
    })
    assert.equal(refused.code, 1)
    const token = (await cli.run(['token', 'create', '--customer', 'cus_ana'], { env })).stdout.trim()
    const api = await cli.serve([], { env })
    assert.equal((await api.get(list, token)).json.total, 2)
    const { id } = (await api.get(`${list.slice(0, -1)}/in_1`, token)).json
    assert.equal(id, 'in_1')
    const revoked = await cli.run(['token', 'revoke', token.slice(0, 16)], { env })
    assert.equal(revoked.code, 0, revoked.stderr)
    const until = Date.now() + 5_000
    while ((await api.get(list, token)).status !== 401) assert.ok(Date.now() < until, 'seen within 5 s')
    assert.equal((await api.stop('SIGTERM')).code, 0)
  })

  test('serve --migrate creates the schema; serve alone never does', async t => {
    const cli = await createCli(t)
    const env = { DATABASE_URL: await createEmptyDatabase(t) }
    assert.equal((await cli.run(['serve', '--port', '0'], { env })).code, 1)
    const { rows } = await runSql(env.DATABASE_URL, "SELECT to_regnamespace('fatura') AS schema")
    assert.deepEqual(rows, [{ schema: null }])
    const api = await cli.serve(['--migrate'], { env })
    assert.equal((await api.get('/ready')).status, 200)
  })

  test('DATABASE_READ_URL is where the API reads: its records, its tokens, its freshness', async t => {
    const cli = await createCli(t)
    const [primary, replica] = [await postgres.createStore(t), await postgres.createStore(t)]
    for (const [url, day, records] of [
      [primary, 2, [makeRecord({ id: 'in_1' }), makeRecord({ id: 'in_2' })]],
      [replica, 1, [makeRecord({ id: 'in_1' })]],
    ] as const) {
      const store = await openWriteStore(url)
      await store.transaction(async tx => {
        await tx.saveInvoices(records)
        await tx.saveSuccess('import', Date.UTC(2026, 0, day))
      })
      await store.close()
    }
    const token = (
      await cli.run(['token', 'create', '--all-customers', '--database-url', replica])
    ).stdout.trim()
    const api = await cli.serve([], { env: { DATABASE_URL: primary, DATABASE_READ_URL: replica } })
    const { json, headers } = await api.get(list, token)
    assert.deepEqual([json.total, headers.get('fatura-synced-at')], [1, '2026-01-01T00:00:00.000Z'])
  })

  test('a password never appears in a message', async t => {
    const cli = await createCli(t)
    for (const url of [
      'postgres://fatura:s3cret@127.0.0.1:1/none',
      'postgres://fatura:s3cret@%zz/none',
      'postgres://',
    ])
      for (const args of [['migrate'], ['serve', '--port', '0'], ['token', 'list']]) {
        const { code, stdout, stderr } = await cli.run(args, { env: { DATABASE_URL: url } })
        assert.deepEqual([code, stdout], [1, ''], `${url} ${stderr}`)
        assert.match(stderr, /^fatura: [^\n]+\n$/)
        assert.doesNotMatch(stderr, /s3cret/)
      }
  })
})

describe('fatura copy', () => {
  for (const [from, to] of [engines, [...engines].reverse()] as const) {
    test(`from ${from?.name} to ${to?.name}: everything arrives, is compared, and a second run writes nothing`, async t => {
      const cli = await createCli(t)
      const source = (await from?.createStore(t)) ?? ''
      const target = (await to?.createStore(t)) ?? ''
      const store = await openWriteStore(source)
      const records = Array.from({ length: 2_345 }, (_, i) =>
        makeRecord(
          { customer_id: `cus_${i % 7}`, number: `nº ${i} "é" \\` },
          i % 2 === 0 ? [makeLine()] : null,
        ),
      )
      await store.transaction(async tx => {
        await tx.saveInvoices(records.slice(0, 1_000))
        await tx.saveSuccess('import', Date.UTC(2026, 0, 1))
      })
      const token = (
        await cli.run(['token', 'create', '--customer', 'cus_1', '--database-url', source])
      ).stdout.trim()

      const first = await cli.run(['copy', source, target])
      assert.equal(first.code, 0, first.stderr)
      assert.match(
        first.stdout,
        /^Copied: 1000 invoices written, 0 there already .*\nCompared: 1000 invoices on both sides, sha256 [0-9a-f]{64}\.\n$/,
      )

      // As if the first run had been cut off: the second goes on with what is missing.
      await store.transaction(tx => tx.saveInvoices(records))
      await store.transaction(tx => tx.deleteInvoice('cus_1', String(records[1]?.invoice.id)))
      await store.close()
      const extra = await cli.run(['copy', source, target])
      assert.equal(extra.code, 1)
      assert.match(extra.stdout, /^Copied: 1345 invoices written, 999 there already/)
      assert.match(
        extra.stderr,
        /The target holds 1 more than the source; what it holds alone was left there/,
      )
      const other = await openWriteStore(target)
      await other.transaction(tx => tx.deleteInvoice('cus_1', String(records[1]?.invoice.id)))
      await other.close()
      const again = await cli.run(['copy', source, target])
      assert.match(again.stdout, /^Copied: 0 invoices written, 2344 there already/, again.stderr)

      const [a, b] = await Promise.all(
        [source, target].map(url => cli.serve([], { env: { DATABASE_URL: url } })),
      )
      const path = '/api/v1/client/cus_1/invoices?page_size=50&page=3'
      const [left, right] = [await a?.get(path, token), await b?.get(path, token)]
      assert.equal(left?.status, 200)
      assert.equal(right?.text, left?.text)
      assert.equal(right?.headers.get('fatura-synced-at'), '2026-01-01T00:00:00.000Z')
    })
  }

  test('killed at any moment, it goes on when it is run again, and ends equal', async t => {
    const cli = await createCli(t)
    const [source, target] = await Promise.all(engines.map(engine => engine.createStore(t)))
    const store = await openWriteStore(String(source))
    await store.transaction(tx =>
      tx.saveInvoices(Array.from({ length: 8_000 }, (_, i) => makeRecord({ customer_id: `cus_${i % 50}` }))),
    )
    await store.close()
    let kills = 0
    for (const delay of [250, 400, 550, 700, 850]) {
      const program = cli.start(['copy', String(source), String(target)])
      await new Promise(resolve => setTimeout(resolve, delay))
      if ((await program.stop('SIGKILL')).signal === 'SIGKILL') kills++
    }
    assert.ok(kills > 0)
    const { code, stdout, stderr } = await cli.run(['copy', String(source), String(target)])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /Compared: 8000 invoices on both sides/)
  })

  test('refuses to copy a store onto itself, or from nowhere', async t => {
    const cli = await createCli(t)
    assert.match((await cli.run(['copy', 'sqlite:a.db', 'sqlite:a.db'])).stderr, /the same/)
    assert.match(
      (await cli.run(['copy', 'sqlite:a.db', 'sqlite:b.db'])).stderr,
      /There is no database at a\.db/,
    )
    assert.equal((await cli.run(['copy', 'sqlite:a.db'])).code, 2)
  })
})
