/** JWTs of an identity provider, by the tables of RFC 8725 and RFC 7515: which are let in, and what the others are told. */

import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { type Authenticate, createAuthenticate } from '../../../src/http/access/authenticate.ts'
import { openVerifiers } from '../../../src/http/access/open-verifiers.ts'
import type { ProviderOptions } from '../../../src/http/access/verify-provider.ts'
import { stopBothClocks } from '../../support/worlds/both-clocks.ts'
import {
  accessOf,
  audience,
  encode,
  issuer,
  makeLinkSigner,
  makeSigningKey,
  type Provider,
  publicUrl,
  type SigningKey,
  signJwt,
  startProvider,
} from '../../support/worlds/identity.ts'

interface Given {
  provider: Provider
  authenticate: Authenticate
  /** The same, for another moment. */
  clock: { offsetMs: number }
}

let startedMs = Date.now()

async function start(
  t: TestContext,
  changes: Partial<ProviderOptions> = {},
  keys: SigningKey[] = [],
): Promise<Given> {
  const provider = await startProvider(t)
  provider.keys.push(...keys)
  const { clock, begun, now } = stopBothClocks()
  startedMs = begun
  const verifiers = openVerifiers({
    provider: { ...provider.options, ...changes },
    publicUrl,
    findKey: () => null,
    onProblem: () => {},
    now,
  })
  t.after(() => verifiers.close())
  const authenticate = createAuthenticate({ findToken: () => null, verifyJwt: verifiers.verifyJwt, now })
  return { provider, authenticate, clock }
}

/** By the clock of the last start. */
const seconds = (offset = 0) => Math.floor(startedMs / 1000) + offset

async function refusalOf(
  authenticate: Authenticate,
  token: string,
): Promise<{ code: string; message: string }> {
  try {
    await authenticate(`Bearer ${token}`)
  } catch (error) {
    return error as { code: string; message: string }
  }
  return assert.fail(`let in: ${token}`)
}

function readToken({ provider }: Given) {
  const [key] = provider.keys as [SigningKey]
  const parts = provider.token().split('.')
  const [header = '', payload = ''] = parts.map(part => Buffer.from(part, 'base64url').toString())
  return { key, header, payload }
}

async function assertRefused(given: Given, token: string, message: RegExp, name: string): Promise<void> {
  const refusal = await refusalOf(given.authenticate, token)
  assert.equal(refusal.code, 'invalid_token', name)
  assert.match(refusal.message, message, name)
  // The kept refusal is the same.
  assert.equal((await refusalOf(given.authenticate, token)).message, refusal.message, name)
}

/** Tokens that depend on the time are made when they are sent. */
type Claims = Record<string, unknown> | (() => Record<string, unknown>)

const unsigned = /^The access token is not signed by a known key\.$/
const malformed = /^The access token is malformed\.$/
const incomplete = /^The access token lacks a claim that is required, or has one of the wrong form\.$/

describe('a JWT of the identity provider', () => {
  test('of each allowed algorithm is accepted for the customers in its claim', async t => {
    const algorithms = [
      ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
      ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
    ]
    const keys = algorithms.map(alg => makeSigningKey(`key ${alg}`, alg))
    const { authenticate, provider } = await start(t, {}, keys)
    for (const key of keys) {
      const grant = await authenticate(`Bearer ${provider.token({}, {}, key)}`)
      assert.deepEqual(
        [grant.mayRead('cus_ana'), grant.mayRead('cus_bob'), grant.invoice_id],
        [true, false, null],
      )
    }
    const many = await authenticate(`Bearer ${provider.token({ customer_id: ['cus_bob', 'cus_carla'] })}`)
    assert.deepEqual(['cus_ana', 'cus_bob', 'cus_carla'].map(many.mayRead), [false, true, true])
    for (const none of [[], undefined]) {
      const grant = await authenticate(`Bearer ${provider.token({ customer_id: none })}`)
      assert.equal(grant.mayRead('cus_ana'), false)
    }
  })

  test('with a malformed claim of customers is refused', async t => {
    const given = await start(t)
    for (const claim of [
      1,
      null,
      true,
      {},
      '',
      'ana',
      ['cus_ana', 1],
      [['cus_ana']],
      'cus_ana ',
      'cus_ana\n',
      [null],
      'cus_ana,cus_bob',
    ])
      await assertRefused(
        given,
        given.provider.token({ customer_id: claim }),
        /names its customers is malformed/,
        String(claim),
      )
  })

  test('may name its customers only in the configured claim', async t => {
    const name = 'https://example.com/customers'
    const { authenticate, provider } = await start(t, { customerClaim: name })
    const token = provider.token({ customer_id: 'cus_bob', [name]: 'cus_ana' })
    const grant = await authenticate(`Bearer ${token}`)
    assert.deepEqual([grant.mayRead('cus_ana'), grant.mayRead('cus_bob')], [true, false])
    const odd = await start(t, { customerClaim: 'constructor' })
    const none = await odd.authenticate(`Bearer ${odd.provider.token()}`)
    assert.equal(none.mayRead('cus_ana'), false)
  })

  test('shares its rate limit with other JWTs of the same subject', async t => {
    const { authenticate, provider } = await start(t)
    const idOf = async (claims: Record<string, unknown>) =>
      (await authenticate(`Bearer ${provider.token(claims)}`)).token_id
    const [first, again, other] = [await idOf({}), await idOf({ jti: 'x' }), await idOf({ sub: 'other' })]
    assert.match(first, /^jwt_[0-9a-f]{16}$/)
    assert.equal(again, first)
    assert.notEqual(other, first)
    const [none, otherNone] = [await idOf({ sub: undefined }), await idOf({ sub: undefined, jti: 'y' })]
    assert.notEqual(none, otherNone)
  })

  const claims: [name: string, claims: Claims, message: RegExp][] = [
    ['another issuer', { iss: 'https://login.example.com' }, /not of the issuer that is trusted here/],
    ['no issuer', { iss: undefined }, /not of the issuer|lacks a claim/],
    ['a list of issuers', { iss: [issuer] }, /not of the issuer/],
    ['another audience', { aud: publicUrl }, /not meant for this service/],
    ['no audience', { aud: undefined }, /not meant for this service|lacks a claim/],
    ['an audience list without this service', { aud: [publicUrl, 'x'] }, /not meant for this service/],
    ['an empty audience list', { aud: [] }, /not meant for this service/],
    [
      'an audience that only begins like this service',
      { aud: `${audience}/x` },
      /not meant for this service/,
    ],
    ['an object as audience', { aud: { 0: audience } }, /not meant for this service|lacks a claim/],
    ['no expiry', { exp: undefined }, incomplete],
    ['an expiry as text', { exp: String(seconds(600)) }, incomplete],
    ['an expiry of null', { exp: null }, incomplete],
    ['an expiry more than 60 s ago', { exp: seconds(-61) }, /^The access token expired\.$/],
    ['an expiry of 0', { exp: 0 }, /^The access token expired\.$/],
    ['a negative expiry', { exp: -1 }, /^The access token expired\.$/],
    ['an nbf as text', { nbf: 'now' }, incomplete],
    ['an nbf more than 60 s ahead', () => ({ nbf: seconds(70) }), /^The access token is not valid yet\.$/],
  ]
  for (const [name, given, message] of claims)
    test(`with ${name} is refused`, async t => {
      const service = await start(t)
      await assertRefused(
        service,
        service.provider.token(typeof given === 'function' ? given() : given),
        message,
        name,
      )
    })

  test('is accepted within 60 s of clock difference, and with this service in an audience list', async t => {
    const { authenticate, provider } = await start(t)
    for (const good of [
      { exp: seconds(-50) },
      { nbf: seconds(50) },
      { aud: ['x', audience] },
      { nbf: seconds(-600) },
    ])
      assert.ok(
        (await authenticate(`Bearer ${provider.token(good)}`)).mayRead('cus_ana'),
        JSON.stringify(good),
      )
  })

  test('expires exactly on time while it is remembered', async t => {
    const { authenticate, provider, clock } = await start(t)
    const token = provider.token({ exp: seconds(100) })
    await authenticate(`Bearer ${token}`)
    clock.offsetMs = 158_000
    await authenticate(`Bearer ${token}`)
    clock.offsetMs = 161_000
    assert.match((await refusalOf(authenticate, token)).message, /expired/)
    clock.offsetMs = 0
    await authenticate(`Bearer ${token}`)
  })

  test('that was not valid yet is accepted once its time has come', async t => {
    const { authenticate, provider, clock } = await start(t)
    const token = provider.token({ nbf: seconds(300) })
    assert.match((await refusalOf(authenticate, token)).message, /not valid yet/)
    clock.offsetMs = 300_000
    assert.ok((await authenticate(`Bearer ${token}`)).mayRead('cus_ana'))
  })

  test('needs the configured scope in scope or scp', async t => {
    const { authenticate, provider } = await start(t, { scope: 'invoices:read' })
    for (const good of [
      { scope: 'invoices:read' },
      { scope: 'openid invoices:read' },
      { scp: ['openid', 'invoices:read'] },
      { scp: 'invoices:read' },
    ])
      assert.ok((await authenticate(`Bearer ${provider.token(good)}`)).mayRead('cus_ana'))
    for (const bad of [
      {},
      { scope: '' },
      { scope: 'invoices:reader xinvoices:read' },
      { scope: ['invoices:readX'] },
      { scope: 1 },
      { scope: 'openid', scp: ['invoices:read'] },
    ]) {
      const refusal = await refusalOf(authenticate, provider.token(bad))
      assert.equal(refusal.code, 'insufficient_scope', JSON.stringify(bad))
      assert.equal(refusal.message, 'The access token lacks the scope invoices:read.')
    }
  })

  test('must have the type of an access token or the configured type', async t => {
    const usual = await start(t)
    for (const typ of ['at+jwt', 'JWT', 'jwt', 'application/at+jwt', undefined])
      await usual.authenticate(`Bearer ${usual.provider.token({}, { typ })}`)
    for (const typ of [
      'logout+jwt',
      'dpop+jwt',
      '',
      null,
      1,
      ['JWT'],
      'application/fatura-link+jwt',
      'FATURA-LINK+JWT',
      'xapplication/jwt',
      'jwtapplication/',
      'application/application/jwt',
    ])
      await assertRefused(
        usual,
        usual.provider.token({}, { typ }),
        /of a type that is not accepted here/,
        String(typ),
      )
    const strict = await start(t, { typ: 'application/AT+jwt' })
    await strict.authenticate(`Bearer ${strict.provider.token({}, { typ: 'at+JWT' })}`)
    for (const typ of ['JWT', undefined])
      await assertRefused(
        strict,
        strict.provider.token({}, { typ }),
        /of a type that is not accepted here/,
        String(typ),
      )
  })

  test('is never accepted as a link, and a link is never accepted as a JWT', async t => {
    const given = await start(t)
    const { provider, authenticate } = given
    await assertRefused(
      given,
      provider.token({ sub: 'cus_ana', aud: publicUrl }, { typ: 'fatura-link+jwt' }),
      /header of the link/,
      'typ',
    )
    const link = makeLinkSigner()
    const { x } = link.key
    provider.keys.push({ kty: 'OKP', crv: 'Ed25519', x, kid: link.key.kid, alg: 'EdDSA', use: 'sig' })
    // Even with the key in the provider's set, and claims that would do for both.
    const both = { iss: issuer, aud: [audience, publicUrl], customer_id: 'cus_ana' }
    assert.equal((await refusalOf(authenticate, link.token({ ...both }))).code, 'invalid_token')
    const withoutLinks = openVerifiers({
      provider: provider.options,
      ...{ publicUrl: null, findKey: () => accessOf(link.key), onProblem: () => {} },
    })
    t.after(() => withoutLinks.close())
    const other = createAuthenticate({ findToken: () => null, verifyJwt: withoutLinks.verifyJwt })
    assert.match(
      (await refusalOf(other, link.token({ ...both }))).message,
      /of a kind that is not accepted here/,
    )
    const withoutProvider = openVerifiers({
      provider: null,
      publicUrl,
      findKey: () => accessOf(link.key),
      onProblem: () => {},
    })
    t.after(() => withoutProvider.close())
    const third = createAuthenticate({ findToken: () => null, verifyJwt: withoutProvider.verifyJwt })
    assert.match((await refusalOf(third, provider.token())).message, /of a kind that is not accepted here/)
    assert.ok((await third(`Bearer ${link.token()}`)).mayRead('cus_ana'))
  })
})

describe('the rules of RFC 8725 for JWTs and key sets', () => {
  test('a JWT with the algorithm none, another key’s algorithm or a public key as secret is refused', async t => {
    const rsa = makeSigningKey('rsa', 'RS256')
    const undeclared = makeSigningKey('undeclared', 'RS256')
    const { alg: _, ...jwk } = undeclared.jwk
    const given = await start(t, {}, [rsa, { ...undeclared, jwk } as SigningKey])
    const { provider } = given
    const notAccepted = /signed with an algorithm that is not accepted/
    for (const alg of [
      'none',
      'None',
      'NONE',
      'nOnE',
      '',
      null,
      1,
      ['ES256'],
      'ES256K',
      'HS256',
      'HS512',
      'dir',
      'es256',
    ]) {
      const [, payload = ''] = provider.token().split('.')
      const header = encode({ alg, typ: 'JWT', kid: 'first' })
      await assertRefused(given, `${header}.${payload}.AA`, notAccepted, String(alg))
      await assertRefused(given, `${header}.${payload}.`, malformed, `${alg} without a signature`)
    }
    const pem = rsa.public.export({ format: 'pem', type: 'spki' })
    const der = rsa.public.export({ format: 'der', type: 'spki' })
    for (const secret of [pem, der, JSON.stringify(rsa.jwk), String(rsa.jwk.n)]) {
      const [, payload = ''] = provider.token().split('.')
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
      const forged = signJwt({ alg: 'HS256', kid: 'rsa' }, claims, createSecretKey(Buffer.from(secret)))
      await assertRefused(given, forged, notAccepted, 'HS256 with the public key')
      const disguised = signJwt({ alg: 'RS256', kid: 'rsa' }, claims, Buffer.from(secret), 'HS256')
      await assertRefused(given, disguised, unsigned, 'RS256 that is an HMAC')
    }
    for (const alg of ['PS256', 'RS384', 'RS512'])
      for (const key of [rsa, undeclared])
        await assertRefused(
          given,
          provider.token({}, {}, { ...key, alg }),
          unsigned,
          `${alg} with a key for RS256`,
        )
    await given.authenticate(`Bearer ${provider.token({}, {}, undeclared)}`)
  })

  test('a key that a JWT brings along is never used', async t => {
    const given = await start(t)
    const { provider } = given
    const own = makeSigningKey('first')
    for (const header of [
      { jwk: own.jwk },
      { jwk: own.jwk, kid: undefined },
      { jku: 'http://127.0.0.1:1/jwks.json' },
      { x5u: 'http://127.0.0.1:1/cert.pem' },
      { x5c: [own.public.export({ format: 'der', type: 'spki' }).toString('base64')] },
    ])
      await assertRefused(
        given,
        provider.token({}, header, own),
        unsigned,
        JSON.stringify(Object.keys(header)),
      )
    for (const kid of ['', 'second', '../first', 'first\0', 'FIRST', '__proto__', 'constructor'])
      await assertRefused(given, provider.token({}, { kid }), unsigned, kid)
    for (const kid of [1, null, ['first'], {}])
      await assertRefused(given, provider.token({}, { kid }), malformed, JSON.stringify(kid))
    // A known key that also names itself is the known key.
    await given.authenticate(`Bearer ${provider.token({}, { jku: 'http://127.0.0.1:1/' })}`)
  })

  test('a JWT without a kid is verified by the only key of its algorithm, and otherwise refused', async t => {
    const rsa = makeSigningKey('rsa', 'RS256')
    const { authenticate, provider } = await start(t, {}, [rsa])
    await authenticate(`Bearer ${provider.token({}, { kid: undefined })}`)
    const several = await start(t, {}, [makeSigningKey('second')])
    await assertRefused(several, several.provider.token({}, { kid: undefined }), unsigned, 'two of ES256')
    const doubled = await start(t, {}, [makeSigningKey('first')])
    await assertRefused(doubled, doubled.provider.token(), unsigned, 'two of one kid')
  })

  test('keys for other purposes are ignored', async t => {
    const { authenticate, provider } = await start(t)
    const [encrypting, signing, weak] = [
      makeSigningKey('enc'),
      makeSigningKey('ops'),
      makeSigningKey('weak', 'RS256', 1_024),
    ]
    const [unnamed, hmac] = [makeSigningKey('1'), makeSigningKey('hmac', 'ES256')]
    const good = makeSigningKey('good')
    const text = makeSigningKey('text')
    Object.assign(text.jwk, { key_ops: 'verify' })
    Object.assign(encrypting.jwk, { use: 'enc' })
    Object.assign(signing.jwk, { key_ops: ['sign'] })
    Object.assign(unnamed.jwk, { kid: 1 })
    Object.assign(hmac.jwk, { kty: 'oct', k: 'c2VjcmV0' })
    Object.assign(good.jwk, { key_ops: ['verify'], use: undefined, alg: undefined, more: {} })
    provider.keys.push(
      encrypting,
      signing,
      weak,
      unnamed,
      hmac,
      text,
      good,
      { kty: 'EC' },
      null as never,
      'x' as never,
    )
    for (const key of [encrypting, signing, weak, unnamed, hmac, text])
      assert.match((await refusalOf(authenticate, provider.token({}, {}, key))).message, unsigned, key.kid)
    await authenticate(`Bearer ${provider.token({}, {}, good)}`)
  })

  test('a key without an algorithm uses the usual one of its kind, and a key without an ID works', async t => {
    const keys = ['RS256', 'ES384', 'ES512', 'EdDSA'].map(alg => makeSigningKey('', alg))
    for (const { jwk } of keys) Object.assign(jwk, { alg: undefined, kid: undefined })
    const { authenticate, provider } = await start(t, {}, keys)
    for (const key of keys) await authenticate(`Bearer ${provider.token({}, { kid: undefined }, key)}`)
    const odd = makeSigningKey('', 'ES384')
    Object.assign(odd.jwk, { kid: 1 })
    const other = await start(t, {}, [odd])
    await assertRefused(
      other,
      other.provider.token({}, { kid: undefined }, odd),
      unsigned,
      'a kid that is no text',
    )
  })

  test('a key set has at most 100 keys, and each unusable key is reported with a reason', async t => {
    const [last, beyond] = [makeSigningKey('last'), makeSigningKey('beyond')]
    const none = Array.from({ length: 98 }, () => ({ kty: 'EC' }) as unknown as SigningKey)
    const given = await start(t, {}, [...none, last, beyond])
    await given.authenticate(`Bearer ${given.provider.token({}, {}, last)}`)
    await assertRefused(given, given.provider.token({}, {}, beyond), unsigned, 'the 101st')
    const [noSet, noKey] = ['it is not a JSON Web Key Set', 'it holds no key that can verify a signature']
    for (const [body, message] of [
      ['[]', noSet],
      ['null', noSet],
      ['{}', noSet],
      ['{"keys":"x"}', noSet],
      ['{"keys":[]}', noKey],
      ['{"keys":[null,1,{"kty":"oct","k":"AA","alg":"HS256"}]}', noKey],
    ] as const) {
      given.provider.respond = response => response.end(body)
      const told = await new Promise<Error>(resolve => {
        const { close } = openVerifiers({
          ...{ provider: given.provider.options, publicUrl: null, findKey: () => null },
          onProblem: resolve,
        })
        t.after(close)
      })
      assert.equal(told.message, message, body)
    }
  })

  test('the reading of a key set ends when the service closes', async t => {
    const provider = await startProvider(t)
    const asked = new Promise<ServerResponse>(resolve => {
      provider.respond = resolve
    })
    const { close } = openVerifiers({
      ...{ provider: provider.options, publicUrl: null, findKey: () => null, onProblem: () => {} },
    })
    const response = await asked
    const ended = once(response, 'close')
    close()
    await ended
  })

  test('a JWT whose key was removed is refused within half a second of the next read', async t => {
    const given = await start(t)
    const { provider, authenticate, clock } = given
    const header = `Bearer ${provider.token()}`
    await authenticate(header)
    clock.offsetMs = 499
    assert.ok(!(authenticate(header) instanceof Promise))
    clock.offsetMs = 501
    assert.ok(authenticate(header) instanceof Promise)
    await authenticate(header)
    const second = makeSigningKey('second')
    provider.keys = [second]
    await authenticate(`Bearer ${provider.token({}, {}, second)}`)
    clock.offsetMs = 1_003
    await assertRefused(given, header.slice('Bearer '.length), unsigned, 'gone')
  })

  test('a JWT without a valid signature counts as a wrong token', async t => {
    const second = makeSigningKey('first')
    for (const make of [
      (provider: Provider, jti: number) => provider.token({ jti }, {}, second),
      (provider: Provider, jti: number) => provider.token({ jti }, { kid: 'second' }),
    ]) {
      const { provider, authenticate } = await start(t)
      for (let n = 0; n < 100; n++) await refusalOf(authenticate, make(provider, n))
      assert.equal((await refusalOf(authenticate, make(provider, 100))).code, 'rate_limited')
    }
  })

  test('a JWT with crit or b64 in its header is refused', async t => {
    const given = await start(t)
    for (const crit of [['exp'], ['b64'], [], null, 'x', ['x']])
      await assertRefused(
        given,
        given.provider.token({}, { crit, b64: true }),
        /asks for an extension/,
        JSON.stringify(crit),
      )
  })

  test('a JWT with the same member twice in header or payload is refused, in any spelling', async t => {
    const given = await start(t)
    const { key, header, payload } = readToken(given)
    const twice = (json: string, member: string) => `${json.slice(0, -1)},${member}}`
    const forge = (h: string, p: string) => signJwt(h, p, key.private, 'ES256')
    await given.authenticate(`Bearer ${forge(header, payload)}`)
    await given.authenticate(
      `Bearer ${forge(header, twice(payload, '"a":{"b":[{"c":1},{"c":2}],"\\"a":"a\\\\","d":{}}'))}`,
    )
    for (const [h, p] of [
      [twice(header, '"alg":"ES256"'), payload],
      [twice(header, '"\\u0061lg":"ES256"'), payload],
      [twice(header, '"kid"  :  "first"'), payload],
      [header, twice(payload, '"customer_id":"cus_bob"')],
      [header, twice(payload, '"customer\\u005fid":"cus_bob"')],
      [header, twice(payload, '"a":[{"b":1,"b":2}]')],
      [header, twice(payload, '"a":{"b":{"c":1},"b":2}')],
      [header, twice(payload, '"x":"\\"","x":1')],
      [header, twice(payload, '"x":1,"a":"{","x":2')],
      [header, twice(payload, '"x":1,"a":["}"],"x":2')],
    ] as const)
      await assertRefused(given, forge(h, p), malformed, `${h} ${p}`)
  })

  test('a JWT whose parts are not JSON objects in UTF-8 is refused', async t => {
    const given = await start(t)
    const { key, header, payload } = readToken(given)
    const forge = (h: string | Buffer, p: string | Buffer) =>
      signJwt(h as string, p as string, key.private, 'ES256')
    const bad = [
      '',
      '[]',
      '1',
      'null',
      '"x"',
      '{',
      `\uFEFF${header}`,
      `${header},`,
      Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    ]
    for (const part of bad) {
      await assertRefused(given, forge(part, payload), malformed, `header ${part}`)
      await assertRefused(given, forge(header, part), malformed, `payload ${part}`)
    }
  })

  test('a JWT in a non-standard Base64 encoding is refused', async t => {
    const given = await start(t)
    const token = given.provider.token()
    const [h = '', p = '', s = ''] = token.split('.')
    await given.authenticate(`Bearer ${token}`)
    const lastBits = (part: string) => {
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      return part.slice(0, -1) + alphabet[alphabet.indexOf(part.at(-1) ?? '') ^ 1]
    }
    const same = (a: string, b: string) => Buffer.from(a, 'base64url').equals(Buffer.from(b, 'base64url'))
    assert.ok(same(lastBits(s), s), 'a lenient reader takes it for the same signature')
    const cases = [
      ...[`${h}=.${p}.${s}`, `${h}.${p}=.${s}`, `${h}.${p}.${s}=`, `${h}.${p}.${s}==`],
      ...[`${h}.${p}.${lastBits(s)}`, `${h}.${p}.${s}A`, `${h}.${p}.${s}AA`],
      ...[
        `${h}.${p}.${s.slice(0, 40)}\n${s.slice(40)}`,
        `${h}. ${p}.${s}`,
        `${h}.${p}.${s.slice(0, 9)}\t${s.slice(9)}`,
      ],
      ...[
        `${h}.${p}.${s}.`,
        `.${h}.${p}.${s}`,
        `${h}.${p}.${s}.${s}`,
        `${h}..${s}`,
        `${h}.${p}`,
        `${h}.${p}.`,
        `.${p}.${s}`,
        '..',
        'a.b.c',
      ],
      ...[`${h}.${p}.${s}\u00e9`, `${h}.${p}!.${s}`, `${h}.${p}.+${s.slice(1)}`, `${h}.${p}./${s.slice(1)}`],
      ...[`${h}.${p}.${s}\0`, `${h},${p},${s}`, `{"payload":"${p}","protected":"${h}","signature":"${s}"}`],
    ]
    for (const wrong of cases) {
      const refusal = await refusalOf(given.authenticate, wrong)
      assert.equal(refusal.code, 'invalid_token', wrong)
      assert.ok(
        malformed.test(refusal.message) || unsigned.test(refusal.message),
        `${refusal.message} ${wrong}`,
      )
    }
    const standard = Buffer.from(s, 'base64url').toString('base64')
    if (standard !== s) await assertRefused(given, `${h}.${p}.${standard}`, malformed, 'the other alphabet')
    for (const [index, part] of [h, p, s].entries()) {
      const parts = [h, p, s]
      parts[index] = lastBits(part)
      if (same(lastBits(part), part)) await assertRefused(given, parts.join('.'), malformed, `part ${index}`)
    }
  })

  test('a JWT may have at most 8,192 characters', async t => {
    const given = await start(t)
    const { provider, authenticate } = given
    // Two parts are padded, as no text in base64url is one character longer than a multiple of four.
    const padded = (length: number) => {
      for (let head = 0; head < 4; head++)
        for (let body = 0; ; body++) {
          const token = provider.token({ pad: 'x'.repeat(5_700 + body) }, { pad: 'x'.repeat(head) })
          if (token.length === length) return token
          if (token.length > length) break
        }
      return assert.fail(`no token of ${length} characters`)
    }
    assert.ok((await authenticate(`Bearer ${padded(8_192)}`)).mayRead('cus_ana'))
    await assertRefused(given, padded(8_193), malformed, 'longer')
  })

  test('a JWT with a changed signature or payload is refused', async t => {
    const given = await start(t)
    const { provider } = given
    const [h, p, s = ''] = provider.token().split('.')
    const bytes = Buffer.from(s, 'base64url')
    for (const place of [0, 1, 31, 32, 63]) {
      const changed = Buffer.from(bytes)
      changed[place] = (changed[place] ?? 0) ^ 1
      await assertRefused(given, `${h}.${p}.${changed.toString('base64url')}`, unsigned, `byte ${place}`)
    }
    for (const odd of [
      Buffer.alloc(64),
      Buffer.alloc(1),
      bytes.subarray(0, 32),
      Buffer.concat([bytes, bytes]),
    ])
      await assertRefused(given, `${h}.${p}.${odd.toString('base64url')}`, unsigned, 'another length')
    const [, other] = provider.token({ customer_id: 'cus_bob' }).split('.')
    await assertRefused(given, `${h}.${other}.${s}`, unsigned, 'another payload')
  })

  test('a genuine JWT for another service is verified only once', async t => {
    const { provider, authenticate } = await start(t, { scope: 'x' })
    const verify = t.mock.method(globalThis.crypto.subtle, 'verify')
    for (const [index, wrong] of [{}, { customer_id: 1, scope: 'x' }, { iss: 'x' }, { exp: 1 }].entries()) {
      const token = provider.token(wrong)
      for (let n = 0; n < 10; n++) await refusalOf(authenticate, token)
      assert.equal(verify.mock.callCount(), index + 1, JSON.stringify(wrong))
    }
    const early = provider.token({ nbf: seconds(600) })
    for (let n = 0; n < 3; n++) await refusalOf(authenticate, early)
    assert.equal(verify.mock.callCount(), 7, 'one that is too early, each time')
    const forged = provider.token({}, {}, makeSigningKey('first'))
    for (let n = 0; n < 3; n++) await refusalOf(authenticate, forged)
    assert.equal(verify.mock.callCount(), 8, 'one that is forged')
  })

  test('an error message shows no part of a JWT', async t => {
    const { provider, authenticate } = await start(t, { scope: 'x' })
    for (const claims of [
      {},
      { iss: 'canary' },
      { aud: 'canary' },
      { exp: 'canary' },
      { customer_id: 'canary' },
    ])
      assert.doesNotMatch((await refusalOf(authenticate, provider.token(claims))).message, /canary/)
  })
})
