/** Every error, on every route and from every layer, has one JSON shape; only GET, HEAD and OPTIONS are served. */
import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { type Engine, engines } from '../support/databases/engines.ts'
import { makeRecord } from '../support/worlds/records.ts'
import { type Answer, assertError, shareService, startService } from '../support/worlds/service.ts'

const routes = [
  '/live',
  '/ready',
  '/api/v1/openapi.json',
  '/api/v1/client/cus_ana/invoices',
  '/api/v1/client/cus_ana/invoice/in_1',
  '/api/v1/client/cus_ana/invoice/in_1/ix/download',
  '/api/v1/client/cus_ana/invoice/in_1/payments/download',
]

/** The bytes from a bare socket, as an answer. */
function parse(raw: string): Answer {
  const [head = '', text = ''] = raw.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map(line => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  assert.equal(headers['content-length'], String(Buffer.byteLength(text)), raw)
  return { status: Number(first.split(' ')[1]), headers, text, json: JSON.parse(text) }
}

// Ten seconds, in which nothing happens: beside all others.
describe('HTTP errors', { concurrency: true }, () => {
  test('a request that does not arrive completely in time gets 408', { timeout: 600_000 }, async t => {
    const service = await startService(t, engines[0] as Engine)
    assertError(parse(await service.send('GET /live HTTP/1.1\r\nHost: x\r\n')), 408, 'request_timeout')
  })

  for (const engine of engines) {
    describe(`on ${engine.name}`, { concurrency: 1 }, () => {
      const service = shareService(engine, { records: [makeRecord({ id: 'in_1' })] })
      test('an unknown path gets 404 route_not_found, with or without a token', async () => {
        const paths = [
          '/',
          '/api',
          '/api/v1',
          '/api/v2/client/cus_ana/invoices',
          '/api/v1/client/cus_ana',
          '/api/v1/client/cus_ana/invoices/',
          '/api/v1/client/cus_ana/invoice/in_1/other/download',
          '/API/v1/openapi.json',
          '//live',
          '/live/',
          '/api/v1/client//invoices/x',
          '/.env',
          '/api/v1/client/cus_ana/../cus_bob/invoices',
          '/api/v1/client/cus_ana/invoices%2F',
        ]
        for (const path of paths) {
          assertError(await service().get(path), 404, 'route_not_found')
          assertError(await service().get(path, { token: null }), 404, 'route_not_found')
        }
      })

      test('any other method gets 405 with Allow, before its body or token is read', async () => {
        const refused = METHODS.filter(method => !['GET', 'HEAD', 'OPTIONS', 'CONNECT'].includes(method))
        assert.ok(refused.includes('POST') && refused.includes('PROPFIND') && refused.includes('TRACE'))
        for (const path of routes)
          for (const method of refused) {
            const answer = await service().get(path, { method, token: null })
            assertError(answer, 405, 'method_not_allowed')
            assert.equal(answer.headers.allow, 'GET, HEAD, OPTIONS')
          }
        const posted = await service().get(routes[3] as string, {
          method: 'POST',
          body: '{"a":',
          headers: { 'content-type': 'x/y' },
        })
        assertError(posted, 405, 'method_not_allowed')
      })

      test('an unknown method gets 405, and CONNECT closes the connection', async () => {
        assert.equal(await service().send('CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n'), '')
        for (const line of ['FOO /live', 'BREW /api/v1/client/cus_ana/invoices']) {
          const answer = parse(await service().send(`${line} HTTP/1.1\r\nHost: x\r\n\r\n`))
          assertError(answer, 405, 'method_not_allowed')
          assert.equal(answer.headers.allow, 'GET, HEAD, OPTIONS')
        }
      })

      test('OPTIONS gets 204 with Allow on every route', async () => {
        for (const path of routes) {
          const { status, headers, text } = await service().get(path, { method: 'OPTIONS', token: null })
          assert.deepEqual([status, headers.allow, text], [204, 'GET, HEAD, OPTIONS', ''])
        }
      })

      test('HEAD gets the headers of GET without a body on every route, also for errors', async () => {
        for (const path of [
          ...routes,
          '/nothing',
          '/api/v1/client/bad/invoices',
          '/api/v1/client/cus_ana/invoice/in_none',
        ]) {
          const get = await service().get(path)
          const head = await service().get(path, { method: 'HEAD' })
          assert.deepEqual([head.status, head.text], [get.status, ''], path)
          const { date: _1, 'request-id': _2, ...getHeaders } = get.headers
          const { date: _3, 'request-id': _4, ...headHeaders } = head.headers
          assert.deepEqual(headHeaders, getHeaders, path)
        }
      })

      test('a request that the HTTP parser refuses gets 400, and the connection closes', async () => {
        for (const bytes of [
          'nonsense\r\n\r\n',
          'GET /live HTTP/9.9\r\n\r\n',
          'GET /live HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n',
          'GET /live HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n',
          'GET /live HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
          'GET /live\u0000 HTTP/1.1\r\nHost: x\r\n\r\n',
          '\u0016\u0003\u0001\u0002\u0000\u0001\u0000',
          'GET /live HTTP/1.1\r\nConnection: close\r\n\r\n',
        ])
          assertError(parse(await service().send(bytes)), 400, 'invalid_request')
      })

      test('a path with invalid encoding gets 400, and encoded slashes never reach another route', async () => {
        for (const path of [
          '/%',
          '/%zz',
          '/api/v1/client/cus_%ff/invoices',
          '/api/v1/client/cus_ana/invoice/in_%c3%28',
        ])
          assertError(await service().get(path), 400, 'invalid_request')
        for (const path of [
          '/api/v1/client/cus_ana%2Finvoices',
          '/api/v1/client/cus_x%2F..%2Fcus_ana/invoices',
          '/api/v1/client/%2e%2e%2fcus_ana/invoices',
          '/api/v1/client/cus_ana/invoice/..%2Finvoices',
          '/api/v1/client/cus_ana/invoice/in_1%2Fix%2Fdownload',
          '/api/v1/client/cus_ana/invoice/%2e%2e/in_1',
          '/api/v1/client/cus_ana\\invoices',
          '/api/v1/client/cus_ana;x=1/invoices',
        ])
          assert.ok([400, 404].includes((await service().get(path)).status), path)
      })

      test('a URL over 8,192 bytes gets 414, headers over 16 KiB 431, a body over 8 KiB 413', async () => {
        assertError(await service().get(`/live?${'x'.repeat(8_300)}`), 414, 'uri_too_long')
        assertError(
          parse(await service().send(`GET /live?${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)),
          414,
          'uri_too_long',
        )
        const long = await service().send(
          `GET /live HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`,
        )
        assertError(parse(long), 431, 'headers_too_large')
        const body = await service().get('/live', {
          body: 'x'.repeat(9_000),
          headers: { 'content-length': '9000' },
        })
        assertError(body, 413, 'payload_too_large')
        assert.equal(body.headers.connection, 'close')
        const fits = `/api/v1/client/cus_ana/invoices?unknown=${'x'.repeat(8_000)}`
        assert.equal((await service().get(fits)).status, 200)
      })

      test('a small body of a request is ignored', async () => {
        const { status, headers } = await service().get('/live', {
          body: '{}',
          headers: { 'content-length': '2' },
        })
        assert.deepEqual([status, headers.connection], [200, 'keep-alive'])
        const chunked = await service().get('/live', {
          body: '{}',
          headers: { 'transfer-encoding': 'chunked' },
        })
        assert.deepEqual([chunked.status, chunked.headers.connection], [200, 'keep-alive'])
      })

      test('an unknown Expect header is ignored, and the answer has a request ID', async () => {
        const raw = await service().send(
          'GET /live HTTP/1.1\r\nHost: x\r\nExpect: a-pony\r\nConnection: close\r\n\r\n',
        )
        assert.match(raw.toString(), /^HTTP\/1\.1 200 [\s\S]*\r\nrequest-id: req_/)
      })

      test('a client that leaves during its request does not affect other clients', async () => {
        for (let i = 0; i < 20; i++) {
          const socket = connect(service().port, '127.0.0.1')
          socket.on('error', () => {})
          socket.write('GET /api/v1/client/cus_ana/invoices HTTP/1.1\r\nHost: x\r\n')
          await new Promise(resolve => setImmediate(resolve))
          socket.destroy()
        }
        assert.equal((await service().get('/ready')).status, 200)
      })

      test('every request ID is new, of equal length and logged, and shows nothing of other requests', async () => {
        const answers = [
          await service().get('/live'),
          await service().get('/nothing'),
          await service().list('?page=x'),
        ]
        const ids = answers.map(({ headers }) => String(headers['request-id']))
        assert.equal(new Set(ids).size, 3)
        for (const id of ids) {
          assert.match(id, /^req_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
          assert.equal(service().logs.filter(line => line.includes(id)).length, 1)
        }
        // Were there a counter in it, however written, ids would rise, or differ in their last characters alone.
        const many: string[] = []
        for (let i = 0; i < 100; i++) many.push(String((await service().get('/live')).headers['request-id']))
        assert.equal(new Set(many).size, 100)
        for (const place of [4, 8, 14, 20, 28, 39])
          assert.ok(new Set(many.map(id => id[place])).size > 8, `little chance in place ${place}`)
        assert.notDeepEqual(many, many.toSorted())
      })

      test('an unexpected error gets 500 internal, with details only in the log', async t => {
        const service = await startService(t, engine, {
          records: [makeRecord({ id: 'in_1' })],
          payments: {
            fetchLines: async () => null,
            openPdf: async () => {
              throw new TypeError('detail for the log alone')
            },
          },
        })
        const answer = await service.get('/api/v1/client/cus_ana/invoice/in_1/payments/download')
        assertError(answer, 500, 'internal')
        assert.doesNotMatch(answer.text, /for the log alone|TypeError|\.ts/)
        assert.ok(
          service.logs.some(line => line.includes('detail for the log alone') && line.includes('.ts')),
        )
      })

      test('the log has one line per request, without its URL, search term or invalid IDs', async t => {
        const service = await startService(t, engine, { records: [makeRecord({ id: 'in_1' })] })
        await service.list('?q=canary&ix_status=canary')
        await service.list('?page=canary')
        await service.get('/api/v1/client/canary@lima.example/invoices')
        await service.get('/canary?access_token=canary')
        assert.equal(service.logs.length, 4)
        const line = JSON.parse(service.logs[0] as string)
        assert.deepEqual(Object.keys(line).sort(), [
          'customer_id',
          'level',
          'method',
          'ms',
          'msg',
          'request_id',
          'route',
          'status',
          'time',
          'token_id',
        ])
        assert.deepEqual(
          [line.method, line.route, line.status, line.customer_id],
          ['GET', '/api/v1/client/:customerId/invoices', 200, 'cus_ana'],
        )
      })

      test('/live and /ready need no token', async () => {
        for (const path of ['/live', '/ready']) {
          const { status, json } = await service().get(path, { token: null })
          assert.deepEqual([status, json], [200, { status: 'ok' }])
        }
      })

      test('every answer has security headers and names no server software', async () => {
        const answers: Answer[] = []
        for (const path of [...routes, '/nothing', '/%', '/api/v1/client/bad/invoices'])
          for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'])
            for (const token of [undefined, null, 'fat_wrong'])
              answers.push(await service().get(path, token === undefined ? { method } : { method, token }))
        const { etag = '' } = (await service().list()).headers
        answers.push(await service().list('', { headers: { 'if-none-match': etag } }))
        for (const bytes of [
          'garbage\r\n\r\n',
          'GET /live HTTP/1.1\r\n\r\n',
          'GET /live HTTP/2.0\r\n\r\n',
          'FOO / HTTP/1.1\r\nHost: x\r\n\r\n',
          'GET /live HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n',
          `GET /live HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`,
          `GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
          'GET /live HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n',
        ])
          answers.push(parse(await service().send(bytes)))
        const seen = new Set(answers.map(({ status }) => status))
        for (const status of [200, 204, 304, 400, 401, 404, 405, 413, 414, 431])
          assert.ok(seen.has(status), `${status}`)
        for (const { status, headers } of answers) {
          assert.equal(headers['x-content-type-options'], 'nosniff', `${status}`)
          assert.equal(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'")
          assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
          assert.equal(headers['referrer-policy'], 'no-referrer')
          assert.equal(headers.server ?? headers['x-powered-by'], undefined)
        }
      })
    })
  }
})
