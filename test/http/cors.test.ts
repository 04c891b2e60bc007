/** CORS by an allow-list of origins, on every answer of every layer. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sendRaw } from '../support/clients/raw-client.ts'
import { engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { type Answer, assertError, type RequestOptions, startService } from '../support/worlds/service.ts'

const app = 'https://app.example.com'
const other = 'http://127.0.0.1:5173'
const stranger = 'https://stranger.example'
const path = '/api/v1/client/cus_ana/invoices'

const preflight = (origin: string, method = 'GET'): RequestOptions => ({
  method: 'OPTIONS',
  token: null,
  headers: {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization,if-none-match',
  },
})

/** The check of a browser before it lets a page of this origin read the answer. */
function assertReadable({ status, headers }: Pick<Answer, 'status' | 'headers'>, origin: string): void {
  assert.equal(headers['access-control-allow-origin'], origin, `${status}`)
  assert.equal(headers.vary, 'Origin')
  assert.deepEqual(headers['access-control-expose-headers']?.split(', '), [
    ...['ETag', 'Request-Id', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'Content-Disposition'],
    'Fatura-Synced-At',
  ])
  assert.equal(headers['access-control-allow-credentials'], undefined)
}

function assertUnreadable({ status, headers }: Answer): void {
  const said = Object.keys(headers).filter(name => name.startsWith('access-control-'))
  assert.deepEqual(said, [], `${status}`)
}

for (const engine of engines)
  describe(`pages of other origins on ${engine.name}`, () => {
    test('get no CORS headers unless an origin is allowed, and OPTIONS answers as usual', async t => {
      const service = await startService(t, engine, { records: [makeRecord()] })
      for (const answer of [
        await service.get(path, { headers: { origin: app } }),
        await service.get(path, preflight(app)),
        await service.get('/nothing', preflight(app)),
      ]) {
        assertUnreadable(answer)
        assert.equal(answer.headers.vary, undefined)
      }
      assert.equal((await service.get('/nothing', preflight(app))).status, 404)
    })

    test('may read every answer when their origin is allowed, and none otherwise', async t => {
      const service = await startService(t, engine, {
        records: [makeRecord({ id: 'in_1' })],
        rateLimit: { requests: 12, seconds: 3_600 },
        corsOrigins: [app, other],
      })
      const { etag = '' } = (await service.list()).headers
      const asked: [number, string, RequestOptions?][] = [
        [200, path],
        [200, path, { method: 'HEAD' }],
        [304, path, { headers: { 'if-none-match': etag } }],
        [200, '/api/v1/client/cus_ana/invoice/in_1'],
        [404, '/api/v1/client/cus_ana/invoice/in_none'],
        [502, '/api/v1/client/cus_ana/invoice/in_1/payments/download'],
        [400, `${path}?page=x`],
        [401, path, { token: null }],
        [404, '/nothing'],
        [400, '/%'],
        [405, path, { method: 'POST', headers: { 'content-type': 'text/plain' } }],
        [204, path, { method: 'OPTIONS' }],
        [200, '/live'],
        [200, '/api/v1/openapi.json'],
        [414, `/${'x'.repeat(9_000)}`],
      ]
      for (const origin of [app, other, stranger])
        for (const [status, url, options = {}] of asked) {
          const token = options.token === undefined ? await service.createToken() : null
          const headers = { ...options.headers, origin }
          const answer = await service.get(url, { ...options, token, headers })
          assert.equal(answer.status, status, `${url}: ${answer.text}`)
          if (origin === stranger) {
            assertUnreadable(answer)
            assert.equal(answer.headers.vary, 'Origin')
          } else assertReadable(answer, origin)
        }
      const token = await service.createToken()
      let limited = await service.list('', { token, headers: { origin: app } })
      while (limited.status === 200) limited = await service.list('', { token, headers: { origin: app } })
      assertError(limited, 429, 'rate_limited')
      assertReadable(limited, app)
    })

    test('may send a preflight for any path, whose answer is cached', async t => {
      const service = await startService(t, engine, { corsOrigins: [app] })
      for (const url of [path, '/live', '/nothing', '/%', '/api/v1/client/bad/invoices'])
        for (const method of ['GET', 'HEAD', 'DELETE']) {
          const answer = await service.get(url, preflight(app, method))
          assert.equal(answer.status, 204, url)
          assert.equal(answer.text, '')
          assertReadable(answer, app)
          assert.equal(answer.headers['access-control-allow-methods'], 'GET, HEAD')
          assert.equal(
            answer.headers['access-control-allow-headers'],
            'Authorization, If-None-Match, Traceparent',
          )
          assert.equal(answer.headers['access-control-max-age'], '7200')
          assert.match(String(answer.headers['request-id']), /^req_/)
        }
      assertUnreadable(await service.get(path, preflight(stranger)))
      assert.equal((await service.get(path, preflight(stranger))).status, 204)
      assertError(await service.get('/nothing', preflight(stranger)), 404, 'route_not_found')
      const plain = await service.get(path, { method: 'OPTIONS', token: null })
      assert.deepEqual([plain.status, plain.headers.allow], [204, 'GET, HEAD, OPTIONS'])
      assertUnreadable(plain)
      const lines = service.logs.filter(line => line.includes('"method":"OPTIONS"'))
      assert.ok(lines.length >= 15, 'each has its line in the log')
    })

    test('must have exactly an allowed origin', async t => {
      const service = await startService(t, engine, { corsOrigins: [app] })
      for (const origin of [
        ...['null', '*', '', 'app.example.com', 'http://app.example.com', `${app}:443`, `${app}/`],
        ...[`${app}.evil.example`, 'https://evilapp.example.com', app.toUpperCase(), `${app}, ${app}`],
      ])
        assertUnreadable(await service.get('/live', { headers: { origin } }))
    })

    test('may read the answer to an unreadable request', async t => {
      const service = await startService(t, engine, { corsOrigins: [app] })
      const head = `Host: x\r\nOrigin: ${app}\r\n`
      const unreadable: [number, string][] = [
        [400, `GET /live HTTP/1.1\r\n${head}Bad Header: 1\r\n\r\n`],
        [405, `FOO /live HTTP/1.1\r\n${head}\r\n`],
        [431, `GET /live HTTP/1.1\r\n${head}X-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
        [400, `GET /live HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n`],
        [400, `GET /live HTTP/1.1\r\n${head}Transfer-Encoding: identity\r\n\r\n`],
        [413, `GET /live HTTP/1.1\r\n${head}Content-Length: 9000\r\n\r\n`],
      ]
      for (const [status, bytes] of unreadable) {
        const [answer] = await sendRaw(service.port, bytes)
        assert.ok(answer !== undefined)
        assert.equal(answer.status, status, bytes.slice(0, 80))
        assertReadable(answer, app)
        const [unknown] = await sendRaw(service.port, bytes.replace(app, stranger))
        assert.ok(unknown !== undefined)
        assert.equal(unknown.status, status)
        assertUnreadable(unknown)
      }
    })
  })
