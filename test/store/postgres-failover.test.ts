/** Two PostgreSQL servers, of which one follows the other: addresses with both, and a failover. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { findAddressProblem, migrateStore, openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { StoreError, StoreUnavailable, type WriteStore } from '../../src/store/store.ts'
import { createCli, createStoredToken, eventually } from '../support/clients/cli.ts'
import { runSql } from '../support/databases/engines.ts'
import { createPostgresServer, type PostgresServer } from '../support/databases/postgres-server.ts'
import { makeRecord } from '../support/worlds/records.ts'

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

/** A machine that stands still may keep a host from answering in its share of the time: then it is asked again. */
async function openInTime(address: string) {
  for (;;)
    try {
      return await openReadStore(address)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
}

const write = (store: WriteStore, total_cents: number, at: number) =>
  store.transaction(async tx => {
    await tx.saveInvoices([makeRecord({ id: 'in_1', total_cents })])
    await tx.saveSuccess('import', at)
  })

const totalAt = async (store: Awaited<ReturnType<typeof openReadStore>>) =>
  JSON.parse((await store.findInvoice('cus_ana', 'in_1'))?.summary ?? '{}').total_cents as number

describe('a database address with two hosts', () => {
  test('is accepted with the values of target_session_attrs that libpq knows', () => {
    assert.equal(findAddressProblem('postgres://u:p@a:1,b:2/name?target_session_attrs=read-write'), null)
    assert.equal(findAddressProblem('postgres://a,b/name'), null)
    assert.match(String(findAddressProblem('postgres://a,b/name?target_session_attrs=best')), /read-write/)
    assert.match(String(findAddressProblem('postgres://a,b:x/name')), /commas/)
    assert.match(String(findAddressProblem('postgres://a/name,postgres://b/name')), /commas/)
  })

  test('leads to the host with the requested role, before and after a failover', async t => {
    const [a, b] = [first as PostgresServer, second as PostgresServer]
    // The standby is named first.
    const writer = await openWriteStore(both(b, a))
    t.after(() => writer.close())
    await write(writer, 1, 1_000)
    const reader = await openInTime(both(b, a, 'read-write'))
    const standby = await openInTime(both(a, b, 'standby'))
    t.after(() => Promise.all([reader.close(), standby.close()]))
    assert.equal(await totalAt(reader), 1)
    await eventually('the standby has it', async () => (await totalAt(standby)) === 1)
    const token = await createStoredToken(a.url + name, null)
    const cli = await createCli(t)
    const api = await cli.serve([], { env: { DATABASE_URL: both(a, b, 'primary') } })
    const list = '/api/v1/client/cus_ana/invoices'
    assert.equal((await api.get(list, token)).status, 200)

    await a.stop()
    await assert.rejects(openWriteStore(both(a, b)), StoreUnavailable)
    const { status, json, headers } = await api.get(list, token)
    assert.deepEqual([status, json.error.code, headers.get('retry-after')], [503, 'unavailable', '1'])
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
    await eventually('it is served', async () => {
      const { status, json } = await api.get(list, token)
      return status === 200 && json.invoices[0]?.total_cents === 2
    })
    await assert.rejects(openReadStore(both(a, b, 'standby')), /cannot be reached|None of the hosts/)
  })

  test('leads to the second host when the first accepts connections but never answers', async t => {
    const silent = createServer().listen(0, '127.0.0.1')
    t.after(() => silent.close())
    await once(silent, 'listening')
    const sockets = new Set<Socket>()
    silent.on('connection', socket => sockets.add(socket))
    t.after(() => {
      for (const socket of sockets) socket.destroy()
    })
    const { port } = silent.address() as AddressInfo
    const { port: running } = second as PostgresServer
    const reader = await openInTime(`postgres://postgres:test@127.0.0.1:${port},127.0.0.1:${running}/${name}`)
    t.after(() => reader.close())
    await reader.ping()
    assert.ok(sockets.size > 0)
  })
})
