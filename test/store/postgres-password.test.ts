import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openReadStore } from '../../src/store/engines.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { createCli } from '../support/clients/cli.ts'
import { runSql } from '../support/databases/engines.ts'
import { createStore, detail, serve, useOwnPostgres } from '../support/databases/own-postgres.ts'

useOwnPostgres()

/** Ends all connections of a role, so that the next read needs a new one. */
const endSessions = (url: string, role: string) =>
  runSql(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`)

describe('a password of PostgreSQL that changes while a process runs', () => {
  it('makes the store unavailable, and requests get 503, until the password fits again', async t => {
    const { url, token } = await createStore()
    await runSql(url, "CREATE ROLE reader LOGIN PASSWORD 'test'; GRANT USAGE ON SCHEMA fatura TO reader")
    const ofReader = url.replace('postgres:test', 'reader:test')
    const store = await openReadStore(ofReader)
    t.after(() => store.close())
    const api = await serve(await createCli(t), ofReader, 'silent')
    const get = (path: string) =>
      fetch(`${api.address}${path}`, { headers: { authorization: `Bearer ${token}` } })
    assert.equal((await get(detail)).status, 200)

    await runSql(url, "ALTER ROLE reader PASSWORD 'other'")
    await endSessions(url, 'reader')
    await assert.rejects(store.findInvoice('cus_ana', 'in_1'), StoreUnavailable)
    for (const path of [detail, '/ready']) {
      const answer = await get(path)
      assert.equal(answer.status, 503, path)
      assert.equal(answer.headers.get('retry-after'), '1')
    }

    await runSql(url, "ALTER ROLE reader PASSWORD 'test'")
    assert.equal((await get('/ready')).status, 200)
    assert.equal((await get(detail)).status, 200)
  })
})
