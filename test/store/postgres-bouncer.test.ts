/** What PgBouncer says in the place of PostgreSQL: a server that it lost is tried again, and what is set up wrongly is told. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { StoreError, StoreUnavailable } from '../../src/store/store.ts'
import { engines } from '../support/engines.ts'
import { makeRecord } from '../support/records.ts'

const postgres = engines.find(({ name }) => name === 'postgres') as (typeof engines)[number]
const list = { customer_id: 'cus_ana', page: 1, page_size: 10 }

interface Words {
  code: string
  message: string
}

interface Bouncer {
  url: string
  /** So many of the next questions on connections that are there are answered so, and their connections closed. */
  say(words: Words, times?: number): void
}

/** Lets everything pass but what it is told to answer itself. */
async function startBouncer(t: TestContext, url: string): Promise<Bouncer> {
  const target = new URL(url)
  const port = Number(target.port)
  const said: Words[] = []
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect(port, target.hostname)
    let isStarted = false
    client.on('data', chunk => {
      if (client.writableEnded) return
      // The freshness is asked for by the clock, and an older one would do.
      const words = isStarted && !chunk.includes('freshness') ? said.shift() : undefined
      if (words === undefined) return void upstream.write(chunk)
      client.end(errorResponse(words))
      upstream.destroy()
    })
    // Ready for the first question: what comes before is the login.
    upstream.on('data', chunk => {
      isStarted ||= chunk.includes('Z\0\0\0\x05I')
      client.write(chunk)
    })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    upstream.on('close', () => client.end())
    client.on('close', () => upstream.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  target.port = String((server.address() as AddressInfo).port)
  return { url: target.href, say: (words, times = 1) => said.push(...Array(times).fill(words)) }
}

function errorResponse({ code, message }: Words): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

async function openThrough(t: TestContext) {
  const url = await postgres.createStore(t)
  const writer = await openWriteStore(url)
  await writer.transaction(tx => tx.saveInvoices([makeRecord({ id: 'in_1' })]))
  await writer.close()
  const bouncer = await startBouncer(t, url)
  const reader = await openReadStore(bouncer.url)
  t.after(() => reader.close())
  return { bouncer, reader }
}

describe('behind PgBouncer', () => {
  test('a server that was lost, in whatever words, is not noticed; one that is lost again is a 503', async t => {
    const { bouncer, reader } = await openThrough(t)
    const losses: Words[] = [
      { code: '08P01', message: 'server conn crashed?' },
      { code: '58000', message: 'server conn crashed?' },
      { code: '08P01', message: 'server closed the connection unexpectedly' },
      { code: '08P01', message: 'query_wait_timeout' },
      {
        code: '08P01',
        message: 'server login has been failing, cached error: connect failed (server_login_retry)',
      },
    ]
    for (const words of losses)
      for (const ask of [
        () => reader.listInvoices(list),
        () => reader.listInvoices({ ...list, status: 'paid' }),
      ]) {
        assert.equal((await ask()).total, 1)
        bouncer.say(words)
        assert.equal((await ask()).total, 1, words.message)
        bouncer.say(words, 2)
        await assert.rejects(ask(), StoreUnavailable, words.message)
      }
  })

  test('one that does not keep prepared statements apart is told what to set', async t => {
    const { bouncer, reader } = await openThrough(t)
    bouncer.say({ code: '42P05', message: 'prepared statement "list" already exists' }, 2)
    await assert.rejects(
      reader.listInvoices(list),
      (error: Error) => error instanceof StoreError && /max_prepared_statements/.test(error.message),
    )
  })
})
