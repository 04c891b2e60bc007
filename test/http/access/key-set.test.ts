/** The provider's keys: outages, rotation and made-up key ids, against a real HTTP server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createAuthenticate } from '../../../src/http/access/authenticate.ts'
import { type KeySetTimes, openKeySet } from '../../../src/http/access/key-set.ts'
import { openVerifiers } from '../../../src/http/access/open-verifiers.ts'
import { createVerifyProvider } from '../../../src/http/access/verify-provider.ts'
import {
  makeSigningKey,
  type Provider,
  type SigningKey,
  startProvider,
} from '../../support/worlds/identity.ts'
import { settle, stopClock, until } from '../../support/worlds/stopped-clock.ts'

/** Each passes only where a test lets it. */
const usual: KeySetTimes = {
  ...{ reloadMs: 300_000, retryMs: 60_000, firstRetryMs: 5_000, unknownMs: 60_000, timeoutMs: 3_000 },
}

async function start(
  t: TestContext,
  times: Partial<KeySetTimes> = {},
  provider?: Provider,
  clock = stopClock(t),
) {
  const given = provider ?? (await startProvider(t))
  const problems: string[] = []
  const keys = openKeySet(given.options.jwksUrl, error => problems.push(error.message), {
    ...usual,
    ...times,
  })
  t.after(() => keys.close())
  const verifyProvider = createVerifyProvider(given.options, keys, Date.now)
  const authenticate = createAuthenticate({ findToken: () => null, verifyJwt: verifyProvider })
  const send = async (token: string) => {
    try {
      await authenticate(`Bearer ${token}`)
      return 'ok'
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  return { provider: given, problems, keys, send, clock }
}

const noSet = 'it is not a JSON Web Key Set'
const noKey = 'it holds no key that can verify a signature'
const outages: Record<string, [respond: NonNullable<Provider['respond']>, told: string | RegExp]> = {
  'a connection that is cut': [response => response.destroy(), 'fetch failed'],
  'a status 500': [response => void response.writeHead(500).end('{"keys":[]}'), 'the answer has status 500'],
  'a status 404': [response => void response.writeHead(404).end(), 'the answer has status 404'],
  'a status 204': [response => void response.writeHead(204).end(), 'the answer has status 204'],
  'a redirect': [
    response => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    'fetch failed',
  ],
  'an answer that is not JSON': [response => void response.end('<html>'), /is not valid JSON/],
  'an answer that is an array': [response => void response.end('[]'), noSet],
  'an answer that is null': [response => void response.end('null'), noSet],
  'an object without keys': [response => void response.end('{}'), noSet],
  'a text in place of keys': [response => void response.end('{"keys":"x"}'), noSet],
  'an empty key set': [response => void response.end('{"keys":[]}'), noKey],
  'a set of unusable keys': [
    response =>
      void response.end(
        JSON.stringify({ keys: [{ kty: 'oct', k: 'AA', alg: 'HS256', kid: 'first' }, { kty: 'RSA' }] }),
      ),
    noKey,
  ],
  'an endless answer': [
    response => {
      const more = () => response.write(' '.repeat(65_536), error => !error && more())
      more()
    },
    'the answer is larger than 262144 bytes',
  ],
  'no answer': [() => {}, /timeout/],
}

describe('an outage of the identity provider', () => {
  for (const [name, [respond, told]] of Object.entries(outages))
    test(`with ${name} is logged, and known keys still verify old and new JWTs`, async t => {
      const { provider, send, problems, clock } = await start(t)
      const token = provider.token()
      assert.equal(await send(token), 'ok')
      provider.respond = respond
      for (const [index, ms] of [usual.reloadMs, usual.retryMs].entries()) {
        await clock.pass(ms)
        await until(() => provider.fetches === 2 + index)
        if (name === 'no answer') {
          await clock.pass(usual.timeoutMs - 1)
          assert.equal(problems.length, index)
          await clock.pass(1)
        }
        await until(() => problems.length === 1 + index)
        assert.equal(await send(token), 'ok')
        assert.equal(await send(provider.token({ jti: 'new' })), 'ok')
      }
      const second = makeSigningKey('second')
      provider.keys.push(second)
      provider.respond = null
      await clock.pass(usual.retryMs)
      await until(() => provider.fetches === 4)
      assert.equal(await send(provider.token({}, {}, second)), 'ok')
      assert.equal(provider.fetches, 4)
      assert.equal(problems.length, 2)
      for (const problem of problems)
        if (typeof told === 'string') assert.equal(problem, told)
        else assert.match(problem, told)
      for (const problem of problems) assert.doesNotMatch(problem, /127\.0\.0\.1:\d+\/jwks/)
    })

  test('at the start gives 503 for JWTs, which are accepted after the outage without a restart', async t => {
    const provider = await startProvider(t)
    provider.respond = response => response.destroy()
    const { send, problems, clock } = await start(t, {}, provider)
    assert.equal(await send(provider.token()), 'unavailable')
    await clock.pass(usual.firstRetryMs)
    await until(() => problems.length === 2)
    assert.equal(await send(provider.token()), 'unavailable')
    provider.respond = null
    await clock.pass(usual.firstRetryMs)
    await until(() => provider.fetches === 3)
    assert.equal(await send(provider.token()), 'ok')
  })

  test('at the start leads to no request for invented key IDs', async t => {
    const provider = await startProvider(t)
    provider.respond = response => response.destroy()
    const { send, problems, clock } = await start(t, {}, provider)
    await until(() => problems.length === 1)
    for (let n = 0; n < 50; n++)
      assert.equal(await send(provider.token({}, { kid: `made-up ${n}` })), 'unavailable')
    assert.equal(provider.fetches, 1)
    const soon = await start(t, { firstRetryMs: 4_001 }, provider, clock)
    await assert.rejects(soon.keys.find('first', 'ES256'), {
      code: 'unavailable',
      message: 'The keys of the identity provider cannot be read; try again shortly.',
      retryAfter: 5,
    })
  })

  test('lets requests wait for the provider’s first answer', async t => {
    const { provider, send } = await start(t)
    const answers = await Promise.all(Array.from({ length: 10 }, (_, jti) => send(provider.token({ jti }))))
    assert.deepEqual([...new Set(answers)], ['ok'])
    assert.equal(provider.fetches, 1)
  })
})

describe('a rotation of the provider’s keys', () => {
  test('brings a new key with its first JWT, and ends the old key at the next read', async t => {
    const { provider, send, clock } = await start(t, { unknownMs: 0 })
    const old = provider.token()
    assert.equal(await send(old), 'ok')
    const second = makeSigningKey('second')
    provider.keys = [second]
    await clock.pass(600)
    assert.equal(await send(old), 'ok', 'not read yet')
    assert.equal(await send(provider.token({}, {}, second)), 'ok')
    assert.equal(provider.fetches, 2)
    await clock.pass(600)
    assert.equal(await send(old), 'invalid_token', 'also one that was verified before')
    assert.equal(await send(provider.token({ jti: 'new' })), 'invalid_token')
  })

  test('is noticed by a timer, which also ends removed keys', async t => {
    const { provider, keys, send, clock } = await start(t)
    const old = provider.token()
    assert.equal(await send(old), 'ok')
    const first = (await keys.find('first', 'ES256')) ?? assert.fail()
    provider.keys = [makeSigningKey('second')]
    await clock.pass(usual.reloadMs)
    await until(() => !keys.holds(first))
    assert.equal(await send(old), 'invalid_token')
    assert.equal(provider.fetches, 2)
  })

  test('replaces a changed key under the same ID, and keeps an unchanged key', async t => {
    const { provider, send, clock } = await start(t, { unknownMs: 0 })
    const [first] = provider.keys as [SigningKey]
    const old = provider.token()
    assert.equal(await send(old), 'ok')
    const [replaced, third] = [makeSigningKey('first'), makeSigningKey('third')]
    provider.keys = [first, third]
    assert.equal(await send(provider.token({}, {}, third)), 'ok')
    await clock.pass(600)
    assert.equal(await send(old), 'ok', 'read again, it is still there')
    provider.keys = [replaced, makeSigningKey('fourth')]
    assert.equal(await send(provider.token({}, {}, provider.keys[1] as SigningKey)), 'ok')
    await clock.pass(600)
    assert.equal(await send(old), 'invalid_token')
    assert.equal(await send(provider.token({}, {}, replaced)), 'ok')
    provider.keys = [{ ...first.jwk, kid: 'renamed' }, third]
    assert.equal(await send(provider.token({ jti: 2 }, {}, third)), 'ok')
    await clock.pass(600)
    assert.equal(await send(old), 'invalid_token', 'a key under another id is not this one')
  })
})

describe('invented key IDs in JWTs', () => {
  for (const outage of [false, true])
    test(`cause one request a minute to the provider${outage ? ', also during an outage' : ''}`, async t => {
      const { provider, send } = await start(t)
      assert.equal(await send(provider.token()), 'ok')
      assert.equal(provider.fetches, 1)
      if (outage) provider.respond = response => response.destroy()
      const flood = () =>
        Promise.all(
          Array.from({ length: 10 }, () => send(provider.token({}, { kid: String(Math.random()) }))),
        )
      for (let round = 0; round < 20; round++) await flood()
      assert.equal(provider.fetches, 2)
      assert.equal(
        await send(provider.token({}, { kid: 'another' })),
        'rate_limited',
        'its address sent 100 of them',
      )
      assert.equal(await send(provider.token({ jti: 'new' })), 'ok')
    })

  test('cause another request after a minute', async t => {
    const { provider, send, clock } = await start(t)
    const ask = async () => {
      await send(provider.token({}, { kid: String(Math.random()) }))
      return provider.fetches
    }
    assert.equal(await send(provider.token()), 'ok')
    assert.deepEqual([await ask(), await ask()], [2, 2])
    await clock.pass(usual.unknownMs - 1)
    assert.equal(await ask(), 2)
    await clock.pass(1)
    assert.deepEqual([await ask(), await ask()], [3, 3])
  })

  test('wait for a read of the key set that is already running', async t => {
    const { provider, send } = await start(t)
    assert.equal(await send(provider.token()), 'ok')
    const second = makeSigningKey('second')
    provider.keys.push(second)
    const answers = await Promise.all([
      send(provider.token({}, { kid: 'made-up' })),
      send(provider.token({}, {}, second)),
    ])
    assert.deepEqual(answers, ['invalid_token', 'ok'])
    assert.equal(provider.fetches, 2)
  })
})

describe('the next read of a key set', () => {
  test('comes 5 minutes after a success, a minute after a failure, and 5 seconds without any key', async t => {
    const timeouts = t.mock.method(globalThis, 'setTimeout', () => ({ unref() {} }))
    const delays = () =>
      timeouts.mock.calls
        .map(({ arguments: [read, ms] }) => ({ read: read as () => unknown, ms }))
        // The client for HTTP has its own.
        .filter(({ ms }) => [300_000, 60_000, 5_000].includes(ms ?? 0))
    const lengths = () => delays().map(({ ms }) => ms)
    const provider = await startProvider(t)
    const { jwksUrl } = provider.options
    const open = (onProblem: (error: Error) => void) => {
      const keys = openKeySet(jwksUrl, onProblem)
      t.after(() => keys.close())
      return keys
    }
    await open(() => {}).find('first', 'ES256')
    assert.deepEqual(lengths(), [300_000])
    provider.respond = response => response.destroy()
    await delays()[0]?.read()
    assert.deepEqual(lengths(), [300_000, 60_000])
    await new Promise(open)
    assert.deepEqual(lengths(), [300_000, 60_000, 5_000])
    const asked = new Promise<ServerResponse>(resolve => {
      provider.respond = resolve
    })
    const keys = open(() => assert.fail('it is told of its end'))
    const ended = once(await asked, 'close')
    keys.close()
    await ended
    await assert.rejects(keys.find('first', 'ES256'), { code: 'unavailable' })
    assert.deepEqual(lengths(), [300_000, 60_000, 5_000])
  })
})

describe('a key set', () => {
  test('finds the only fitting key, and remembers it', async t => {
    const { provider, keys } = await start(t)
    const [first] = provider.keys as [SigningKey]
    const found = await keys.find('first', 'ES256')
    assert.deepEqual([found?.kid, found?.alg], ['first', 'ES256'])
    assert.equal(await keys.find(undefined, 'ES256'), found)
    for (const [kid, alg] of [
      ['first', 'ES384'],
      ['second', 'ES256'],
      [undefined, 'ES384'],
    ] as const)
      assert.equal(await keys.find(kid, alg), null, `${kid} ${alg}`)
    assert.ok(found !== null && keys.holds(found))
    for (const change of [{ kid: 'second' }, { alg: 'ES384' }, { thumbprint: 'x' }])
      assert.equal(keys.holds({ ...found, ...change }), false, JSON.stringify(change))
    const doubled = await startProvider(t)
    doubled.keys = [first, makeSigningKey('first')]
    const { keys: both } = await start(t, {}, doubled)
    for (const kid of ['first', undefined]) assert.equal(await both.find(kid, 'ES256'), null)
  })

  test('is not read or reported any more once it is closed', async t => {
    const provider = await startProvider(t)
    const asked = new Promise<ServerResponse>(resolve => {
      provider.respond = resolve
    })
    const { keys, problems, clock } = await start(t, {}, provider)
    const ended = once(await asked, 'close')
    keys.close()
    await ended
    await settle()
    const other = await start(t, {}, undefined, clock)
    const first = (await other.keys.find('first', 'ES256')) ?? assert.fail()
    assert.ok(other.keys.holds(first))
    other.keys.close()
    await clock.pass(2 * usual.reloadMs)
    // It comes after any that the clock caused.
    for (const { options } of [provider, other.provider]) {
      provider.respond = null
      await (await fetch(options.jwksUrl)).text()
    }
    assert.deepEqual([provider.fetches, other.provider.fetches], [2, 2])
    assert.deepEqual([...problems, ...other.problems], [])
  })

  test('is requested without credentials, and with an Accept header that providers know', async t => {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const asked = once(server, 'request')
    const { port } = server.address() as AddressInfo
    const verifiers = openVerifiers({
      provider: { ...(await startProvider(t)).options, jwksUrl: `http://127.0.0.1:${port}/a?b=c` },
      ...{ publicUrl: null, findKey: () => null, onProblem: () => {} },
    })
    const [request, response] = await asked
    response.end()
    verifiers.close()
    assert.equal(request.url, '/a?b=c')
    assert.equal(request.headers.accept, 'application/jwk-set+json, application/json')
    assert.equal(request.headers.authorization, undefined)
  })

  test('is read up to 256 KiB, with its first 100 keys', async t => {
    const { provider, send } = await start(t, { unknownMs: 0 })
    const [last, beyond] = [makeSigningKey('last'), makeSigningKey('beyond')]
    const first = provider.keys[0] as SigningKey
    provider.keys = [first, ...Array.from({ length: 98 }, () => ({ kty: 'EC' })), last, beyond]
    assert.equal(await send(provider.token({}, {}, last)), 'ok')
    assert.equal(await send(provider.token({}, {}, beyond)), 'invalid_token')
    const bodyOf = (key: SigningKey, bytes: number) => {
      const set = JSON.stringify({ keys: [first.jwk, key.jwk] })
      return set + ' '.repeat(bytes - set.length)
    }
    provider.respond = response => response.end(bodyOf(beyond, 256 * 1024))
    assert.equal(await send(provider.token({ jti: 1 }, {}, beyond)), 'ok')
    const more = makeSigningKey('more')
    provider.respond = response => response.end(bodyOf(more, 256 * 1024 + 1))
    assert.equal(await send(provider.token({}, {}, more)), 'invalid_token')
  })
})
