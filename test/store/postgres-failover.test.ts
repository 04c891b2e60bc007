/** Two PostgreSQL servers, of which one follows the other: addresses with both, a failover, and a former primary that comes back. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { findAddressProblem, migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { StoreError, StoreUnavailable, type WriteStore } from '../../src/store/store.ts'
import { createCli, createStoredToken, eventually } from '../support/cli.ts'
import { runSql } from '../support/engines.ts'
import { createPostgresServer, type PostgresServer } from '../support/postgres-server.ts'
import { makeRecord } from '../support/records.ts'

let [first, second]: PostgresServer[] = []
const name = 'fatura'

before(async () => {
  first = await createPostgresServer()
  await first.start()
  await runSql(`${first.url}postgres`, `CREATE DATABASE ${name}`)
  await migrateStore(first.url + name)
  await first.stop()
  second = await createPostgresServer([], 'scram-sha-256', first)
  for (const server of [first, second]) await server.start()
})

after(async () => {
  for (const server of [first, second]) {
    await server?.stop()
    await server?.remove()
  }
})

const both = (one: PostgresServer, other: PostgresServer, attrs = '') =>
  `postgres://postgres:test@127.0.0.1:${one.port},127.0.0.1:${other.port}/${name}${attrs && `?target_session_attrs=${attrs}`}`

const write = (store: WriteStore, total_cents: number, at: number) =>
  store.transaction(async tx => {
    await tx.saveInvoices([makeRecord({ id: 'in_1', total_cents })])
    await tx.saveSuccess('import', at)
  })

const totalAt = async (store: Awaited<ReturnType<typeof openReadStore>>) =>
  JSON.parse((await store.findInvoice('cus_ana', 'in_1'))?.summary ?? '{}').total_cents as number

describe('an address with two hosts', () => {
  test('is one; what it wants is one of what libpq knows', () => {
    assert.equal(findAddressProblem('postgres://u:p@a:1,b:2/name?target_session_attrs=read-write'), null)
    assert.equal(findAddressProblem('postgres://a,b/name'), null)
    assert.match(String(findAddressProblem('postgres://a,b/name?target_session_attrs=best')), /read-write/)
    assert.match(String(findAddressProblem('postgres://a,b:x/name')), /commas/)
  })

  test('leads writers to the one that takes writes, through a failover; a former primary that is back gets none', async t => {
    const [a, b] = [first as PostgresServer, second as PostgresServer]
    // The standby is named first.
    const writer = await openWriteStore(both(b, a))
    t.after(() => writer.close())
    await write(writer, 1, 1_000)
    const reader = await openReadStore(both(b, a, 'read-write'))
    const standby = await openReadStore(both(a, b, 'standby'))
    t.after(() => Promise.all([reader.close(), standby.close()]))
    assert.equal(await totalAt(reader), 1)
    await eventually('the standby has it', async () => (await totalAt(standby)) === 1)
    const token = await createStoredToken(a.url + name, null)
    const cli = await createCli(t)
    const api = await cli.serve([], {
      env: { DATABASE_URL: both(a, b), DATABASE_READ_URL: `${a.url}${name},${b.url}${name}` },
    })
    const list = '/api/v1/client/cus_ana/invoices'
    assert.equal((await api.get(list, token)).status, 200)

    await a.stop()
    await assert.rejects(openWriteStore(both(a, b)), StoreUnavailable)
    await runSql(b.url + name, 'SELECT pg_promote()')
    const isWritten = (total: number, at: number) =>
      write(writer, total, at).then(
        () => true,
        error => {
          assert.ok(error instanceof StoreError, String(error))
          return false
        },
      )
    await eventually('the new primary is written to', () => isWritten(2, Date.now() + 60_000))
    await eventually('it is read from', async () => (await totalAt(reader).catch(() => 0)) === 2)

    await a.start()
    const again = await openWriteStore(both(a, b, 'primary'))
    t.after(() => again.close())
    await write(again, 3, Date.now() + 120_000)
    const seen = async () => {
      const { status, json } = await api.get(list, token)
      return status === 200 ? (json as { invoices: { total_cents: number }[] }).invoices[0]?.total_cents : 0
    }
    // What is known of a server is a second old at most: until then the former primary may be asked.
    const leftOut = /a database server is left out: another has newer content/
    await eventually('the former primary is left out', async () => {
      await seen()
      return leftOut.test(api.stderr + api.stdout)
    })
    for (let i = 0; i < 20; i++) assert.equal(await seen(), 3)
    const both2 = await openReadStore(`${a.url}${name},${b.url}${name}`)
    t.after(() => both2.close())
    for (let i = 0; i < 10; i++) assert.equal(await totalAt(both2), 3)
    assert.deepEqual(
      (await both2.readNodes()).map(({ at, isAsked }) => [at, isAsked]),
      [
        [`127.0.0.1:${a.port}`, false],
        [`127.0.0.1:${b.port}`, true],
      ],
    )
  })
})
