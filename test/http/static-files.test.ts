/** Files for browsers beside the API: their encodings, headers and policies; every other answer stays the same. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { type AppOptions, createApp } from '../../src/http/app.ts'

import { loadWebFiles, readApiDescription } from '../../src/http/web-files.ts'
import { engines } from '../support/databases/engines.ts'
import { assertError, startService } from '../support/worlds/service.ts'

const apiDescription = readApiDescription()
const document = JSON.parse(apiDescription.toString())

/** A service without a store: none of these needs one. Bodies are bytes as they come. */
async function startFiles(t: TestContext, options: Pick<AppOptions, 'corsOrigins'> = {}) {
  const files = loadWebFiles(apiDescription)
  const app = createApp({ rateLimit: null, files, ...options } as unknown as AppOptions)
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => app.close())
  return async (path: string, headers: Record<string, string> = {}) => {
    const [answer] = await once(get(`${address}${path}`, { headers, agent: false }), 'response')
    const { statusCode, headers: given } = answer as IncomingMessage
    return { status: statusCode, headers: given, body: await buffer(answer) }
  }
}

describe('files for browsers', () => {
  const paths = () => loadWebFiles(apiDescription).map(({ path }) => path)

  test('are sent as br, gzip or plain by the client’s choice, with separate ETags and 304', async t => {
    const ask = await startFiles(t)
    for (const path of ['/docs', '/llms.txt']) {
      const plain = await ask(path)
      const br = await ask(path, { 'accept-encoding': 'gzip, deflate, br' })
      const gzip = await ask(path, { 'accept-encoding': 'gzip;q=0.8, br;q=0, identity;q=0.1' })
      assert.deepEqual(
        [plain, br, gzip].map(({ status, headers }) => [status, headers['content-encoding']]),
        [
          [200, undefined],
          [200, 'br'],
          [200, 'gzip'],
        ],
      )
      assert.deepEqual(brotliDecompressSync(br.body), plain.body)
      assert.deepEqual(gunzipSync(gzip.body), plain.body)
      assert.equal(new Set([plain, br, gzip].map(({ headers }) => headers.etag)).size, 3)
      for (const answer of [plain, br]) {
        assert.equal(answer.headers.vary, 'accept-encoding')
        assert.equal(answer.headers['cache-control'], 'no-cache')
        assert.match(String(answer.headers['content-type']), /^text\/(html|plain); charset=utf-8$/)
      }
      const held = await ask(path, { 'accept-encoding': 'br', 'if-none-match': String(br.headers.etag) })
      assert.deepEqual([held.status, held.body.length, held.headers.etag], [304, 0, br.headers.etag])
      const other = await ask(path, { 'accept-encoding': 'gzip', 'if-none-match': String(br.headers.etag) })
      assert.equal(other.status, 200)
    }
  })

  test('have Origin in the header Vary when other origins may read answers', async t => {
    const ask = await startFiles(t, { corsOrigins: ['https://app.example.com'] })
    const { headers } = await ask('/fatura-invoices.js', { origin: 'https://app.example.com' })
    assert.equal(headers['access-control-allow-origin'], 'https://app.example.com')
    assert.equal(headers.vary, 'Origin, accept-encoding')
  })

  test('are cached for a year when they are scripts with a hash in the name, and the large script is compressed', async t => {
    const ask = await startFiles(t)
    const scripts = paths().filter(path => /^\/docs\/.*\.js$/.test(path))
    assert.equal(scripts.length, 2)
    for (const path of scripts) {
      assert.match(path, /^\/docs\/(scalar|start)-[0-9a-f]{16}\.js$/)
      const { headers } = await ask(path)
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
      assert.equal(headers['content-type'], 'text/javascript; charset=utf-8')
    }
    const large = scripts.find(path => path.includes('scalar')) ?? ''
    for (const [accepted, encoding] of [
      ['br', 'br'],
      ['*', 'br'],
      ['gzip', 'gzip'],
      ['identity', 'gzip'],
    ] as const) {
      const { headers, body } = await ask(large, { 'accept-encoding': accepted })
      assert.equal(headers['content-encoding'], encoding)
      assert.ok(body.length < 1_400_000, `${body.length} bytes`)
    }
  })

  test('include a text for language models with every operation and every error', async t => {
    const ask = await startFiles(t)
    const llms = (await ask('/llms.txt')).body.toString()
    for (const [path, { get: operation }] of Object.entries<{ get: { security: [] } }>(document.paths))
      assert.ok(operation.security.length === 0 || llms.includes(`GET ${path}`), path)
    const codes = [...JSON.stringify(document.paths).matchAll(/"error":\{"code":"(\w+)"/g)]
    assert.ok(codes.length > 10)
    for (const [, code = ''] of codes) assert.ok(llms.includes(`\`${code}\``), code)
  })
})

for (const engine of engines) {
  describe(`files for browsers on ${engine.name}`, () => {
    const policy = "default-src 'none'; frame-ancestors 'none'"

    test('have their own content policy by path, and every other answer has the strict one', async t => {
      const service = await startService(t, engine, { web: true })
      const policies = new Map<string, string>()
      for (const { path } of loadWebFiles(apiDescription)) {
        const answer = await service.get(path, { token: null, headers: { 'accept-encoding': 'gzip' } })
        assert.equal(answer.status, 200, path)
        policies.set(path, String(answer.headers['content-security-policy']))
        assert.equal(answer.headers['x-content-type-options'], 'nosniff')
        assert.equal(answer.headers['referrer-policy'], 'no-referrer')
        assert.match(String(answer.headers['request-id']), /^req_/)
      }
      assert.match(
        policies.get('/docs') ?? '',
        /^default-src 'none'; .*frame-ancestors 'none'; script-src 'self'; style-src 'unsafe-inline'/,
      )
      for (const [path, given] of policies) {
        assert.doesNotMatch(given, /unsafe-eval|http:|\*/)
        if (path !== '/docs') assert.doesNotMatch(given, /unsafe-inline/)
        if (/^\/docs\/.*js$|txt$/.test(path)) assert.equal(given, policy)
      }
      for (const path of ['/live', '/docs/', '/docs/none.js', '/api/v1/client/cus_ana/invoices'])
        assert.equal((await service.get(path)).headers['content-security-policy'], policy)
    })

    test('answer HEAD and OPTIONS, refuse other methods, and are missing when they are switched off', async t => {
      const service = await startService(t, engine, { web: true })
      const off = await startService(t, engine)
      for (const { path } of loadWebFiles(apiDescription)) {
        const get = await service.get(path)
        const head = await service.get(path, { method: 'HEAD' })
        assert.deepEqual([head.status, head.text], [200, ''])
        assert.equal(head.headers['content-length'], get.headers['content-length'])
        assert.equal((await service.get(path, { method: 'OPTIONS' })).status, 204)
        assertError(await service.get(path, { method: 'POST' }), 405, 'method_not_allowed')
        assertError(await off.get(path), 404, 'route_not_found')
      }
    })
  })
}
