/** JWTs and customer links over HTTP: who sees what, what the others are told, and where a client learns to get a token. */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { openWriteStore } from '../../src/store/engines.ts'
import { type Engine, engines } from '../support/databases/engines.ts'
import {
  issuer,
  type LinkSigner,
  makeLinkSigner,
  publicUrl,
  signJwt,
  startProvider,
} from '../support/worlds/identity.ts'
import { makeRecord, withDocument } from '../support/worlds/records.ts'
import { type Answer, assertError, type ServiceOptions, startService } from '../support/worlds/service.ts'
import { stopClock } from '../support/worlds/stopped-clock.ts'

const client = '/api/v1/client/cus_ana'
const metadata = '/.well-known/oauth-protected-resource'

async function start(
  t: TestContext,
  engine: Engine,
  options: ServiceOptions = {},
  scope: string | null = null,
) {
  const provider = await startProvider(t)
  const records = ['in_1', 'in_2'].map((id, n) => makeRecord({ ...withDocument, ix_id: n + 1, id }))
  const bobs = makeRecord({ ...withDocument, ix_id: 9, id: 'in_bob', customer_id: 'cus_bob' })
  const service = await startService(t, engine, {
    records: [...records, bobs],
    provider: { ...provider.options, scope },
    publicUrl,
    ...options,
  })
  const signer = await addSigner(service)
  return { service, provider, signer }
}

async function addSigner(service: { store: { saveKey(key: LinkSigner['key']): Promise<void> } }) {
  const signer = makeLinkSigner()
  await service.store.saveKey(signer.key)
  return signer
}

const comparable = ({ status, headers, text }: Answer) => {
  const { date, 'request-id': id, ratelimit, ...rest } = headers
  return { status, rest, text: text.replace(String(id), '') }
}

/** One service and provider for a suite; with each call comes a signer of its own, whose key may be revoked. */
function shareIdentity(engine: Engine) {
  let world: Awaited<ReturnType<typeof start>> | undefined
  const endings: (() => unknown)[] = []
  before(async () => {
    const suite: Pick<TestContext, 'after'> = { after: end => void endings.unshift(end as () => unknown) }
    world = await start(suite as TestContext, engine)
  })
  after(async () => {
    for (const end of endings) await end()
  })
  return async () => {
    assert.ok(world !== undefined)
    return { ...world, signer: await addSigner(world.service) }
  }
}

for (const engine of engines)
  describe(`JWTs and customer links on ${engine.name}`, () => {
    const share = shareIdentity(engine)

    test('show the same lists, details, downloads and conditional answers as a token', async () => {
      const { service, provider, signer } = await share()
      const opaque = await service.createToken({ customers: ['cus_ana'] })
      for (const path of ['/invoices', '/invoices?status=paid', '/invoice/in_1', '/invoice/in_1/ix/download'])
        for (const method of ['GET', 'HEAD'])
          for (const headers of [{}, { 'if-none-match': '*' }] as Record<string, string>[]) {
            const [expected, ...others] = await Promise.all(
              [opaque, provider.token(), signer.token()].map(token =>
                service.get(client + path, { method, token, headers }),
              ),
            )
            for (const answer of others)
              assert.deepEqual(comparable(answer), comparable(expected as Answer), `${method} ${path}`)
          }
      const ids = service.logs.map(line => JSON.parse(line).token_id)
      assert.ok(ids.includes(`${signer.key.kid}:cus_ana`))
      assert.ok(ids.some(id => /^jwt_[0-9a-f]{16}$/.test(id)))
      assert.ok(!service.logs.some(line => line.includes('canary')))
    })

    test('show only one invoice’s detail and downloads when a link is bound to that invoice', async () => {
      const { service, signer } = await share()
      const token = signer.token({ invoice: 'in_1' })
      const ask = (path: string, method = 'GET', headers: Record<string, string> = {}) =>
        service.get(path, { token, method, headers })
      assert.equal((await ask(`${client}/invoice/in_1`)).json.id, 'in_1')
      const unbound = await service.get(`${client}/invoice/in_1`, { token: signer.token() })
      assert.equal(unbound.json.id, 'in_1')
      assert.equal((await ask(`${client}/invoice/in_1`, 'HEAD')).status, 200)
      const { etag } = (await ask(`${client}/invoice/in_1`)).headers
      assert.equal(
        (await ask(`${client}/invoice/in_1`, 'GET', { 'if-none-match': String(etag) })).status,
        304,
      )
      // Nothing is connected that has the PDF.
      for (const kind of ['ix', 'payments'])
        assertError(await ask(`${client}/invoice/in_1/${kind}/download`), 502, 'upstream_failed')

      const refused = await ask(`${client}/invoices`)
      assertError(refused, 403, 'insufficient_scope')
      assert.match(
        String(refused.headers['www-authenticate']),
        /error="insufficient_scope", error_description="The access token is valid for one invoice alone\."/,
      )
      for (const path of [
        '/invoices?q=in_1',
        '/invoices?page=x',
        '/invoice/in_2',
        '/invoice/in_none',
        '/invoice/in_2/ix/download',
        '/invoice/in_none/payments/download',
        '/invoice/in_bob',
        '/invoice/IN_1',
        '/invoice/in_1_',
      ])
        for (const headers of [{}, { 'if-none-match': '*' }] as Record<string, string>[]) {
          const answer = await ask(client + path, 'GET', headers)
          if (path === '/invoice/IN_1') assertError(answer, 400, 'invalid_parameter', 'invoiceId')
          else assert.deepEqual(comparable(answer), comparable(refused), path)
        }
      for (const path of ['/invoices', '/invoice/in_1', '/invoice/in_bob'])
        assert.match(
          (await ask(`/api/v1/client/cus_bob${path}`)).json.error.message,
          /not valid for this customer/,
        )
      assertError(await ask('/api/v1/client/bad/invoice/in_1'), 400, 'invalid_parameter', 'customerId')
      // A link to what is not the customer's is a link to nothing.
      const foreign = signer.token({ invoice: 'in_bob' })
      const none = signer.token({ invoice: 'in_none' })
      assert.deepEqual(
        comparable(await service.get(`${client}/invoice/in_bob`, { token: foreign })),
        comparable(await service.get(`${client}/invoice/in_none`, { token: none })),
      )
      assertError(await service.get(`${client}/invoice/in_bob`, { token: foreign }), 404, 'invoice_not_found')
    })

    test('end within a second when their key is revoked by another process, without effect on other keys', async t => {
      const clock = stopClock(t)
      const { service, signer } = await start(t, engine)
      const other = await addSigner(service)
      const tokens = [signer.token(), signer.token({ sub: 'cus_bob' }), signer.token({ invoice: 'in_1' })]
      const paths = [`${client}/invoices`, '/api/v1/client/cus_bob/invoices', `${client}/invoice/in_1`]
      const statuses = () =>
        Promise.all(tokens.map(async (token, n) => (await service.get(paths[n] ?? '', { token })).status))
      assert.deepEqual(await statuses(), [200, 200, 200])
      const writer = await openWriteStore(service.url)
      await writer.revokeKey(signer.key.kid, Date.now())
      await clock.pass(1_000)
      assert.deepEqual(await statuses(), [401, 401, 401])
      await writer.close()
      const answer = await service.get(`${client}/invoices`, { token: tokens[0] ?? '' })
      assertError(answer, 401, 'invalid_token')
      assert.equal(answer.json.error.message, 'The key of the link was revoked.')
      assert.equal((await service.get(`${client}/invoices`, { token: other.token() })).status, 200)
    })

    test('give each customer their own answers when connections mix customers and kinds of tokens', async () => {
      const { service, provider, signer } = await share()
      const tokens = ['cus_ana', 'cus_bob'].flatMap(customer => [
        { customer, token: provider.token({ customer_id: customer, sub: customer }) },
        { customer, token: signer.token({ sub: customer }) },
      ])
      const questions = Array.from({ length: 200 }, (_, n) => ({
        ...(tokens[n % tokens.length] as (typeof tokens)[number]),
        asked: n % 3 === 0 ? 'cus_bob' : 'cus_ana',
      }))
      const check = async ({ token, customer, asked }: (typeof questions)[number]) => {
        const answer = await service.list('', { customer: asked, token })
        if (customer !== asked) return assertError(answer, 403, 'insufficient_scope')
        assert.equal(answer.status, 200)
        for (const { customer_id } of answer.json.invoices) assert.equal(customer_id, customer)
        assert.equal(answer.json.total, customer === 'cus_ana' ? 2 : 1)
      }
      for (let i = 0; i < 100; i += 25) await Promise.all(questions.slice(i, i + 25).map(check))
      // One after the other over a kept connection.
      for (const question of questions.slice(100)) await check(question)
    })
  })

describe('JWTs and customer links', () => {
  const [engine] = engines as readonly [Engine]

  test('count for one rate limit per subject of JWTs, and one per key and customer of links', async t => {
    const { service, provider, signer } = await start(t, engine, {
      rateLimit: { requests: 3, seconds: 60 },
    })
    const statusOf = async (token: string, customer = 'cus_ana') =>
      (await service.list('', { token, customer })).status
    for (const jti of [1, 2, 3]) assert.equal(await statusOf(provider.token({ jti })), 200)
    assert.equal(await statusOf(provider.token({ jti: 4 })), 429)
    assert.equal(await statusOf(provider.token({ sub: 'other' })), 200)
    for (const jti of [1, 2, 3]) assert.equal(await statusOf(signer.token({ jti })), 200)
    const limited = await service.get(`${client}/invoice/in_1`, {
      token: signer.token({ invoice: 'in_1' }),
    })
    assertError(limited, 429, 'rate_limited')
    assert.equal(limited.headers['www-authenticate'], undefined)
    assert.equal(await statusOf(signer.token({ sub: 'cus_bob' }), 'cus_bob'), 200)
  })

  test('are refused with the status and challenge of RFC 6750, which names the provider', async t => {
    const { service, provider, signer } = await start(t, engine, {}, 'invoices:read')
    const where = `scope="invoices:read", resource_metadata="${publicUrl}${metadata}"`
    const challengeOf = async (token: string | null, path = `${client}/invoices`) => {
      const { status, headers, json } = await service.get(path, { token })
      return `${status} ${json.error.code}: ${headers['www-authenticate']}`
    }
    const bearer = (code: string, message: string) =>
      `Bearer realm="fatura", error="${code}", error_description="${message}", ${where}`
    const good = { scope: 'invoices:read' }
    assert.equal(await challengeOf(null), `401 missing_token: Bearer realm="fatura", ${where}`)
    const cases: [token: string, status: number, code: string, message: string][] = [
      ['x', 401, 'invalid_token', 'The access token is malformed.'],
      ['a.b.c', 401, 'invalid_token', 'The access token is malformed.'],
      [provider.token({ ...good, exp: 1 }), 401, 'invalid_token', 'The access token expired.'],
      [
        provider.token(good, { kid: 'x' }),
        401,
        'invalid_token',
        'The access token is not signed by a known key.',
      ],
      [
        provider.token({ ...good, aud: 'x' }),
        401,
        'invalid_token',
        'The access token is not meant for this service.',
      ],
      [provider.token(), 403, 'insufficient_scope', 'The access token lacks the scope invoices:read.'],
      [
        provider.token({ ...good, customer_id: 'cus_bob' }),
        403,
        'insufficient_scope',
        'The access token is not valid for this customer.',
      ],
      [
        signer.token({ sub: 'cus_bob' }),
        403,
        'insufficient_scope',
        'The access token is not valid for this customer.',
      ],
      [signer.token({ aud: 'x' }), 401, 'invalid_token', 'The access token is not meant for this service.'],
      [
        signJwt({ alg: 'none' }, {}, '', 'HS256'),
        401,
        'invalid_token',
        'The access token is signed with an algorithm that is not accepted.',
      ],
    ]
    for (const [token, status, code, message] of cases)
      assert.equal(await challengeOf(token), `${status} ${code}: ${bearer(code, message)}`)
    assert.match(
      await challengeOf(provider.token(good), `${client}/invoices?access_token=x`),
      /^400 invalid_request: .*error="invalid_request"/,
    )
    assert.equal((await service.list('', { token: provider.token(good) })).status, 200)
    // Not revealed to anybody else, and not kept by a cache.
    assert.equal((await service.get('/live')).headers['www-authenticate'], undefined)
  })

  test('are described by the metadata of RFC 9728 only when a provider is configured', async t => {
    const { service } = await start(t, engine, {}, 'invoices:read')
    const answer = await service.get(metadata, { token: null })
    assert.deepEqual(
      [answer.status, answer.headers['content-type'], answer.headers['cache-control']],
      [200, 'application/json', 'no-store'],
    )
    assert.deepEqual(answer.json, {
      resource: publicUrl,
      authorization_servers: [issuer],
      scopes_supported: ['invoices:read'],
      bearer_methods_supported: ['header'],
      resource_name: 'Fatura',
    })
    const without = await startService(t, engine, { publicUrl })
    assertError(await without.get(metadata, { token: null }), 404, 'route_not_found')
    assert.equal(
      (await without.list('', { token: null })).headers['www-authenticate'],
      'Bearer realm="fatura"',
    )
  })

  test('have no metadata without PUBLIC_URL, and links do not work', async t => {
    const provider = await startProvider(t)
    const service = await startService(t, engine, {
      provider: provider.options,
      web: true,
    })
    const headers = { host: 'canary.example.com:8080' }
    const paths = [
      '/',
      '/live',
      '/nowhere',
      '/docs',
      '/llms.txt',
      '/api/v1/openapi.json',
      client,
      metadata,
      '*',
    ]
    for (const path of paths)
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST']) {
        const answer = await service.get(path, { token: null, headers, method })
        assert.doesNotMatch(JSON.stringify([answer.headers, answer.text]), /canary/, `${method} ${path}`)
      }
    const answer = await service.get(metadata, { token: null, headers })
    assertError(answer, 404, 'route_not_found')
    const { headers: challenged } = await service.list('', { token: null, headers })
    assert.equal(challenged['www-authenticate'], 'Bearer realm="fatura"')
    assertError(await service.list('', { token: makeLinkSigner().token() }), 401, 'invalid_token')
    assert.deepEqual(
      service.lookups.filter(id => id.startsWith('key_')),
      [],
    )
  })

  test('get 503 with Retry-After while the provider’s keys are unreadable, while tokens work', async t => {
    const provider = await startProvider(t)
    provider.respond = response => response.destroy()
    const service = await startService(t, engine, { provider: provider.options, publicUrl })
    const answer = await service.list('', { token: provider.token() })
    assertError(answer, 503, 'unavailable')
    assert.equal(answer.headers['retry-after'], '5')
    assert.equal(answer.headers['www-authenticate'], undefined)
    assert.equal((await service.list()).status, 200)
    const signer = await addSigner(service)
    assert.equal((await service.list('', { token: signer.token() })).status, 200)
    assert.ok(service.logs.some(line => line.includes('the keys of the identity provider could not be read')))
  })
})
