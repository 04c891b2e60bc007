/** The admin port, beside a service as people run it. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import {
  assertOneLine,
  type Cli,
  createCli,
  eventually,
  isRefused,
  occupyPort,
  type Serving,
} from '../../support/clients/cli.ts'
import { openRaw, sendRaw } from '../../support/clients/raw-client.ts'
import { refusalOf } from '../../support/worlds/settings.ts'

const token = 'an-admin-token-of-the-test'
const publicUrl = 'https://billing.example.com'
const key = {
  ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }),
  kid: 'key_0123456789aB',
}
const env = {
  ADMIN_PORT: '0',
  ADMIN_TOKEN: token,
  CUSTOMER_LINK_KEY: JSON.stringify(key),
  PUBLIC_URL: publicUrl,
}

interface Asked {
  method?: string
  authorization?: string | null
  type?: string | null
  body?: string
}

/** A service and its admin port. */
async function startAdmin(cli: Cli, args: string[] = [], given: Record<string, string> = env) {
  const serving = await cli.serve(['--migrate', ...args], { env: given })
  const address = await findAdmin(serving)
  const ask = async (path: string, asked: Asked = {}) => {
    const { method = 'GET', authorization = `Bearer ${token}`, type = 'application/json', body } = asked
    const headers: Record<string, string> = {}
    if (authorization !== null) headers.authorization = authorization
    if (type !== null && body !== undefined) headers['content-type'] = type
    const response = await fetch(address + path, { method, headers, ...(body !== undefined && { body }) })
    const text = await response.text()
    return { status: response.status, headers: response.headers, json: text === '' ? null : JSON.parse(text) }
  }
  const post = (body: unknown, asked: Asked = {}) =>
    ask('/links', { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), ...asked })
  return { serving, address, port: Number(new URL(address).port), ask, post }
}

async function findAdmin(serving: Serving): Promise<string> {
  const [, address = ''] = await serving.waitFor(
    /"address":"(http:[^"]+)","msg":"listening for administration"/,
  )
  return address
}

describe('the admin port', { concurrency: 3 }, () => {
  it('creates links, shows the state of the service, and refuses other requests with the API’s errors', async t => {
    const cli = await createCli(t)
    const { serving, address, port, ask, post } = await startAdmin(cli)
    assert.match(address, /^http:\/\/127\.0\.0\.1:\d+$/, 'on this machine alone')
    assert.notEqual(port, serving.port)
    for (const path of ['/live', '/ready'])
      for (const authorization of [null, 'Bearer wrong']) {
        const { status, json } = await ask(path, { authorization })
        assert.deepEqual([status, json], [200, { status: 'ok' }])
      }

    for (const [body, ttl, invoice] of [
      [{ customer: 'cus_ana' }, 3_600, undefined],
      [{ customer: 'cus_ana', invoice: 'in_1', ttl: 60 }, 60, 'in_1'],
      [{ customer: 'cus_ana', ttl: 86_400 }, 86_400, undefined],
    ] as const) {
      const { status, json } = await post(body)
      assert.equal(status, 200)
      assert.deepEqual(Object.keys(json), ['url', 'expires_at'])
      const [start, claims = ''] = json.url.split('.').slice(-3)
      assert.equal(start.split('/#t=').length, 2)
      assert.ok(json.url.startsWith(`${publicUrl}/#t=`))
      const { sub, aud, iat, exp, ...rest } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      assert.deepEqual([sub, aud, exp - iat], ['cus_ana', publicUrl, ttl])
      assert.deepEqual(rest, invoice === undefined ? {} : { invoice })
      assert.equal(json.expires_at, new Date(exp * 1_000).toISOString())
    }

    const good = '{"customer":"cus_ana"}'
    const refused: [number, string, string, Asked][] = [
      [401, 'missing_token', '/links', { method: 'POST', body: good, authorization: null }],
      [401, 'invalid_token', '/links', { method: 'POST', body: good, authorization: 'Bearer wrong' }],
      [401, 'invalid_token', '/links', { method: 'POST', body: good, authorization: `Bearer ${token}x` }],
      [401, 'invalid_token', '/links', { method: 'POST', body: good, authorization: `Basic ${token}` }],
      [401, 'missing_token', '/links', { authorization: null }],
      [404, 'route_not_found', '/', {}],
      [404, 'route_not_found', '/api/v1/openapi.json', {}],
      [404, 'route_not_found', '/links/', { method: 'POST', body: good }],
      [405, 'method_not_allowed', '/links', {}],
      [405, 'method_not_allowed', '/links', { method: 'DELETE' }],
      [405, 'method_not_allowed', '/live', { method: 'POST', body: good }],
      [415, 'unsupported_media_type', '/links', { method: 'POST', body: good, type: 'text/plain' }],
      [415, 'unsupported_media_type', '/links', { method: 'POST', body: good, type: 'application/jsonp' }],
      [413, 'payload_too_large', '/links', { method: 'POST', body: ' '.repeat(4_097) }],
    ]
    for (const body of [
      ...['', 'x', '[]', 'null', '"cus_ana"', '{}', '{"customer":"ana"}', '{"customer":["cus_ana"]}'],
      ...['{"customer":"cus_ana","invoice":null}', '{"customer":"cus_ana","invoice":"cus_ana"}'],
      ...['{"customer":"cus_ana","ttl":0}', '{"customer":"cus_ana","ttl":86401}'],
      ...['{"customer":"cus_ana","ttl":"60"}', '{"customer":"cus_ana","ttl":1.5}'],
      ...['{"customer":"cus_ana","customer":"cus_rui"}', '{"customer":"cus_ana","ttl":60,"tt\\u006c":90}'],
      ...['{"customer":"cus_ana","more":1}', '{"customer":"cus_ana","__proto__":{}}'],
    ])
      refused.push([400, 'invalid_request', '/links', { method: 'POST', body }])
    for (const [status, code, path, asked] of refused) {
      const { json, headers, ...answer } = await ask(path, asked)
      assert.equal(answer.status, status, `${path} ${JSON.stringify(asked)}`)
      assert.deepEqual(Object.keys(json), ['error'])
      assert.deepEqual(Object.keys(json.error), ['code', 'message', 'request_id'])
      assert.equal(json.error.code, code)
      assert.ok(json.error.message.length > 10)
      assert.equal(json.error.request_id, headers.get('request-id'))
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      if (status === 401) assert.match(String(headers.get('www-authenticate')), /^Bearer realm=/)
      if (status === 405) assert.equal(headers.get('allow'), path === '/live' ? 'GET, HEAD' : 'POST')
    }
    assert.equal(
      (await ask('/links', { method: 'OPTIONS' })).headers.get('access-control-allow-origin'),
      null,
    )
    const head = await ask('/live', { method: 'HEAD' })
    assert.deepEqual([head.status, head.json], [200, null])

    // Bytes that never become a request, a body that breaks off, and one that comes in chunks and is too large.
    for (const [bytes, status] of [
      ['garbage\r\n\r\n', 400],
      ['GET /live HTTP/1.1\r\n\r\n', 400],
      [`POST /links HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      [
        `POST /links HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n${' '.repeat(0x2000)}\r\n`,
        413,
      ],
    ] as const) {
      const [answer] = await sendRaw(port, bytes)
      assert.ok(answer !== undefined, bytes.slice(0, 40))
      assert.equal(answer.status, status, bytes.slice(0, 40))
      assert.equal(answer.headers['x-content-type-options'], 'nosniff')
      assert.ok(answer.json.error.request_id.startsWith('req_'))
    }
    const cut = openRaw(
      port,
      `POST /links HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    )
    cut.socket.end()
    await cut.ended
    cut.socket.destroy()
    assert.equal((await ask('/live')).status, 200)

    // The public port is as ever.
    assert.equal((await fetch(`${serving.address}/links`, { method: 'POST' })).status, 404)
    const { stdout } = await serving.stop()
    assert.doesNotMatch(stdout, /eyJ[\w-]{12}/, 'no link is logged')
    assert.match(stdout, /"port":"admin","method":"POST","route":"\/links","status":200/)
    assert.ok(await isRefused(port))
  })

  it('refuses a request with two tokens, and limits and logs wrong tokens by client address', async t => {
    const cli = await createCli(t)
    const { serving, port, ask } = await startAdmin(cli)
    const get = (target: string, ...lines: string[]) =>
      sendRaw(port, [`GET ${target} HTTP/1.1`, 'Host: x', 'Connection: close', ...lines, '', ''].join('\r\n'))
    const right = `Authorization: Bearer ${token}`
    const [twice] = await get('/metrics', right, 'authorization: Bearer other')
    assert.deepEqual([twice?.status, twice?.json.error.code], [400, 'invalid_request'])
    for (const target of ['http://x/live', 'HTTP://x:4012/metrics?a=b'])
      assert.equal((await get(target, right))[0]?.status, 200, target)
    assert.equal((await get('http://x/nothing', right))[0]?.status, 404)

    const statuses: number[] = []
    for (let i = 0; i < 22; i++) {
      const { status, headers } = await ask('/metrics', { authorization: `Bearer wrong${i}` })
      statuses.push(status)
      if (status === 429) assert.match(String(headers.get('retry-after')), /^\d+$/)
    }
    assert.deepEqual([statuses.filter(status => status === 401).length, statuses.at(-1)], [20, 429])
    assert.equal((await get('/metrics', right))[0]?.status, 200, 'the right token is never refused for them')
    const { stdout } = await serving.stop()
    assert.match(stdout, /"status":401,"client":"127\.0\.0\.1","msg":"request"/)
    assert.equal(
      stdout.match(/"client":"127\.0\.0\.1","msg":"an address sent too many wrong ADMIN_TOKENs"/g)?.length,
      1,
    )
    assert.doesNotMatch(stdout, /wrong\d/)
  })

  it('without CUSTOMER_LINK_KEY creates no links and names the setting, in serve and up', async t => {
    const cli = await createCli(t)
    const up = cli.start(['up', '--port', '0'], { env: { ADMIN_PORT: '0', ADMIN_TOKEN: token } })
    const [, address = ''] = await up.waitFor(/"address":"(http:[^"]+)","msg":"listening for administration"/)
    await eventually('it is ready', async () => (await fetch(`${address}/ready`)).status === 200)
    const response = await fetch(`${address}/links`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"customer":"cus_ana"}',
    })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    assert.deepEqual([response.status, error.code], [503, 'not_configured'])
    assert.match(error.message, /CUSTOMER_LINK_KEY.*PUBLIC_URL/)
    assert.equal((await up.stop()).code, 0)
  })

  it('stops the start with one line when a setting is wrong or its port is in use', async t => {
    const cli = await createCli(t)
    await cli.load()
    const port = await occupyPort(t)
    const refused: [Record<string, string>, ...RegExp[]][] = [
      [{ ADMIN_TOKEN: '' }, /ADMIN_TOKEN is required/, /ADMIN_PORT/],
      [{ ADMIN_TOKEN: 'short' }, /ADMIN_TOKEN must be/, /20/],
      [{ ADMIN_PORT: 'yes' }, /ADMIN_PORT must be/],
      [{ ADMIN_PORT: String(port) }, /in use/, /ADMIN_PORT/],
      [{ ADMIN_HOST: '192.0.2.1' }, /192\.0\.2\.1/, /ADMIN_HOST/],
      [{ CORS_ORIGINS: '*' }, /CORS_ORIGINS must be/, /https:\/\/app\.example\.com/],
    ]
    for (const [wrong, ...patterns] of refused)
      assertOneLine(await cli.run(['serve', '--port', '0'], { env: { ...env, ...wrong } }), ...patterns)
    for (const origins of ['https://app.example.com/', 'https://app.example.com,null'])
      assert.match(refusalOf('CORS_ORIGINS', origins), /^CORS_ORIGINS must be/)
  })
})
