/** Clients that keep no rules: the service goes on, lets go, and serves the others. test/campaign/rude-clients.test.ts measures it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSyncWorld } from '../support/checks/sync-truth.ts'
import { createCli, eventually, type Program } from '../support/clients/cli.ts'
import {
  countHeld,
  countSockets,
  openRaw,
  parseAnswers,
  type RawClient,
  readUnsent,
  sendRaw,
} from '../support/clients/raw-client.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeHugeLines, makeRecord } from '../support/worlds/records.ts'
import { type Answer, assertError, startService } from '../support/worlds/service.ts'
import { settle, stopClock, until } from '../support/worlds/stopped-clock.ts'

const tunnel = 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'

/** Requests that get one answer, and leave their connection open. */
const refused = {
  'unknown method': 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n',
  'no request': 'garbage\r\n\r\n',
  'large body': 'GET /live HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\nxxx',
  'two hosts': 'GET /live HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
}

const [engine] = engines as readonly [Engine]
const patient = { timeout: 600_000 }

/** Call it before the service is started: a service that is stopped waits for them. */
function keep(t: TestContext, clients: readonly RawClient[]): void {
  t.after(() => {
    for (const { socket } of clients) socket.destroy()
  })
}

function assertAlive({ child }: Program): void {
  assert.deepEqual([child.exitCode, child.signalCode], [null, null], 'the process goes on')
}

describe('a client that resets its connection after CONNECT', () => {
  const resetOften = async (port: number) => {
    for (let i = 0; i < 50; i++) {
      const { socket } = openRaw(
        port,
        i % 2 === 0 ? tunnel : tunnel.replace('\r\n\r\n', '\r\nContent-Length: 9\r\n\r\n'),
      )
      await once(socket, 'connect')
      // Before the answer, with it, or after it.
      if (i % 3 > 0) await sleep(i % 3)
      socket.resetAndDestroy()
    }
  }

  it('does not end fatura serve', patient, async t => {
    const cli = await createCli(t)
    const api = await cli.serve(['--migrate'])
    await resetOften(api.port)
    assert.equal((await api.get('/live')).status, 200)
    assertAlive(api)
    assert.equal(api.stderr, '')
    assert.equal((await api.stop()).code, 0)
  })

  it(
    'does not end the webhook receiver, which refuses tunnels and closes idle connections',
    patient,
    async t => {
      const world = await createSyncWorld(t, { invoices: 1, seed: 5 })
      const receiver = await world.receive()
      const port = Number(new URL(receiver.url).port)
      const before = countSockets(receiver.pid)
      await resetOften(port)
      assert.deepEqual(await sendRaw(port, tunnel), [])
      assertAlive(receiver)
      await t.test('a connection that was answered and stays open is closed', async t => {
        const unsigned = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n'
        const { 'large body': _, ...others } = refused
        const clients = [unsigned, ...Object.values(others)].map(bytes => openRaw(port, bytes))
        keep(t, clients)
        await Promise.all(clients.map(({ ended }) => ended))
        for (const client of clients) assert.equal(parseAnswers(client.raw).length, 1)
        await eventually('let go', () => countSockets(receiver.pid) <= before)
      })
      assert.equal((await receiver.stop()).code, 0)
    },
  )
})

describe('a refused request whose client keeps the connection open', () => {
  it('has its connection closed after a second', patient, async t => {
    const clock = stopClock(t)
    const clients: RawClient[] = []
    keep(t, clients)
    const { port } = await startService(t, engine)
    for (let i = 0; i < 15; i++)
      for (const bytes of Object.values(refused)) clients.push(openRaw(port, bytes))
    await Promise.all(clients.map(({ ended }) => ended))
    for (const client of clients) assert.equal(parseAnswers(client.raw).length, 1, String(client.raw))
    // The service hears of the end of what it sent a turn later than the client.
    await settle()
    await clock.pass(999)
    assert.equal(countHeld(port, clients), clients.length, 'their clients may still be reading')
    await clock.pass(1)
    assert.equal(countHeld(port, clients), 0)
  })

  it('is answered in full while the client still sends', patient, async t => {
    const { port } = await startService(t, engine)
    for (let i = 0; i < 10; i++) {
      const head = 'POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n'
      const client = openRaw(port, Buffer.concat([Buffer.from(head), Buffer.alloc(5_000_000)]))
      await client.ended
      client.socket.destroy()
      assertError(parseAnswers(client.raw)[0] as Answer, 413, 'payload_too_large')
    }
  })
})

/** A service by a stopped clock, and clients that ask it for 14 MB each and read nothing. */
async function startUnread(t: TestContext, count: number) {
  const clock = stopClock(t)
  const clients: RawClient[] = []
  keep(t, clients)
  const service = await startService(t, engine, {
    records: [makeRecord({ id: 'in_large' }, makeHugeLines())],
  })
  const token = await service.createToken()
  while (clients.length < count) {
    const client = askForLarge(service.port, token)
    client.socket.pause()
    clients.push(client)
  }
  await until(() => clients.every(({ socket }) => readUnsent(service.port, socket.localPort) > 0))
  await settle()
  return { clock, service, clients }
}

function askForLarge(port: number, token: string): RawClient {
  const path = '/api/v1/client/cus_ana/invoice/in_large'
  return openRaw(
    port,
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  )
}

describe('clients that do not read their answers', () => {
  it('do not delay other clients', patient, async t => {
    const { service, clients } = await startUnread(t, 3)
    for (let i = 0; i < 50; i++) assert.equal((await service.list()).status, 200)
    assert.equal(countHeld(service.port, clients), clients.length)
  })

  it('are cut off while more than 48 MB wait for them', patient, async t => {
    // The system takes some MB of each answer.
    const { clock, service, clients } = await startUnread(t, 6)
    await clock.pass(500)
    const left = countHeld(service.port, clients)
    assert.ok(left >= 3 && left < clients.length, `${left} are left`)
  })
})

describe('slow clients', () => {
  it('do not delay other clients when 200 of them send byte by byte', patient, async t => {
    const dripping: RawClient[] = []
    keep(t, dripping)
    const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
    for (let i = 0; i < 200; i++)
      dripping.push(openRaw(service.port, i % 2 ? 'GET /live HTTP/1.1\r\nX: ' : ''))
    // Not until all are held: on a machine that stands still, the first are cut off before the last is let in.
    await Promise.all(dripping.map(({ socket }) => socket.connecting && once(socket, 'connect')))
    for (let i = 0; i < 100; i++) {
      for (const [i, { socket }] of dripping.entries()) if (i % 2 && socket.writable) socket.write('x')
      assert.equal((await service.list()).status, 200)
    }
  })

  it('get their whole answer when they read slowly but steadily', patient, async t => {
    const { clock, clients } = await startUnread(t, 1)
    const [client] = clients as [RawClient]
    let taken = 0
    let enough = 0
    client.socket.on('data', (chunk: Buffer) => {
      taken += chunk.length
      if (taken >= enough) client.socket.pause()
    })
    while (!client.socket.readableEnded) {
      await clock.pass(4_000)
      enough = taken + 2_000_000
      client.socket.resume()
      await until(() => taken >= enough || client.socket.readableEnded)
    }
    assert.equal(parseAnswers(client.raw)[0]?.json.lines.length, 14)
  })

  it('get a whole PDF of 25 MB after a pause, without its bytes in memory', patient, async t => {
    const size = 25 * 1024 * 1024
    let made = 0
    const body = () =>
      new Readable({
        read() {
          const bytes = Math.min(65_536, size - made)
          made += bytes
          this.push(bytes === 0 ? null : Buffer.alloc(bytes, 'x'))
        },
      })
    const service = await startService(t, engine, {
      records: [makeRecord({ id: 'in_1' })],
      payments: { fetchLines: async () => null, openPdf: async () => ({ size, body: body() }) },
    })
    const token = await service.createToken()
    const path = '/api/v1/client/cus_ana/invoice/in_1/payments/download'
    const client = openRaw(
      service.port,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    )
    keep(t, [client])
    await once(client.socket, 'data')
    client.socket.pause()
    for (let last = -1; made !== last; await settle(100)) last = made
    t.diagnostic(
      `${(made / 1024 / 1024).toFixed(1)} MB were taken from the source, the system's buffers included`,
    )
    assert.ok(made < size / 2, `${made} bytes of ${size}`)
    client.socket.resume()
    await client.ended
    assert.equal(Buffer.byteLength(parseAnswers(client.raw)[0]?.text ?? ''), size)
  })
})
