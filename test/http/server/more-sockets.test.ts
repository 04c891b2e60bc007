/** Several sockets on one port: a turn of the event loop takes a connection of each. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { closeGently } from '../../../src/http/server/close-connections.ts'
import { listenOnSockets, sharedAddress } from '../../../src/http/server/more-sockets.ts'
import { createServer } from '../../../src/sources/calls/node-http.ts'

const newcomers = 128
const notShared = process.platform !== 'linux' && 'this system may have no ports that several sockets share'

/** Connects from another thread, and tells when the system has connected all of them. */
const connectAll = `
  const { connect } = require('node:net')
  const { workerData: { port, newcomers, connected } } = require('node:worker_threads')
  for (let i = 0; i < newcomers; i++)
    connect(port, '127.0.0.1').on('error', () => {}).on('connect', () => {
      Atomics.add(connected, 0, 1)
      Atomics.notify(connected, 0)
    })`

async function listen(t: TestContext, answer = 'hello') {
  const server = createServer((_request, response) => response.end(answer))
  const sockets = await listenOnSockets(server, { host: '127.0.0.1', port: 0 })
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await sockets.close()
  })
  return { server, sockets, port: (server.address() as AddressInfo).port }
}

describe('a server with several listening sockets', () => {
  it('accepts many new connections in few turns of the event loop', { skip: notShared }, async t => {
    const { server, port } = await listen(t)
    let taken = 0
    server.on('connection', () => taken++)
    const connected = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(connectAll, { eval: true, workerData: { port, newcomers, connected } })
    t.after(() => worker.terminate())
    await once(worker, 'online')
    // The event loop stands still until all of them wait to be taken.
    for (let waiting = 0; waiting < newcomers; waiting = Atomics.load(connected, 0))
      Atomics.wait(connected, 0, waiting)
    let turns = 0
    while (taken < newcomers) {
      await turn()
      turns++
    }
    assert.ok(turns < newcomers / 4, `${turns} turns`)
  })

  it('does not share its port with another program', async t => {
    const { port } = await listen(t)
    await assert.rejects(sharedAddress({ host: '127.0.0.1', port }), { code: 'EADDRINUSE' })
  })

  it('answers running requests on every socket before it closes', async t => {
    const { server, sockets, port } = await listen(t)
    const held = Array.from({ length: newcomers }, () => connect(port, '127.0.0.1'))
    let taken = 0
    server.on('connection', () => taken++)
    await Promise.all(held.map(socket => once(socket, 'connect')))
    while (taken < newcomers) await turn()
    const closed = closeGently(server, undefined, sockets)
    const answers = held.map(async socket => {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      return (await socket.toArray()).join('')
    })
    for (const answer of await Promise.all(answers)) assert.match(answer, /hello/)
    await closed
    const late = connect(port, '127.0.0.1')
    assert.deepEqual(await once(late, 'error').then(([{ code }]) => code), 'ECONNREFUSED')
  })
})
