/** A campaign of broken connections against `fatura serve`: it lives, holds no descriptor, and what it says is HTTP. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, pick, type Random } from '../../sandbox/random.ts'
import { campaign } from '../support/checks/campaign.ts'
import { createCli, eventually } from '../support/clients/cli.ts'
import { ask } from '../support/clients/load.ts'
import { countSockets, openRaw, parseStream } from '../support/clients/raw-client.ts'
import { makeInvoice } from '../support/worlds/records.ts'

const connections = campaign(1_500, 100_000)
/** So few are no overload, however slow the machine is. */
const atOnce = 30

const heads = [
  'GET /live HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /live HTTP/1.0\r\n\r\n',
  'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'GET /live HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  'GET /live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  'GET /live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n',
  'POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd',
  'POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\nabcd',
  'POST /live HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n',
  'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n',
  'CONNECT x:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
  'FOO /live HTTP/1.1\r\nHost: x\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /live\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
]

/** The bytes of one client: requests, good and bad, one behind the other, some of their bytes changed. */
function makeBytes(random: Random, list: string): Buffer {
  const parts = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
    pick(random, [...heads, list, list]),
  )
  const bytes = Buffer.from(parts.join(''), 'latin1')
  if (random() < 0.4)
    for (let i = 0; i < 1 + random() * 3; i++) bytes[Math.floor(random() * bytes.length)] = random() * 256
  return bytes
}

const endings = ['reset', 'half-close', 'destroy', 'wait', 'wait'] as const

test('the service answers or closes the connection for any bytes that a client sends, wherever it stops', {
  timeout: campaign(120_000, 7_200_000),
}, async t => {
  const cli = await createCli(t)
  await cli.load(makeInvoice({ id: 'in_1' }))
  const token = await cli.createToken()
  const api = await cli.serve(['--rate-limit', 'off'])
  const list = `GET /api/v1/client/cus_ana/invoices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
  /** Over a connection of its own, which does not stay open: it would be one of those that are counted. */
  const askLive = async () => assert.equal((await ask(`${api.address}/live`, token)).status, 200)
  await askLive()
  const before = countSockets(api.pid)
  const random = createRandom(2026)
  const seen = new Map<number, number>()
  let done = 0

  let asking: Promise<unknown> = Promise.resolve()
  let next: Promise<unknown> | null = null
  /** Resolves with an answer to a request that is sent after the call; one is for all who call meanwhile. */
  const comeAfter = () => {
    next ??= asking.then(() => {
      next = null
      asking = askLive()
      return asking
    })
    return next
  }

  async function connectOnce(turn: number): Promise<void> {
    // Every place to break off within a request, and then whatever chance brings.
    const whole = turn < list.length * 2 ? Buffer.from(list) : makeBytes(random, list)
    const cut = turn < list.length * 2 ? turn >> 1 : Math.floor(random() * whole.length * 1.5)
    const ending = turn < list.length * 2 ? endings[turn & 1] : pick(random, endings)
    const client = openRaw(api.port, whole.subarray(0, cut))
    const { socket } = client
    // Any moment of the answer will do.
    if (random() < 0.3) await sleep(random() * 10)
    if (random() < 0.2 && cut < whole.length) socket.write(whole.subarray(cut))
    if (ending === 'reset') socket.resetAndDestroy()
    else if (ending === 'destroy') socket.destroy()
    else if (ending === 'half-close') socket.end()
    // Requests that lack their end get no answer for ten seconds; the others have it by the time that later ones have theirs.
    await Promise.race([client.ended, comeAfter().then(comeAfter)])
    socket.destroy()
    // Only what the client itself broke off may be without its end.
    for (const { status, headers, json } of parseStream(client.raw).answers) {
      seen.set(status, (seen.get(status) ?? 0) + 1)
      assert.ok(status < 500, `${status} to ${JSON.stringify(whole.toString('latin1'))}`)
      assert.match(String(headers['request-id']), /^req_/)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      if (status >= 400) assert.equal(json.error.request_id, headers['request-id'])
      else if (status !== 204) assert.ok(json !== undefined)
    }
    done++
  }

  let turn = 0
  const client = async () => {
    while (turn < connections) {
      assert.equal(api.child.exitCode, null, `the process ended after ${done} connections: ${api.stderr}`)
      await connectOnce(turn++)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, client))

  await askLive()
  assert.equal(done, connections)
  await eventually('no descriptor is left', () => countSockets(api.pid) <= before)
  for (const status of [200, 204, 400, 404, 405, 413]) assert.ok(seen.has(status), `no ${status}`)
  t.diagnostic(`${done} connections, answers: ${JSON.stringify([...seen].sort(([a], [b]) => a - b))}`)
  const { code, stderr } = await api.stop()
  assert.deepEqual([code, stderr], [0, ''])
})
