/** A connection that is ended with an answer, while requests of the same packet wait behind it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createGuardedServer } from '../../../src/http/server/guarded-server.ts'
import { sendRaw } from '../../support/clients/raw-client.ts'

const refusal = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'

test('the last answer of a connection is sent at once, and later pipelined requests get no answer', async t => {
  const server = createGuardedServer({
    keepAliveMs: 60_000,
    refuse: () => refusal,
    handle: (request, response, endWith) => {
      if (request.url === '/refused') endWith(refusal)
      else setImmediate(() => response.end())
    },
  })
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
  const answers = await sendRaw(port, get('/first') + get('/refused') + get('/third'))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 403],
  )
})
