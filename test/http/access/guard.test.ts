/** Guards against guesses that would slow the service, and against caches that would grow. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAuthenticate } from '../../../src/http/access/authenticate.ts'
import { createToken, hashToken, readTokenId } from '../../../src/http/access/token.ts'
import { createWindows, remainingSeconds } from '../../../src/http/access/windows.ts'
import { stopBothClocks } from '../../support/worlds/both-clocks.ts'
import { settle, stopClock } from '../../support/worlds/stopped-clock.ts'
import { withChecksum } from '../../support/worlds/tokens.ts'

type Refusal = { code: string; message: string; retryAfter?: number }

const send = (authenticate: ReturnType<typeof createAuthenticate>, token: string, remoteAddress: string) =>
  Promise.resolve()
    .then(() => authenticate(`Bearer ${token}`, () => remoteAddress))
    .then(
      () => ({ code: 'ok', message: '' }) as Refusal,
      (error: Refusal) => error,
    )

describe('an address with many wrong tokens', () => {
  const cases: [name: string, guessing: string[], refused: string[], others: string[]][] = [
    ['an IPv4 address', ['192.0.2.1'], ['192.0.2.1'], ['192.0.2.2', '192.0.2.10']],
    [
      'an IPv6 network of 64 bits',
      ['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::'],
      ['2001:db8:1:2:ffff::1'],
      ['2001:db8:1:3::1', '2001:db8:1::2', '2001:db8::1:2', '::1'],
    ],
    [
      'a shortened IPv6 network',
      ['::1', '::2', '0:0:0:0:9::'],
      ['::ffff', '0:0:0:0:1::2'],
      ['1::', '0:0:0:1::'],
    ],
    ['an IPv6 network whose spelling is similar to others', ['1:12::'], ['1:12::9'], ['11:2::']],
    ['an IPv6 network with leading zeros', ['1::2:3:4:5:6'], ['1:0:0:2:9::'], ['1::']],
    [
      'an IPv4 address in IPv6 form',
      ['::ffff:192.0.2.1'],
      ['::ffff:192.0.2.1'],
      ['::ffff:192.0.2.2', '192.0.2.1'],
    ],
  ]
  for (const [name, guessing, refused, others] of cases)
    test(`is refused after 100 wrong tokens, without effect on other addresses: ${name}`, async t => {
      stopClock(t)
      const authenticate = createAuthenticate({ findToken: () => null })
      for (let n = 0; n < 100; n++) {
        const { code } = await send(authenticate, createToken().token, guessing[n % guessing.length] ?? '')
        assert.equal(code, 'invalid_token', `guess ${n}`)
      }
      for (const address of [...guessing, ...refused]) {
        const refusal = await send(authenticate, createToken().token, address)
        assert.equal(refusal.code, 'rate_limited', address)
        assert.equal(refusal.retryAfter, 10)
      }
      for (const address of others)
        assert.equal((await send(authenticate, createToken().token, address)).code, 'invalid_token', address)
    })

  test('is also refused after wrong secrets of a known ID, but a token that succeeded before is let in', async t => {
    stopClock(t)
    const { id, token, hash } = createToken()
    const record = { id, hash, every_customer: true, expires_at: null, revoked_at: null }
    const authenticate = createAuthenticate({ findToken: asked => (asked === id ? record : null) })
    assert.equal((await send(authenticate, token, '192.0.2.1')).code, 'ok')
    const forgeries = Array.from({ length: 100 }, () => forge(id))
    for (const forged of forgeries)
      assert.equal((await send(authenticate, forged, '192.0.2.1')).message, 'The access token is not known.')
    assert.equal((await send(authenticate, forge(id), '192.0.2.1')).code, 'rate_limited')
    assert.equal((await send(authenticate, ` ${token}`, '192.0.2.1')).code, 'ok')
  })

  test('cannot cause more than 2,000 checks a second together with other addresses', async t => {
    const clock = stopClock(t)
    const asked: string[] = []
    const authenticate = createAuthenticate({
      findToken: async id => {
        asked.push(id)
        return null
      },
    })
    const crowd = Array.from({ length: 1_015 }, () => send(authenticate, createToken().token, '192.0.2.1'))
    await clock.pass(0)
    assert.ok(asked.length >= 1_000 && asked.length <= 1_001, `${asked.length} at once`)
    const other = createToken()
    const alone = send(authenticate, other.token, '192.0.2.2')
    await clock.pass(0)
    await clock.pass(2)
    assert.ok(asked.includes(other.id), 'its turn comes next')
    assert.ok(asked.length <= 1_006, `${asked.length} after 2 ms more`)
    assert.equal((await alone).code, 'invalid_token')
    for (let n = 0; n < 10; n++) await clock.pass(2)
    assert.equal(asked.length, 1_016)
    assert.ok((await Promise.all(crowd)).every(({ code }) => code !== 'unavailable'))
  })

  /** Another secret for an id, with a right checksum: ids are the start of the token. */
  function forge(id: string): string {
    for (;;) {
      const { token } = createToken()
      const forged = withChecksum(id + token.slice(id.length, -6))
      assert.equal(readTokenId(forged), id)
      return forged
    }
  }

  test('gets 20 lookups at once and 1,000 that wait for a second, and then 503', async t => {
    const clock = stopClock(t)
    const asked: ((found: null) => void)[] = []
    const authenticate = createAuthenticate({ findToken: () => new Promise(resolve => asked.push(resolve)) })
    const answers = Array.from({ length: 1_021 }, () => send(authenticate, createToken().token, '192.0.2.1'))
    let gaveUp = 0
    for (const answer of answers)
      answer.then(({ code }) => {
        if (code === 'unavailable') gaveUp++
      })
    const last = await (answers.at(-1) as Promise<Refusal>)
    assert.equal(gaveUp, 1)
    assert.deepEqual([last.code, last.retryAfter], ['unavailable', 1])
    assert.equal(last.message, 'The token could not be checked in time.')
    assert.equal(asked.length, 20)
    const other = send(authenticate, createToken().token, '192.0.2.2')
    await settle()
    assert.equal(asked.length, 21, 'another address does not wait')
    asked[0]?.(null)
    assert.equal((await (answers[0] as Promise<Refusal>)).code, 'invalid_token')
    await settle()
    assert.equal(asked.length, 22, 'the next in line')
    asked[1]?.(null)
    assert.equal((await (answers[1] as Promise<Refusal>)).code, 'invalid_token')
    await settle()
    assert.equal(asked.length, 23, 'and the one after it')
    await clock.pass(999)
    assert.equal(gaveUp, 1, 'the others wait')
    await clock.pass(1)
    assert.equal(gaveUp, 1 + 998)
    for (const resolve of asked) resolve(null)
    await other
  })

  test('starts exactly one more lookup when a lookup ends', async () => {
    const asked: ((found: null) => void)[] = []
    const authenticate = createAuthenticate({ findToken: () => new Promise(resolve => asked.push(resolve)) })
    const sendMore = (count: number) =>
      Array.from({ length: count }, () => send(authenticate, createToken().token, '192.0.2.1'))
    const [first] = sendMore(20)
    await settle()
    asked[0]?.(null)
    await first
    sendMore(5)
    await settle()
    assert.equal(asked.length, 21)
    for (const resolve of asked) resolve(null)
  })

  test('does not delay a token that was valid in the last hour', async t => {
    let monotonic = performance.now()
    t.mock.method(performance, 'now', () => monotonic)
    const good = Array.from({ length: 5 }, () => createToken())
    const records = new Map(
      good.map(({ id, hash }) => [
        id,
        { id, hash, every_customer: true, expires_at: null, revoked_at: null },
      ]),
    )
    const others: ((found: null) => void)[] = []
    const findToken = (id: string) => records.get(id) ?? new Promise<null>(resolve => others.push(resolve))
    const authenticate = createAuthenticate({ findToken })
    const [first, ...later] = good.map(({ token }) => token) as [string, ...string[]]
    assert.equal((await send(authenticate, first, '192.0.2.1')).code, 'ok')
    for (const token of later.slice(0, 3)) {
      monotonic += 19 * 60_000
      assert.equal((await send(authenticate, token, '192.0.2.1')).code, 'ok')
    }
    monotonic += 501
    for (let n = 0; n < 30; n++) send(authenticate, createToken().token, '192.0.2.1')
    await settle()
    assert.equal(others.length, 20)
    assert.equal((await send(authenticate, first, '192.0.2.1')).code, 'ok')
    for (const resolve of others) resolve(null)
  })
})

describe('the guard’s memory', () => {
  test('begins a window at the first count, ends it on time, and gives its remaining time in whole seconds', () => {
    const windows = createWindows(10)
    assert.equal(windows.find('a', 0), undefined)
    assert.deepEqual({ ...windows.add('a', 500) }, { count: 1, endsMs: 10_500 })
    assert.deepEqual({ ...windows.add('a', 10_499) }, { count: 2, endsMs: 10_500 })
    assert.equal(windows.find('a', 10_499)?.count, 2)
    assert.equal(windows.find('a', 10_500), undefined)
    assert.deepEqual({ ...windows.add('a', 10_500) }, { count: 1, endsMs: 20_500 })
    for (const [left, told] of [
      [10_000, 10],
      [10_000.4, 10],
      [9_001, 10],
      [9_000, 9],
      [1, 1],
      [0, 1],
      [-5, 1],
    ] as const)
      assert.equal(remainingSeconds({ count: 1, endsMs: 50_000 + left }, 50_000), told, String(left))
  })

  test('identifies a token by its SHA-256, and keeps the store’s answer for half a second', async () => {
    assert.equal(hashToken('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    const { id, token, hash } = createToken()
    const record = { id, hash, every_customer: false, expires_at: null, revoked_at: null }
    const scopesAsked: string[] = []
    const { clock, now } = stopBothClocks()
    const authenticate = createAuthenticate({
      findToken: () => record,
      coversCustomer(...pair) {
        scopesAsked.push(pair.join(' '))
        return pair[1] === 'cus_ana'
      },
      now,
    })
    assert.equal((await send(authenticate, token, '')).code, 'ok')
    clock.offsetMs = 499
    assert.ok(!(authenticate(`Bearer ${token}`) instanceof Promise))
    clock.offsetMs = 501
    assert.ok(authenticate(`Bearer ${token}`) instanceof Promise)
    const grant = await authenticate(`Bearer ${token}`)
    const reads = () => [grant.mayRead('cus_ana'), grant.mayRead('cus_bob')]
    assert.deepEqual(await Promise.all([...reads(), ...reads()]), [true, false, true, false])
    assert.deepEqual(reads(), [true, false])
    assert.deepEqual(
      [grant.mayRead('nobody'), grant.mayRead('cus_a b'), grant.mayRead('')],
      [false, false, false],
    )
    assert.deepEqual(scopesAsked, [`${id} cus_ana`, `${id} cus_bob`], 'each customer once')
    clock.offsetMs += 501
    assert.equal(await grant.mayRead('cus_ana'), true)
    assert.equal(scopesAsked.length, 3)
  })
})
