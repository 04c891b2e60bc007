/** The headers that every answer of every port has, and those that a page has in their place. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { securityHeaders, writeBareAnswer, writeLines } from '../../src/server/bare-answer.ts'
import { createGuardedServer } from '../../src/server/guarded-server.ts'
import { replaceSecurityHeaders } from '../../src/server/secure-response.ts'

test('a page has security headers of its own, each once; what is served beside it keeps the usual ones', async t => {
  const page = { 'x-content-type-options': 'nosniff', 'content-security-policy': "default-src 'self'" }
  const server = createGuardedServer({
    handle(request, response) {
      if (request.url === '/page') replaceSecurityHeaders(response, writeLines(page))
      response.end('{}')
    },
    refuse: () => writeBareAnswer(400, {}, '{}'),
    keepAliveMs: 1_000,
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const names = Object.keys({ ...securityHeaders, ...page })
  for (const [path, set] of [
    ['/page', page],
    ['/data', securityHeaders],
    ['/page', page],
  ] as const) {
    const { headers } = await fetch(address + path)
    const expected = new Map<string, string>(Object.entries(set))
    for (const name of names) assert.equal(headers.get(name), expected.get(name) ?? null, `${path} ${name}`)
  }
})
