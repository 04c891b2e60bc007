/** Tokens of customer links: which are let in, for what, and for how long. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Authenticate, createAuthenticate } from '../../../src/http/access/authenticate.ts'
import { createKeyId, isKeyId, maxLinkSeconds } from '../../../src/http/access/link-form.ts'
import { openVerifiers } from '../../../src/http/access/open-verifiers.ts'
import type { StoredKey } from '../../../src/store/store.ts'
import { stopBothClocks } from '../../support/worlds/both-clocks.ts'
import { accessOf, encode, makeLinkSigner, publicUrl, signJwt } from '../../support/worlds/identity.ts'

let startedMs = Date.now()

function start(...keys: StoredKey[]) {
  const { clock, begun, now } = stopBothClocks()
  startedMs = begun
  const asked: string[] = []
  const { verifyJwt } = openVerifiers({
    provider: null,
    publicUrl,
    findKey: async kid => {
      asked.push(kid)
      const found = keys.find(key => key.kid === kid)
      return found === undefined ? null : accessOf(found)
    },
    coversCustomer: (kid, customer) =>
      keys.find(key => key.kid === kid)?.customers?.includes(customer) === true,
    onProblem: () => {},
    now,
  })
  const authenticate = createAuthenticate({ findToken: () => null, verifyJwt, now })
  return { authenticate, clock, asked, now }
}

async function messageOf(authenticate: Authenticate, token: string, client?: () => string) {
  try {
    await authenticate(`Bearer ${token}`, client)
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    assert.equal(code, 'invalid_token', message)
    return message
  }
  return assert.fail(`let in: ${token}`)
}

/** By the clock of the last start. */
const seconds = (offset = 0) => Math.floor(startedMs / 1000) + offset

describe('a customer link', () => {
  test('opens its customer or one invoice, and shares a rate limit with the customer’s other links', async () => {
    const signer = makeLinkSigner()
    const { authenticate } = start(signer.key)
    const whole = await authenticate(`Bearer ${signer.token()}`)
    assert.deepEqual(
      [whole.mayRead('cus_ana'), whole.mayRead('cus_bob'), whole.mayRead(''), whole.invoice_id],
      [true, false, false, null],
    )
    const bound = await authenticate(`Bearer ${signer.token({ invoice: 'in_1' })}`)
    assert.deepEqual([bound.mayRead('cus_ana'), bound.invoice_id], [true, 'in_1'])
    assert.equal(whole.token_id, `${signer.key.kid}:cus_ana`)
    assert.equal(bound.token_id, whole.token_id)
    const other = await authenticate(`Bearer ${signer.token({ sub: 'cus_bob' })}`)
    assert.equal(other.token_id, `${signer.key.kid}:cus_bob`)
  })

  const header = /^The header of the link is not the one of a customer link\.$/
  const claim = /^The link lacks a claim that is required, or has one of the wrong form\.$/
  const required = /lacks a claim that is required, or has one of the wrong form\.$/
  const unsigned = /^The access token is not signed by a known key\.$/
  const cases: [
    name: string,
    claims: Record<string, unknown> | (() => Record<string, unknown>),
    head: Record<string, unknown>,
    message: RegExp,
  ][] = [
    ['another audience', { aud: 'https://other.example.com' }, {}, /not meant for this service/],
    ['an audience with a / at its end', { aud: `${publicUrl}/` }, {}, /not meant for this service/],
    ['a list of audiences', { aud: [publicUrl] }, {}, claim],
    ['no audience', { aud: undefined }, {}, /not meant for this service|required/],
    ['no subject', { sub: undefined }, {}, claim],
    ['a subject that is not a customer', { sub: 'ana' }, {}, claim],
    ['a list of subjects', { sub: ['cus_ana'] }, {}, required],
    ['an invalid invoice ID', { invoice: 'cus_ana' }, {}, claim],
    ['an invoice of null', { invoice: null }, {}, claim],
    ['an empty invoice ID', { invoice: '' }, {}, claim],
    ['a list of invoices', { invoice: ['in_1'] }, {}, claim],
    ['no expiry', { exp: undefined }, {}, required],
    ['no start time', { iat: undefined }, {}, claim],
    ['a start time as text', { iat: '1' }, {}, required],
    ['a start time with a fraction', { iat: seconds() + 0.5 }, {}, claim],
    ['an expiry with a fraction', { exp: seconds(60) + 0.5 }, {}, claim],
    ['a start time in the future', () => ({ iat: seconds(70), exp: seconds(100) }), {}, /not valid yet/],
    [
      'a life of a day and a second',
      { iat: seconds(-9), exp: seconds(-9) + maxLinkSeconds + 1 },
      {},
      /longer than 24 hours/,
    ],
    ['an expiry in the past', { iat: seconds(-600), exp: seconds(-61) }, {}, /^The access token expired\.$/],
    ['another algorithm', {}, { alg: 'Ed25519' }, header],
    ['no key ID', {}, { kid: undefined }, header],
    ['an invalid key ID', {}, { kid: 'first' }, header],
    ['a list of key IDs', {}, { kid: [createKeyId()] }, header],
    ['another member in its header', {}, { jku: 'https://x.example' }, header],
    ['a key in its header', {}, { jwk: { kty: 'OKP' } }, header],
    ['an unknown key', {}, { kid: createKeyId() }, unsigned],
  ]
  for (const [name, claims, head, message] of cases)
    test(`with ${name} is refused`, async () => {
      const signer = makeLinkSigner()
      const { authenticate } = start(signer.key)
      const given = typeof claims === 'function' ? claims() : claims
      assert.match(await messageOf(authenticate, signer.token(given, head)), message)
      assert.match(await messageOf(authenticate, signer.token(given, head)), message)
    })

  test('is valid for up to 24 hours, with a minute for clock differences', async () => {
    const signer = makeLinkSigner()
    const { authenticate } = start(signer.key)
    const iat = seconds()
    for (const good of [
      { iat, exp: iat + maxLinkSeconds },
      { iat: seconds(50) },
      { iat: seconds(-600), exp: seconds(-50) },
    ])
      assert.ok((await authenticate(`Bearer ${signer.token(good)}`)).mayRead('cus_ana'))
    assert.equal(maxLinkSeconds, 86_400)
  })

  test('from the future is accepted from a minute before its time', async () => {
    const signer = makeLinkSigner()
    const { authenticate, clock, now } = start(signer.key)
    clock.offsetMs = -(now() % 1_000)
    const token = signer.token({ iat: now() / 1_000 + 61, exp: now() / 1_000 + 90 })
    assert.equal(await messageOf(authenticate, token), 'The access token is not valid yet.')
    clock.offsetMs += 1_000
    assert.ok((await authenticate(`Bearer ${token}`)).mayRead('cus_ana'))
  })

  test('of another key or with changes is refused, and a malformed key ID never reaches the store', async () => {
    const [signer, other] = [makeLinkSigner(), makeLinkSigner()]
    const { authenticate, asked } = start(signer.key, other.key)
    assert.match(await messageOf(authenticate, signer.token({}, { kid: other.key.kid })), unsigned)
    const [h, , s] = signer.token().split('.')
    const payload = encode({ sub: 'cus_bob', aud: publicUrl, iat: seconds(), exp: seconds(60) })
    assert.match(await messageOf(authenticate, `${h}.${payload}.${s}`), unsigned)
    asked.length = 0
    for (const kid of [
      '',
      'key_',
      'key_a',
      `key_${'a'.repeat(13)}`,
      `key_${'a'.repeat(11)}_`,
      ` ${createKeyId()}`,
    ])
      assert.match(await messageOf(authenticate, signer.token({}, { kid })), header, kid)
    assert.deepEqual(asked, [])
    assert.ok(isKeyId(createKeyId()) && !isKeyId([createKeyId()]))
    // A key of the provider's kind is no key of links.
    const es256 = signJwt(
      { alg: 'ES256', typ: 'fatura-link+jwt', kid: signer.key.kid },
      {},
      signer.private,
      'EdDSA',
    )
    assert.match(await messageOf(authenticate, es256), header)
  })

  test('ends with its key within a second, and stays refused', async () => {
    const signer = makeLinkSigner()
    const { authenticate, clock } = start(signer.key)
    const [token, bound] = [signer.token(), signer.token({ invoice: 'in_1' })]
    for (const good of [token, bound]) await authenticate(`Bearer ${good}`)
    signer.key.revoked_at = Date.now()
    clock.offsetMs = 501
    for (const ended of [token, bound, signer.token({ jti: 'new' })])
      assert.equal(await messageOf(authenticate, ended), 'The key of the link was revoked.')
    assert.match(
      await messageOf(authenticate, signer.token({ exp: seconds(-99), iat: seconds(-999) })),
      /expired/,
    )
    // That it was revoked is told only to who has a link that it signed.
    const [h, p, s = ''] = token.split('.')
    assert.match(await messageOf(authenticate, `${h}.${p}.${s.slice(0, -4)}AAAA`), unsigned)
  })

  test('is refused when the store no longer has its key', async () => {
    const signer = makeLinkSigner()
    const { authenticate, clock } = start(signer.key)
    const token = signer.token()
    await authenticate(`Bearer ${token}`)
    signer.key.kid = createKeyId()
    clock.offsetMs = 501
    assert.match(await messageOf(authenticate, token), unsigned)
  })

  test('is refused after a revocation, even when its key was remembered just before', async () => {
    const signer = makeLinkSigner()
    const { authenticate, clock } = start(signer.key)
    await authenticate(`Bearer ${signer.token()}`)
    clock.offsetMs = 450
    const late = signer.token({ jti: 'late' })
    await authenticate(`Bearer ${late}`)
    signer.key.revoked_at = 1
    clock.offsetMs = 510
    assert.match(await messageOf(authenticate, late), /revoked/)
  })

  test('opens only its key’s customers, also after these customers change', async () => {
    const signer = makeLinkSigner(['cus_ana', 'cus_bob'])
    const { authenticate, clock } = start(signer.key)
    await authenticate(`Bearer ${signer.token()}`)
    await authenticate(`Bearer ${signer.token({ sub: 'cus_bob' })}`)
    const foreign = /^The key of the link may not sign for this customer\.$/
    assert.match(await messageOf(authenticate, signer.token({ sub: 'cus_carla' })), foreign)
    assert.match(await messageOf(authenticate, signer.token({ sub: 'cus_an' })), foreign)
    signer.key.customers = []
    clock.offsetMs = 600
    assert.match(await messageOf(authenticate, signer.token()), foreign)
    const none = makeLinkSigner([])
    assert.match(await messageOf(start(none.key).authenticate, none.token()), foreign)
  })

  test('asks the store for its key at most twice a second, and also for an unknown key', async () => {
    const signer = makeLinkSigner()
    const { authenticate, clock, asked } = start(signer.key)
    const tokens = Array.from({ length: 20 }, (_, n) => signer.token({ jti: n }))
    await Promise.all(tokens.map(token => authenticate(`Bearer ${token}`)))
    for (const token of tokens) await authenticate(`Bearer ${token}`)
    assert.equal(asked.length, 1)
    clock.offsetMs = 501
    for (const token of tokens) await authenticate(`Bearer ${token}`)
    assert.equal(asked.length, 2)
    const kid = createKeyId()
    for (let n = 0; n < 20; n++) await messageOf(authenticate, signer.token({ jti: n }, { kid }))
    assert.equal(asked.length, 3)
  })
})

describe('the verification of JWTs and links', () => {
  test('happens once for each signature, however many requests send it at once', async t => {
    const signer = makeLinkSigner()
    const { authenticate, clock } = start(signer.key)
    const verify = t.mock.method(globalThis.crypto.subtle, 'verify')
    const token = signer.token()
    await Promise.all(Array.from({ length: 30 }, () => authenticate(`Bearer ${token}`)))
    for (clock.offsetMs = 0; clock.offsetMs < 5_000; clock.offsetMs += 600)
      await authenticate(`Bearer ${token}`)
    assert.equal(verify.mock.callCount(), 1)
    const forged = `${token.slice(0, -4)}AAAA`
    for (let n = 0; n < 30; n++) await messageOf(authenticate, forged)
    assert.equal(verify.mock.callCount(), 2, 'a forged one, too')
    const late = signer.token({ exp: seconds(-99), iat: seconds(-999) })
    for (let n = 0; n < 30; n++) await messageOf(authenticate, late)
    assert.equal(verify.mock.callCount(), 3, 'and one that expired')
    for (const [index, wrong] of [
      { sub: 'ana' },
      { aud: 'https://x.example' },
      { exp: seconds(2 * maxLinkSeconds) },
      { exp: 'x' },
    ].entries()) {
      const token = signer.token(wrong)
      for (let n = 0; n < 10; n++) await messageOf(authenticate, token)
      assert.equal(verify.mock.callCount(), 4 + index, JSON.stringify(wrong))
    }
  })

  test('does not delay a remembered token, whatever its length and spaces are', async () => {
    const signer = makeLinkSigner()
    const { authenticate } = start(signer.key)
    const header = `Bearer ${signer.token()}`
    assert.ok(authenticate(header) instanceof Promise)
    await authenticate(header)
    assert.ok(!(authenticate(header) instanceof Promise))
    const long = `Bearer ${signer.token({ pad: 'x'.repeat(1_600) })}`
    assert.ok(long.length > 2_048 + 7)
    await authenticate(long)
    const again = authenticate(long)
    assert.ok(!(again instanceof Promise) && again.mayRead('cus_ana'))
    assert.ok(!(authenticate(header.replace(' ', '   ')) instanceof Promise))
  })

  test('is not repeated for an hour after a valid signature, and for seconds after a refused one', async t => {
    const verify = t.mock.method(globalThis.crypto.subtle, 'verify')
    const signer = makeLinkSigner()
    const { authenticate, clock } = start(signer.key)
    const token = signer.token({ exp: seconds(80_000), iat: seconds() })
    const forged = signer.token({}, { kid: signer.key.kid }).replace(/.{4}$/, 'AAAA')
    const verifications = async (...sent: string[]) => {
      const before = verify.mock.callCount()
      for (const each of sent)
        await Promise.resolve(`Bearer ${each}`)
          .then(authenticate)
          .catch(() => {})
      return verify.mock.callCount() - before
    }
    await authenticate(`Bearer ${token}`)
    assert.equal(await verifications(forged, forged), 1)
    for (const minute of [20, 40, 59]) {
      clock.offsetMs = minute * 60_000
      await authenticate(`Bearer ${token}`)
    }
    assert.equal(verify.mock.callCount(), 2)
    assert.equal(await verifications(forged, forged), 1)
    clock.offsetMs = 60 * 60_000 + 1
    assert.equal(await verifications(token, token), 1)
  })

  test('counts forged variants against the client’s address, and always lets valid tokens in', async () => {
    const signer = makeLinkSigner()
    const { authenticate, asked } = start(signer.key)
    const client = () => '192.0.2.1'
    const good = signer.token()
    await authenticate(`Bearer ${good}`, client)
    const codes = new Map<string, number>()
    const count = (code: string) => codes.set(code, (codes.get(code) ?? 0) + 1)
    for (let n = 0; n < 150; n++) {
      const forged = `${good.slice(0, -20)}${1_000 + n}${good.slice(-16)}`
      await Promise.resolve(authenticate(`Bearer ${forged}`, client)).catch(error => count(error.code))
    }
    for (let n = 0; n < 20; n++)
      await Promise.resolve(authenticate(`Bearer ${signer.token({}, { kid: createKeyId() })}`, client)).catch(
        error => count(error.code),
      )
    assert.deepEqual(Object.fromEntries(codes), { invalid_token: 100, rate_limited: 70 })
    assert.equal(asked.length, 21)
    await authenticate(`Bearer ${good} `, client)
    await authenticate(`Bearer ${signer.token({ jti: 1 })}`, client)
  })

  test('counts invented key IDs against the client’s address, but not tokens for another service', async () => {
    const signer = makeLinkSigner()
    const { authenticate } = start(signer.key)
    const client = () => '192.0.2.1'
    for (let n = 0; n < 120; n++)
      await messageOf(authenticate, signer.token({ aud: `https://x.example/${n}` }), client)
    for (let n = 0; n < 100; n++)
      await messageOf(authenticate, signer.token({}, { kid: createKeyId() }), client)
    const another = signer.token({}, { kid: createKeyId() })
    await assert.rejects(async () => authenticate(`Bearer ${another}`, client), {
      code: 'rate_limited',
      message: 'This address sent 100 unknown access tokens within 10 s.',
    })
    await authenticate(`Bearer ${signer.token()}`, client)
  })

  test('does not happen when JWTs and links are not configured', async () => {
    const authenticate = createAuthenticate({ findToken: () => null })
    assert.equal(await messageOf(authenticate, makeLinkSigner().token()), 'The access token is malformed.')
    assert.equal(await messageOf(start().authenticate, 'a.b.c'), 'The access token is malformed.')
  })
})
