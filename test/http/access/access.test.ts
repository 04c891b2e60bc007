/** Tokens and RFC 6750: who gets in, and what the others are told. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiError } from '../../../src/domain/errors.ts'
import { createAuthenticate, type TokenRecord } from '../../../src/http/access/authenticate.ts'
import { createToken, hashToken, isToken, readTokenId } from '../../../src/http/access/token.ts'
import { createRateLimiter } from '../../../src/http/rate-limit.ts'
import { openWriteStore } from '../../../src/store/engines.ts'
import { type Engine, engines } from '../../support/databases/engines.ts'
import { stopBothClocks } from '../../support/worlds/both-clocks.ts'
import { makeLinkSigner, publicUrl, startProvider } from '../../support/worlds/identity.ts'
import { makeRecord } from '../../support/worlds/records.ts'
import { type Answer, assertError, shareService, startService } from '../../support/worlds/service.ts'
import { stopClock } from '../../support/worlds/stopped-clock.ts'
import { withChecksum } from '../../support/worlds/tokens.ts'

const path = '/api/v1/client/cus_ana/invoices'

function assertInvalid(authenticate: () => unknown, message: RegExp): Promise<void> {
  return assert.rejects(async () => authenticate(), { code: 'invalid_token', message })
}

describe('access tokens', () => {
  test('have a prefix, at least 160 random bits and a checksum, and are never equal', () => {
    const tokens = Array.from({ length: 1_000 }, () => createToken())
    for (const { id, token, hash } of tokens) {
      assert.match(token, /^fat_[0-9A-Za-z]{48}$/)
      assert.ok(isToken(token))
      assert.ok(token.startsWith(id) && id === readTokenId(token) && id.length === 16)
      assert.equal(hash, hashToken(token))
      assert.ok(!hash.includes(token.slice(16)))
    }
    const secrets = tokens.map(({ token }) => token.slice(16, 46))
    assert.equal(new Set(secrets).size, 1_000)
    // 30 characters out of 62 are 178 bits, if every character of the alphabet is in use at every place.
    assert.ok(30 * Math.log2(62) >= 160)
    for (let place = 0; place < 30; place++)
      assert.ok(new Set(secrets.map(secret => secret[place])).size > 50, `place ${place}`)
  })

  test('with a typing error fail the checksum, and the store is not asked', async () => {
    const { token } = createToken()
    let asked = 0
    const authenticate = createAuthenticate({
      findToken: async () => {
        asked++
        return null
      },
    })
    for (let place = 0; place < token.length; place++) {
      const wrong = token.slice(0, place) + (token[place] === 'a' ? 'b' : 'a') + token.slice(place + 1)
      assert.equal(isToken(wrong), false, wrong)
      await assert.rejects(async () => authenticate(`Bearer ${wrong}`), { code: 'invalid_token' })
    }
    for (const wrong of [
      'x',
      'fat_',
      `${token}x`,
      token.slice(1),
      token.toUpperCase(),
      'a.b.c',
      'x'.repeat(10_000),
    ])
      await assert.rejects(async () => authenticate(`Bearer ${wrong}`), { code: 'invalid_token' })
    assert.equal(asked, 0)
    await assert.rejects(async () => authenticate(`Bearer ${token}`), {
      code: 'invalid_token',
      message: 'The access token is not known.',
    })
    assert.equal(asked, 1)
  })

  test('with a wrong form are refused even when the checksum is right', async () => {
    const secret = 'x'.repeat(42)
    assert.ok(isToken(withChecksum(`fat_${secret}`)))
    for (const body of [
      '',
      'fat_',
      'fat_x',
      `fat_${secret}x`,
      `fax_${secret}`,
      `x${secret}`,
      `fat_${secret.slice(1)}_`,
    ])
      assert.equal(isToken(withChecksum(body)), false, body)
  })

  const noToken = 'Send an access token in the header Authorization: Bearer <ACCESS_TOKEN>.'
  const malformed = 'The access token is malformed.'
  const headers: [header: string | undefined, code: string, message: string][] = [
    ...[
      undefined,
      '',
      ' ',
      'Bearer',
      'bearer ',
      'Bearer   ',
      'Basic YTpi',
      'Token x',
      'x',
      'Basic bearer x',
    ].map(header => [header, 'missing_token', noToken] as [string | undefined, string, string]),
    // They are the beginning of another scheme's name.
    ...[..."x0_!#$%&'*+.^`|~-"].map(
      next => [`Bearer${next} x`, 'missing_token', noToken] as [string, string, string],
    ),
    ...[
      'Bearer:x',
      'Bearer\tx',
      'Bearer=',
      'Bearer"x"',
      'Bearer,x',
      'Bearer\u00a0x',
      'Bearer x',
      'BEARER x y',
    ].map(header => [header, 'invalid_token', malformed] as [string, string, string]),
  ]
  test('are recognized only after the whole scheme Bearer', async () => {
    const authenticate = createAuthenticate({ findToken: () => null })
    for (const [header, code, message] of headers)
      await assert.rejects(async () => authenticate(header), { code, message }, String(header))
  })

  test('are looked up at most twice a second, and a revocation takes effect within a second', async () => {
    const { id, token, hash } = createToken()
    const record: TokenRecord = { id, hash, every_customer: true, expires_at: null, revoked_at: null }
    const { clock, now } = stopBothClocks()
    let asked = 0
    const authenticate = createAuthenticate({
      findToken: async () => {
        asked++
        return { ...record }
      },
      now,
    })
    const all = Array.from({ length: 100 }, () => authenticate(`Bearer ${token}`))
    for (const grant of await Promise.all(all)) assert.ok(grant.mayRead('cus_ana'))
    for (let i = 0; i < 100; i++) await authenticate(`Bearer ${token}`)
    assert.equal(asked, 1)
    record.revoked_at = now()
    clock.offsetMs = 501
    await assertInvalid(() => authenticate(`Bearer ${token}`), /revoked/)
  })

  test('for some customers give no access when their record lists no customer', async () => {
    const { id, token, hash } = createToken()
    const record = { id, hash, every_customer: false, expires_at: null, revoked_at: null }
    const authenticate = createAuthenticate({ findToken: async () => record })
    assert.equal(await (await authenticate(`Bearer ${token}`)).mayRead('cus_ana'), false)
  })

  test('expire to the millisecond, also while they are remembered', async () => {
    const { id, token, hash } = createToken()
    let time = 1_000_000
    const record = { id, hash, every_customer: true, expires_at: time + 100, revoked_at: null }
    const authenticate = createAuthenticate({ findToken: async () => record, now: () => time })
    time += 99
    await authenticate(`Bearer ${token}`)
    time += 1
    await assertInvalid(() => authenticate(`Bearer ${token}`), /expired/)
  })

  test('are remembered as a whole, so that a forged token with a remembered ID is refused', async () => {
    const { id, token, hash } = createToken()
    const record: TokenRecord = { id, hash, every_customer: true, expires_at: null, revoked_at: null }
    const { clock, now } = stopBothClocks()
    const authenticate = createAuthenticate({ findToken: async () => ({ ...record }), now })
    const spellings = [`Bearer ${token}`, `bearer ${token}`, `Bearer   ${token} `]
    for (const spelling of [...spellings, ...spellings])
      assert.equal((await authenticate(spelling)).token_id, id)
    const forged = token.slice(0, 16) + createToken().token.slice(16)
    for (const wrong of [forged, token.slice(0, -1), `${token}0`, ''])
      await assert.rejects(async () => authenticate(`Bearer ${wrong}`), ApiError, wrong)
    record.revoked_at = now()
    clock.offsetMs = 501
    for (const spelling of spellings)
      await assert.rejects(async () => authenticate(spelling), { message: /revoked/ })
  })

  test('are remembered for half a second from the request to a slow store, not from its answer', async () => {
    const { id, token, hash } = createToken()
    const record: TokenRecord = { id, hash, every_customer: true, expires_at: null, revoked_at: null }
    const { clock, now } = stopBothClocks()
    const authenticate = createAuthenticate({
      async findToken() {
        const found = { ...record }
        clock.offsetMs += 400
        return found
      },
      now,
    })
    await authenticate(`Bearer ${token}`)
    record.revoked_at = now()
    clock.offsetMs += 101
    await assert.rejects(async () => authenticate(`Bearer ${token}`), { message: /revoked/ })
  })

  test('are not remembered longer when the clock is set back', async () => {
    const { id, token, hash } = createToken()
    const record: TokenRecord = { id, hash, every_customer: true, expires_at: null, revoked_at: null }
    const { clock, begun } = stopBothClocks()
    let time = begun
    const authenticate = createAuthenticate({ findToken: async () => ({ ...record }), now: () => time })
    await authenticate(`Bearer ${token}`)
    record.revoked_at = time
    time -= 86_400_000
    clock.offsetMs = 501
    await assert.rejects(async () => authenticate(`Bearer ${token}`), { message: /revoked/ })
  })

  test('with a wrong secret are refused as unknown, even when the token is expired or revoked', async () => {
    const { id, hash } = createToken()
    const record = { id, hash, every_customer: true, expires_at: 0, revoked_at: 0 }
    const authenticate = createAuthenticate({ findToken: async () => record })
    const other = createToken()
    await assert.rejects(async () => authenticate(`Bearer ${other.token}`), {
      message: 'The access token is not known.',
    })
  })
})

describe('the rate limiter', () => {
  test('counts requests separately for 100,000 active tokens', () => {
    const take = createRateLimiter({ requests: 2, seconds: 3_600 })
    for (const allowed of [100_000, 100_000, 0]) {
      let count = 0
      for (let n = 0; n < 100_000; n++) if (take(`fat_${n}`).allowed) count++
      assert.equal(count, allowed)
    }
  })

  test('keeps a limited number of windows, and forgets the oldest ones', () => {
    const take = createRateLimiter({ requests: 1, seconds: 3_600 })
    for (let n = 0; n < 110_000; n++) take(`fat_${n}`)
    assert.equal(take('fat_109999').allowed, false, 'the latest is counted')
    assert.equal(take('fat_0').allowed, true, 'the first is forgotten')
  })
})

for (const engine of engines) {
  describe(`access on ${engine.name}`, () => {
    const service = shareService(engine, {
      records: [makeRecord(), makeRecord({ customer_id: 'cus_bob' })],
    })
    test('a request without credentials gets 401 with a challenge that names no error', async () => {
      const cases: Record<string, string>[] = [
        {},
        { authorization: '' },
        { authorization: 'Bearer' },
        { authorization: 'Bearer  ' },
        { authorization: 'Basic YTpi' },
        { authorization: 'Bearerfat_x' },
        { authorization: 'Token x' },
      ]
      for (const headers of cases) {
        const answer = await service().get(path, { token: null, headers })
        assertError(answer, 401, 'missing_token')
        assert.equal(answer.headers['www-authenticate'], 'Bearer realm="fatura"')
      }
    })

    test('an unknown, malformed, expired or revoked token gets 401 invalid_token', async () => {
      const expired = await service().createToken({ expires_at: Date.now() - 1 })
      const revoked = await service().createToken({ revoked_at: Date.now() })
      const bad = [
        expired,
        revoked,
        createToken().token,
        'x',
        'fat_x',
        'a b',
        `${expired},${expired}`,
        '"',
        'é'.normalize('NFKD').slice(0, 1),
      ]
      for (const token of bad) {
        const answer = await service().get(path, { token })
        assertError(answer, 401, 'invalid_token')
        assert.match(
          String(answer.headers['www-authenticate']),
          /^Bearer realm="fatura", error="invalid_token", error_description="[\x20-\x21\x23-\x5b\x5d-\x7e]+"$/,
        )
      }
    })

    test('an Authorization header has only spaces between scheme and token, and all its characters count', async () => {
      const token = await service().createToken()
      const ask = async (credentials: string) => {
        const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${credentials}\r\n\r\n`
        return service().send(Buffer.from(head, 'latin1'))
      }
      assert.match(await ask(`Bearer   ${token}  `), /^HTTP\/1\.1 200 /)
      const wrong = [
        ...['\u00a0', ' \u00a0', '\t', ' \t', '\t ', '\u0085', ':', ': ', '=', '"', ','].map(
          gap => `Bearer${gap}${token}`,
        ),
        ...['\u00a0', '\u0085', '=', ',', '"', ' x', '\tx', ` ${token}`].map(end => `Bearer ${token}${end}`),
        `Bearer "${token}"`,
        `Bearer\u00a0`,
      ]
      for (const credentials of wrong) {
        const raw = await ask(credentials)
        assert.match(raw, /^HTTP\/1\.1 401 /, JSON.stringify(credentials))
        assert.match(
          raw,
          /www-authenticate: Bearer realm="fatura", error="invalid_token"/,
          JSON.stringify(credentials),
        )
        assert.match(raw, /"code":"invalid_token"/)
      }
    })

    test('the scheme Bearer is case-insensitive', async () => {
      const token = await service().createToken()
      for (const scheme of ['bearer', 'BEARER', 'Bearer '])
        assert.equal(
          (await service().get(path, { token: null, headers: { authorization: `${scheme} ${token}` } }))
            .status,
          200,
        )
    })

    test('a token for other customers gets 403 insufficient_scope, whether or not the customer exists', async () => {
      const token = await service().createToken({ customers: ['cus_bob', 'cus_carla'] })
      for (const customer of ['cus_ana', 'cus_nobody', 'cus_bo', 'cus_bobb', 'cus_BOB', 'cus_bob_']) {
        const answer = await service().list('', { customer, token })
        assertError(answer, 403, 'insufficient_scope')
        assert.match(
          String(answer.headers['www-authenticate']),
          /^Bearer realm="fatura", error="insufficient_scope", /,
        )
      }
      assert.equal((await service().list('', { customer: 'cus_bob', token })).json.total, 1)
      assert.equal((await service().list('', { customer: 'cus_carla', token })).json.total, 0)
    })

    test('a request with several mistakes gets 401 first, then 403, then 400', async () => {
      const token = await service().createToken({ customers: ['cus_bob'] })
      assertError(await service().list('?page=x', { customer: 'bad', token: null }), 401, 'missing_token')
      assertError(await service().list('?page=x', { token }), 403, 'insufficient_scope')
      assertError(
        await service().list('?page=x', { customer: 'bad', token }),
        400,
        'invalid_parameter',
        'customerId',
      )
      assertError(
        await service().list('?page=x', { customer: 'cus_bob', token }),
        400,
        'invalid_parameter',
        'page',
      )
    })

    test('a request with two Authorization headers gets 400 invalid_request', async () => {
      const token = await service().createToken()
      const lines = [`Authorization: Bearer ${token}`, `authorization: Bearer ${token}`]
      const raw = await service().send(
        `GET ${path} HTTP/1.1\r\nHost: x\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`,
      )
      assert.match(raw, /^HTTP\/1\.1 400 /)
      assert.match(raw, /www-authenticate: Bearer realm="fatura", error="invalid_request"/)
      assert.match(raw, /"code":"invalid_request","message":"Send the Authorization header once\."/)
    })

    test('a token in the query is refused, alone or beside a valid header', async () => {
      const good = await service().createToken()
      for (const token of [null, good])
        for (const query of [
          `?access_token=${good}`,
          '?access_token=',
          '?page=1&access_token=x',
          '?access_token[]=x',
        ]) {
          const answer = await service().list(query, { token })
          assertError(answer, 400, 'invalid_request')
          assert.equal(
            answer.headers['www-authenticate'],
            'Bearer realm="fatura", error="invalid_request", error_description="Send the access token in the Authorization header, never in the URL."',
          )
        }
    })

    test('a revocation by another process takes effect in a running service after half a second', async t => {
      const clock = stopClock(t)
      const service = await startService(t, engine)
      const token = await service.createToken()
      const other = await openWriteStore(service.url)
      t.after(() => other.close())
      const ask = async () => (await service.get(path, { token })).status
      assert.equal(await ask(), 200)
      await other.revokeToken(readTokenId(token), Date.now())
      // Asked all the while: no request makes the service remember for longer.
      for (const ms of [0, 250, 249]) {
        await clock.pass(ms)
        assert.equal(await ask(), 200, `after ${clock.passedMs} ms`)
      }
      await clock.pass(2)
      assert.equal(await ask(), 401)
    })

    test('a token by another process works at once, and a second revocation keeps the first time', async () => {
      const token = await service().createToken({ customers: ['cus_ana'] })
      assert.equal((await service().get(path, { token })).status, 200)
      const first = await service().store.revokeToken(readTokenId(token), 1_000)
      const second = await service().store.revokeToken(readTokenId(token), 2_000)
      assert.deepEqual([first?.revoked_at, second?.revoked_at], [1_000, 1_000])
      assert.equal(await service().store.revokeToken('fat_none', 1), null)
    })

    test('a token that was refused as unknown works as soon as it is stored', async () => {
      const { id, token, hash } = createToken()
      assertError(await service().get(path, { token }), 401, 'invalid_token')
      await service().store.saveToken({
        ...{ id, hash, name: 'late', customers: null, created_at: Date.now() },
        ...{ expires_at: null, revoked_at: null },
      })
      assert.equal((await service().get(path, { token })).status, 200)
    })
  })
}

/** The same with another signature. */
function spoil(jwt: string): string {
  return `${jwt.slice(0, -10)}${jwt.at(-10) === 'A' ? 'B' : 'A'}${jwt.slice(-9)}`
}

const [anyEngine] = engines as readonly [Engine]

describe('the limits of access in one process', () => {
  test('let a valid token in despite forged tokens from the same address', async t => {
    const clock = stopClock(t)
    const provider = await startProvider(t)
    const signer = makeLinkSigner()
    const service = await startService(t, anyEngine, { provider: provider.options, publicUrl })
    await service.store.saveKey(signer.key)
    let serial = 0
    const kinds: Record<string, { right(): string | Promise<string>; forge(): string }> = {
      tokens: { right: () => service.createToken(), forge: () => createToken().token },
      links: {
        right: () => signer.token({ jti: ++serial }),
        forge: () => spoil(signer.token({ jti: ++serial })),
      },
      JWTs: {
        right: () => provider.token({ jti: ++serial }),
        forge: () => spoil(provider.token({ jti: ++serial })),
      },
    }
    for (const [kind, { right, forge }] of Object.entries(kinds)) {
      const forged = new Set<number>()
      let refused: Answer | undefined
      for (let round = 0; round < 12; round++) {
        const fresh = await Promise.all([right(), right()])
        const answers = [...Array.from({ length: 18 }, forge), ...fresh].map(token =>
          service.get(path, { token }),
        )
        for (const answer of await Promise.all(answers.splice(0, 18))) {
          forged.add(answer.status)
          if (answer.status === 429) refused = answer
        }
        for (const { status } of await Promise.all(answers))
          assert.equal(status, 200, `${kind}, round ${round}`)
      }
      assert.deepEqual(
        [...forged].filter(status => ![401, 429].includes(status)),
        [],
        kind,
      )
      assert.ok(refused !== undefined, `${kind}: its address sent 216`)
      assertError(refused, 429, 'rate_limited')
      assert.equal(refused.headers['retry-after'], '10')
      await clock.pass(10_000)
    }
    assertError(await service.get(path, { token: 'fat_x' }), 401, 'invalid_token')
    assertError(await service.get(path, { token: null }), 401, 'missing_token')
  })

  test('let in many valid tokens that arrive together for the first time', async t => {
    // The service shares this process's turns with 150 clients: by a clock that goes on, it might be too busy for some.
    stopClock(t)
    const service = await startService(t, anyEngine)
    const tokens = await Promise.all(Array.from({ length: 150 }, () => service.createToken()))
    const answers = await Promise.all(tokens.map(token => service.get(path, { token })))
    assert.ok(answers.every(({ status }) => status === 200))
  })

  test('count requests per token by RATE_LIMIT, with RateLimit headers and 429 with Retry-After', async t => {
    const clock = stopClock(t)
    const service = await startService(t, anyEngine, { rateLimit: { requests: 3, seconds: 60 } })
    const token = await service.createToken({ customers: ['cus_ana'] })
    const other = await service.createToken()
    for (const left of [2, 1]) {
      const { status, headers } = await service.get(path, { token })
      assert.deepEqual([status, headers['ratelimit-policy']], [200, '"default";q=3;w=60'])
      assert.match(String(headers.ratelimit), new RegExp(`^"default";r=${left};t=60$`))
    }
    await clock.pass(20_000)
    // A refused request counts as well.
    assertError(await service.list('', { customer: 'cus_bob', token }), 403, 'insufficient_scope')
    const refused = await service.get(path, { token })
    assertError(refused, 429, 'rate_limited')
    assert.equal(refused.json.error.message, 'This token may send 3 requests in 60 s.')
    assert.equal(refused.headers['www-authenticate'], undefined)
    assert.equal(refused.headers['retry-after'], '40')
    assert.equal(refused.headers.ratelimit, '"default";r=0;t=40')
    assert.equal((await service.get(path, { token: other })).status, 200)
    assert.equal((await service.get('/live')).headers.ratelimit, undefined)
  })

  test('end a rate-limit window when its time is over', async t => {
    const clock = stopClock(t)
    const service = await startService(t, anyEngine, { rateLimit: { requests: 1, seconds: 1 } })
    const token = await service.createToken()
    const ask = async () => (await service.get(path, { token })).status
    const both = await Promise.all([ask(), ask()])
    assert.deepEqual(both.sort(), [200, 429])
    await clock.pass(999)
    assert.equal(await ask(), 429)
    await clock.pass(1)
    assert.equal(await ask(), 200)
  })

  test('keep a rate-limit window’s length when the clock is changed', async t => {
    stopClock(t)
    const service = await startService(t, anyEngine, { rateLimit: { requests: 2, seconds: 60 } })
    const token = await service.createToken()
    const today = Date.now()
    for (const [days, status] of [
      [0, 200],
      [1, 200],
      [-1, 429],
    ] as const) {
      Date.now = () => today + days * 86_400_000
      const answer = await service.get(path, { token })
      assert.equal(answer.status, status)
      if (status === 429) assert.equal(answer.headers['retry-after'], '60')
    }
  })
})
