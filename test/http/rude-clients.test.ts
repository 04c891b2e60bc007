/** Clients that keep no rules, against `fatura serve` as people run it: it goes on, lets go, and stays small. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { campaign, reportFigure } from '../support/campaign.ts'
import { createCli, eventually, type Program, type Serving } from '../support/cli.ts'
import { type Engine, engines } from '../support/engines.ts'
import { ask } from '../support/load.ts'
import { assertWithin } from '../support/machine-speed.ts'
import {
  countSockets,
  openRaw,
  parseAnswers,
  type RawClient,
  readRss,
  readUnsent,
  sendRaw,
} from '../support/raw-client.ts'
import { makeInvoice, makeRecord } from '../support/records.ts'
import { type Answer, assertError, startService } from '../support/service.ts'
import { createSyncWorld } from '../support/sync-truth.ts'

const tunnel = 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'
const describeApi = 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'

/** Requests that get one answer, and leave their connection open. */
const answered = {
  tunnel,
  'unknown method': 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n',
  'no request': 'garbage\r\n\r\n',
  'large body': 'GET /live HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\nxxx',
  'two hosts': 'GET /live HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
  'Connection: close': 'GET /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'HTTP/1.0': 'GET /live HTTP/1.0\r\n\r\n',
  'too late': 'GET /live HTTP/1.1\r\nHos',
}

async function serve(t: TestContext, ...args: string[]): Promise<Serving> {
  const cli = await createCli(t)
  return cli.serve(['--migrate', ...args])
}

function keep(t: TestContext, clients: readonly RawClient[]): void {
  t.after(() => {
    for (const { socket } of clients) socket.destroy()
  })
}

function assertAlive({ child }: Program): void {
  assert.deepEqual([child.exitCode, child.signalCode], [null, null], 'the process goes on')
}

/** One that nobody bothers, for all tests here, and a token for its large invoice. */
function shareCalm(): () => { calm: Serving; token: string } {
  let shared: { calm: Serving; token: string } | undefined
  const endings: (() => unknown)[] = []
  before(async () => {
    const suite: Pick<TestContext, 'after'> = { after: end => void endings.unshift(end as () => unknown) }
    const cli = await createCli(suite as TestContext)
    const description = 'x'.repeat(1_000_000)
    const lines = Array.from({ length: 16 }, (_, i) => ({ ...line, id: `il_${i}`, description }))
    await cli.load({ ...makeInvoice({ id: 'in_large' }), lines })
    shared = { token: await cli.createToken(), calm: await cli.serve() }
  })
  after(async () => {
    for (const end of endings) await end()
  })
  return () => shared as { calm: Serving; token: string }
}

/** Durations of requests in milliseconds, sorted: of each service in turn, so that a slow machine slows both. */
async function measureLive(count: number, ...services: Serving[]): Promise<number[][]> {
  const took = services.map((): number[] => [])
  for (let i = 0; i < count; i++)
    for (const [place, { address }] of services.entries()) {
      const sample = await ask(`${address}/live`, '')
      assert.equal(sample.status, 200, sample.text)
      took[place]?.push(sample.took)
    }
  return took.map(times => times.sort((a, b) => a - b))
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.floor(sorted.length * share)] as number
const p99 = (sorted: readonly number[]) => quantile(sorted, 0.99)
/** Of a hundred, the 99th is one that a busy machine delayed. */
const p95 = (sorted: readonly number[]) => quantile(sorted, 0.95)

/** Memory of the process at most, until it holds few sockets, and the time that it held them after the last byte was taken. */
async function watchUntilLetGo(api: Serving): Promise<{ mostRss: number; stalledMs: number }> {
  let mostRss = 0
  let mostUnsent = 0
  let stalledAt = Date.now()
  await eventually('all are cut off', async () => {
    mostRss = Math.max(mostRss, readRss(api.pid))
    const unsent = readUnsent(api.port)
    if (unsent > mostUnsent) {
      mostUnsent = unsent
      stalledAt = Date.now()
    }
    await sleep(50)
    return countSockets(api.pid) < 20
  })
  return { mostRss, stalledMs: Date.now() - stalledAt }
}

// Most of them wait for ten seconds, in which little happens: at once.
describe('fatura serve and rude clients', { concurrency: true }, () => {
  const share = shareCalm()

  describe('a client that resets after CONNECT', { concurrency: 3 }, () => {
    const resetOften = async (port: number) => {
      for (let i = 0; i < 50; i++) {
        const { socket } = openRaw(
          port,
          i % 2 === 0 ? tunnel : tunnel.replace('\r\n\r\n', '\r\nContent-Length: 9\r\n\r\n'),
        )
        await once(socket, 'connect')
        if (i % 3 > 0) await sleep(i % 3)
        socket.resetAndDestroy()
      }
    }

    for (const args of [[], ['--workers', '2']])
      it(`does not end fatura serve ${args.join(' ')}`, async t => {
        const api = await serve(t, ...args)
        await resetOften(api.port)
        assert.equal((await api.get('/live')).status, 200)
        assertAlive(api)
        assert.deepEqual([api.stderr, /a worker ended/.test(api.stdout)], ['', false])
        await t.test('nor do those that stay after CONNECT keep it from its end', async t => {
          const clients = Array.from({ length: 10 }, () => openRaw(api.port, tunnel))
          keep(t, clients)
          await Promise.all(clients.map(({ ended }) => ended))
          const asked = Date.now()
          assert.equal((await api.stop()).code, 0)
          assertWithin(Date.now() - asked, 8_000)
        })
      })

    it('does not end the receiver of webhooks, which answers no tunnel either', async t => {
      const world = await createSyncWorld(t, { invoices: 1, seed: 5 })
      const receiver = await world.receive()
      const port = Number(new URL(receiver.url).port)
      const before = countSockets(receiver.pid)
      await resetOften(port)
      const [refused] = await sendRaw(port, tunnel)
      assert.deepEqual([refused?.status, refused?.headers.allow], [405, 'POST'])
      assertAlive(receiver)
      await t.test('and lets go a connection that was answered and stays open', async t => {
        const unsigned = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n'
        const { 'large body': _, ...others } = answered
        const clients = [unsigned, ...Object.values(others)].map(bytes => openRaw(port, bytes))
        keep(t, clients)
        await Promise.all(clients.map(({ ended }) => ended))
        for (const client of clients) assert.equal(parseAnswers(client.raw).length, 1)
        await eventually('let go', () => countSockets(receiver.pid) <= before)
      })
      assert.equal((await receiver.stop()).code, 0)
    })
  })

  describe('a connection that was answered and stays open on its client’s side', () => {
    it('is let go within 2 seconds of the answer, whichever layer gave it', { timeout: 240_000 }, async t => {
      const api = await serve(t)
      const before = countSockets(api.pid)
      const { 'too late': late, ...others } = answered
      const open = (requests: readonly string[]) => {
        const clients = Array.from({ length: 15 }, () =>
          requests.map(bytes => openRaw(api.port, bytes)),
        ).flat()
        keep(t, clients)
        return clients
      }
      const lateClients = open([late])
      for (const [clients, left] of [
        [open(Object.values(others)), before + lateClients.length],
        [lateClients, before],
      ] as const) {
        await Promise.all(clients.map(({ ended }) => ended))
        const answeredAt = Date.now()
        for (const client of clients) assert.equal(parseAnswers(client.raw).length, 1, String(client.raw))
        await eventually('let go', () => countSockets(api.pid) <= left)
        assertWithin(Date.now() - answeredAt, campaign(6_000, 2_000))
      }

      await t.test(
        'and is answered even when its client goes on sending: the answer is not lost',
        async () => {
          for (let i = 0; i < 10; i++) {
            const head = 'POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n'
            const client = openRaw(api.port, Buffer.concat([Buffer.from(head), Buffer.alloc(5_000_000)]))
            await client.ended
            client.socket.destroy()
            assertError(parseAnswers(client.raw)[0] as Answer, 413, 'payload_too_large')
          }
        },
      )
    })
  })

  describe('clients that do not read', { concurrency: 2 }, () => {
    it('fill no memory, keep nobody waiting, and are cut off', { timeout: 240_000 }, async t => {
      const api = await serve(t)
      const before = readRss(api.pid)
      const clients = Array.from({ length: 150 }, () => {
        const client = openRaw(api.port, describeApi.repeat(90))
        client.socket.pause()
        return client
      })
      keep(t, clients)
      await eventually('they are connected', () => clients.every(({ socket }) => !socket.connecting))
      const letGo = watchUntilLetGo(api)
      const [usual = [], meanwhile = []] = await measureLive(100, share().calm, api)
      const { mostRss, stalledMs } = await letGo
      const added = (mostRss - before) / 1024 / 1024
      t.diagnostic(`adds ${added.toFixed(0)} MB at most; all cut off after ${stalledMs} ms`)
      t.diagnostic(`/live p95 ${p95(usual).toFixed(1)} ms, meanwhile ${p95(meanwhile).toFixed(1)} ms`)
      assert.ok(added <= 64, `adds ${added.toFixed(0)} MB`)
      assertWithin(p95(meanwhile), Math.max(2 * p95(usual), 250))
      assertWithin(stalledMs, 15_000)
    })

    it('and send requests on and on fill no memory either', { timeout: 240_000 }, async t => {
      const api = await serve(t)
      const before = readRss(api.pid)
      const flood = Buffer.from('GET /live HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000))
      let most = 0
      const clients: RawClient[] = []
      keep(t, clients)
      for (let round = 0; round < 20; round++) {
        for (let i = 0; i < 10; i++) {
          const client = openRaw(api.port, flood)
          client.socket.pause()
          clients.push(client)
        }
        await sleep(100)
        most = Math.max(most, readRss(api.pid))
      }
      const added = (most - before) / 1024 / 1024
      t.diagnostic(`${clients.length} connections of 2,000 requests add ${added.toFixed(0)} MB at most`)
      assert.ok(added <= 64, `adds ${added.toFixed(0)} MB`)
      assert.equal((await api.get('/live')).status, 200)
    })
  })

  describe('slow clients', { concurrency: 3 }, () => {
    it('200 of them are closed within 15 seconds, and others do not wait longer', {
      timeout: 240_000,
    }, async t => {
      const api = await serve(t)
      const dripping = Array.from({ length: 200 }, (_, i) =>
        openRaw(api.port, i % 2 ? 'GET /live HTTP/1.1\r\nX: ' : ''),
      )
      keep(t, dripping)
      const openedAt = Date.now()
      const drip = setInterval(() => {
        for (const [i, { socket }] of dripping.entries()) if (i % 2 && socket.writable) socket.write('x')
      }, 500)
      t.after(() => clearInterval(drip))
      await sleep(500)
      // So many that one pause of the machine is not the 99th of a hundred.
      const [usual = [], meanwhile = []] = await measureLive(400, share().calm, api)
      assertWithin(p99(meanwhile), Math.max(2 * p99(usual), 100))
      await Promise.all(dripping.map(({ ended }) => ended))
      await eventually('all are let go', () => countSockets(api.pid) < 20)
      const took = Date.now() - openedAt
      reportFigure(
        t,
        'R8',
        `200 slow clients closed after ${(took / 1_000).toFixed(1)} s; others' p99 ${p99(meanwhile).toFixed(1)} ms, of a calm service ${p99(usual).toFixed(1)} ms`,
      )
      assertWithin(took, 15_000)
    })

    it('one that reads its answer slowly but steadily gets all of it', { timeout: 240_000 }, async t => {
      const { calm, token } = share()
      const path = '/api/v1/client/cus_ana/invoice/in_large'
      const client = openRaw(
        calm.port,
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
      )
      keep(t, [client])
      const startedAt = Date.now()
      readSlowly(client.socket, 120_000, 125)
      await client.ended
      const [answer] = parseAnswers(client.raw)
      assert.equal(answer?.json.lines.length, 16)
      t.diagnostic(`16 MB in ${Date.now() - startedAt} ms`)
      assert.ok(
        Date.now() - startedAt > 12_000,
        'slower than the time after which a client that reads nothing is cut off',
      )
    })

    it('a PDF of 25 MB is not held in memory for one that stops reading, and comes whole when it goes on', async t => {
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
      const service = await startService(t, engines[0] as Engine, {
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
      let last = -1
      await eventually('no more is taken from the source', async () => {
        const still = made === last
        last = made
        await sleep(500)
        return still
      })
      t.diagnostic(
        `${(made / 1024 / 1024).toFixed(1)} MB were taken from the source, the system's buffers included`,
      )
      assert.ok(made < size / 2, `${made} bytes of ${size}`)
      client.socket.resume()
      await client.ended
      assert.equal(Buffer.byteLength(parseAnswers(client.raw)[0]?.text ?? ''), size)
    })
  })
})

const line = {
  quantity: 1,
  subtotal_cents: 1,
  discount_cents: 0,
  discount_percent: 0,
  unit_amount_cents: 1,
  amount_cents: 1,
  currency: 'eur',
}

/** Takes at most so many bytes at a time. */
function readSlowly(socket: Socket, bytes: number, pauseMs: number): void {
  let taken = 0
  socket.on('data', (chunk: Buffer) => {
    taken += chunk.length
    if (taken < bytes) return
    taken = 0
    socket.pause()
    setTimeout(() => socket.resume(), pauseMs)
  })
}
