/** The time that a client has for its request. Node's own clock measures it, so that it is given here. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { writeBareAnswer } from '../../../src/http/server/bare-answer.ts'
import { createGuardedServer } from '../../../src/http/server/guarded-server.ts'
import { openRaw, parseAnswers } from '../../support/clients/raw-client.ts'

const shell = {
  handle: () => {},
  refuse: ({ code = '' }) => writeBareAnswer(code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400, {}, '{}'),
  keepAliveMs: 60_000,
}

test('a client that does not finish its request in time gets 408, even when it sends steadily', {
  timeout: 600_000,
}, async t => {
  const server = createGuardedServer({ ...shell, requestTimeoutMs: 300 }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const head = 'POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n'
  const parts = { nothing: '', 'a word': 'POST', 'half a head': `${head}X: `, 'half a body': `${head}\r\nx` }
  const clients = Object.entries(parts).flatMap(([part, begun]) =>
    (part === 'nothing' ? [''] : ['', part === 'a word' ? ' ' : 'x']).map(more => {
      return { name: `${part}, then ${more === '' ? 'silence' : 'more'}`, more, client: openRaw(port, begun) }
    }),
  )
  t.after(() => {
    for (const { client } of clients) client.socket.destroy()
  })
  const drip = setInterval(() => {
    for (const { more, client } of clients)
      if (more !== '' && client.socket.writable) client.socket.write(more)
  }, 20)
  t.after(() => clearInterval(drip))
  for (const { name, client } of clients) {
    await client.ended
    const statuses = parseAnswers(client.raw).map(({ status }) => status)
    assert.deepEqual(statuses, [408], name)
  }
})

test('a client has ten seconds for its request, and a minute for a part of its answer, by default', () => {
  const { requestTimeout, headersTimeout, timeout } = createGuardedServer(shell)
  assert.deepEqual([requestTimeout, headersTimeout, timeout], [10_000, 10_000, 60_000])
})
