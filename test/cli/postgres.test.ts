/** The commands on PostgreSQL: nothing changes for people but the address. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { createCli, createStoredToken, eventually, ndjson } from '../support/clients/cli.ts'
import { createDatabase, engines, runSql } from '../support/databases/engines.ts'
import { makeInvoice, makeLine, makeRecord } from '../support/worlds/records.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
const list = '/api/v1/client/cus_ana/invoices'

describe('fatura on PostgreSQL', { concurrency: 2 }, () => {
  test('runs migrate, import, token and serve as on SQLite when only DATABASE_URL differs', async t => {
    const cli = await createCli(t)
    const env = { DATABASE_URL: await createDatabase(t) }
    for (const args of [
      ['serve', '--port', '0'],
      ['token', 'list'],
      ['import', '-'],
    ]) {
      const early = await cli.run(args, { env })
      assert.deepEqual([early.code, early.stdout], [1, ''], args.join(' '))
      assert.match(early.stderr, /^fatura: The database has schema version 0, .*Run: fatura migrate\n$/)
    }
    const { rows } = await runSql(env.DATABASE_URL, "SELECT to_regnamespace('fatura') AS schema")
    assert.deepEqual(rows, [{ schema: null }], 'serve alone makes none')
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
    await eventually('it is refused', async () => (await api.get(list, token)).status === 401)
    assert.equal((await api.stop('SIGTERM')).code, 0)
  })

  test('creates the schema with serve --migrate', async t => {
    const cli = await createCli(t)
    const env = { DATABASE_URL: await createDatabase(t) }
    const api = await cli.serve(['--migrate'], { env })
    assert.equal((await api.get('/ready')).status, 200)
  })

  test('reads records, tokens and freshness from DATABASE_READ_URL', async t => {
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
    const token = await createStoredToken(replica)
    const api = await cli.serve([], { env: { DATABASE_URL: primary, DATABASE_READ_URL: replica } })
    const { json, headers } = await api.get(list, token)
    assert.deepEqual([json.total, headers.get('fatura-synced-at')], [1, '2026-01-01T00:00:00.000Z'])
  })

  test('shows no password in a message', async t => {
    const cli = await createCli(t)
    for (const url of [
      'postgres://fatura:s3cret@127.0.0.1:1/none',
      'postgres://fatura:s3cret@%zz/none',
      'postgres://',
    ])
      for (const args of [['migrate'], ['serve', '--port', '0'], ['token', 'list']]) {
        const { code, stdout, stderr } = await cli.run(args, {
          env: { DATABASE_URL: url },
        })
        assert.deepEqual([code, stdout], [1, ''], `${url} ${stderr}`)
        assert.match(stderr, /^fatura: [^\n]+\n$/)
        assert.doesNotMatch(stderr, /s3cret/)
      }
  })
})
