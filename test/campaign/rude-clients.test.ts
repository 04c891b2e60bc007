/** Clients that keep no rules, against `fatura serve` as people run it: others do not wait longer, and it stays small. */
import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reportFigure } from '../support/checks/campaign.ts'
import { createCli, eventually, type Serving } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import {
  countConnections,
  openRaw,
  type RawClient,
  readRss,
  readUnsent,
} from '../support/clients/raw-client.ts'
import { startStrangers } from '../support/clients/strangers.ts'

async function serve(t: TestContext): Promise<Serving> {
  const cli = await createCli(t)
  return cli.serve(['--migrate'])
}

function keep(t: TestContext, clients: readonly RawClient[]): void {
  t.after(() => {
    for (const { socket } of clients) socket.destroy()
  })
}

/** One that nobody bothers, for all tests here. */
function shareCalm(): () => Serving {
  let calm: Serving | undefined
  const endings: (() => unknown)[] = []
  before(async () => {
    const suite: Pick<TestContext, 'after'> = { after: end => void endings.unshift(end as () => unknown) }
    calm = await serve(suite as TestContext)
  })
  after(async () => {
    for (const end of endings) await end()
  })
  return () => calm as Serving
}

/** The 99th of a hundred durations of requests, in milliseconds, of each service: asked in turn. */
async function measureLive(count: number, ...services: Serving[]): Promise<number[]> {
  const took = services.map((): number[] => [])
  for (let i = 0; i < count; i++)
    for (const [place, { address }] of services.entries()) {
      const sample = await ask(`${address}/live`, '')
      assert.equal(sample.status, 200, sample.text)
      took[place]?.push(sample.took)
    }
  return took.map(times => times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] as number)
}

/** Memory of the process at most, until it holds few sockets, and the time that it held them after the last byte was taken. */
async function watchUntilLetGo(api: Serving): Promise<{ maxRss: number; stalledMs: number }> {
  let maxRss = 0
  let mostUnsent = 0
  let stalledAt = performance.now()
  await eventually('all are cut off', async () => {
    maxRss = Math.max(maxRss, readRss(api.pid))
    const unsent = readUnsent(api.port)
    if (unsent > mostUnsent) {
      mostUnsent = unsent
      stalledAt = performance.now()
    }
    await sleep(50)
    return countConnections(api.port) < 5
  })
  return { maxRss, stalledMs: performance.now() - stalledAt }
}

/** Node makes objects of all requests in a packet of 64 KB before anybody can refuse one: 2,000 of them take 3.7 MB until its turn ends. */
const mostMbOfFlood = 4

describe('fatura serve with misbehaving clients', () => {
  const share = shareCalm()

  it('closes 200 slow clients within 15 seconds, without delay for others', async t => {
    const api = await serve(t)
    const dripping = Array.from({ length: 200 }, (_, i) =>
      openRaw(api.port, i % 2 ? 'GET /live HTTP/1.1\r\nX: ' : ''),
    )
    keep(t, dripping)
    const openedAt = performance.now()
    const drip = setInterval(() => {
      for (const [i, { socket }] of dripping.entries()) if (i % 2 && socket.writable) socket.write('x')
    }, 500)
    t.after(() => clearInterval(drip))
    const [usual = 0, meanwhile = 0] = await measureLive(400, share(), api)
    await Promise.all(dripping.map(({ ended }) => ended))
    await eventually('all are let go', () => countConnections(api.port) < 5)
    const took = performance.now() - openedAt
    reportFigure(
      t,
      'R8',
      `200 slow clients closed after ${(took / 1_000).toFixed(1)} s; others' p99 ${meanwhile.toFixed(1)} ms, of a calm service ${usual.toFixed(1)} ms`,
    )
    assert.ok(meanwhile <= Math.max(2 * usual, 100), `p99 ${meanwhile} ms`)
    assert.ok(took <= 15_000, `took ${took} ms`)
  })

  it('cuts off 150 clients that do not read, without filling memory or delaying others', async t => {
    const api = await serve(t)
    const rssBefore = readRss(api.pid)
    const describeApi = 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'
    const clients = Array.from({ length: 150 }, () => {
      const client = openRaw(api.port, describeApi.repeat(90))
      client.socket.pause()
      return client
    })
    keep(t, clients)
    await eventually('they are connected', () => clients.every(({ socket }) => !socket.connecting))
    const letGo = watchUntilLetGo(api)
    const [usual = 0, meanwhile = 0] = await measureLive(400, share(), api)
    const { maxRss, stalledMs } = await letGo
    const added = (maxRss - rssBefore) / 1024 / 1024
    reportFigure(
      t,
      'R8',
      `150 that do not read add ${added.toFixed(0)} MB, are cut off after ${(stalledMs / 1_000).toFixed(1)} s; others' p99 ${meanwhile.toFixed(1)} ms`,
    )
    assert.ok(added <= 64, `adds ${added.toFixed(0)} MB`)
    assert.ok(meanwhile <= Math.max(2 * usual, 250), `p99 ${meanwhile} ms`)
    assert.ok(stalledMs <= 15_000, `after ${stalledMs} ms`)
  })

  it('lets new clients in while strangers pipeline requests and open connections', async t => {
    const api = await serve(t)
    const strangers = startStrangers(api.port)
    t.after(strangers.stop)
    await sleep(2_000)
    const took: number[] = []
    const newcomers = 23
    for (let i = 0; i < newcomers; i++) {
      const sample = await ask(`${api.address}/live`, '')
      if (sample.status === 200) took.push(sample.took)
      await sleep(200)
    }
    const slowest = Math.max(...took)
    reportFigure(
      t,
      'R8',
      `beside strangers who pipeline requests, ${took.length} of ${newcomers} newcomers got in, the last after ${slowest.toFixed(0)} ms`,
    )
    assert.equal(took.length, newcomers)
    assert.ok(slowest <= 1_000, `after ${slowest} ms`)
  })

  it('uses limited memory for clients that send 2,000 requests at once and read nothing', async t => {
    const api = await serve(t)
    const rssBefore = readRss(api.pid)
    const flood = Buffer.from('GET /live HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000))
    const clients: RawClient[] = []
    keep(t, clients)
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 10; i++) {
        const client = openRaw(api.port, flood)
        client.socket.pause()
        clients.push(client)
      }
      await sleep(100)
    }
    const { maxRss } = await watchUntilLetGo(api)
    const added = (maxRss - rssBefore) / 1024 / 1024
    reportFigure(
      t,
      'R8',
      `${clients.length} connections of 2,000 requests that read nothing add ${added.toFixed(0)} MB`,
    )
    assert.ok(added <= mostMbOfFlood * clients.length, `adds ${added.toFixed(0)} MB`)
    assert.equal((await api.get('/live')).status, 200)
  })
})
