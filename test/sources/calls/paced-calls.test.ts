/** Calls to an upstream: within its rates, what is urgent first, and no slower for taking long. */
import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import type { Failures } from '../../../src/sources/calls/failures.ts'
import { createPacedCall, type Pace } from '../../../src/sources/calls/paced-calls.ts'
import { Throttle } from '../../../src/sources/calls/throttle.ts'
import { SourceError } from '../../../src/sources/source.ts'
import { paceFor } from '../../../src/sources/stripe/client.ts'
import { campaign } from '../../support/checks/campaign.ts'
import { stopClock } from '../../support/worlds/stopped-clock.ts'

class Refused extends Error {}

const pauseMs = 400

const failures: Failures = {
  name: 'Upstream',
  mayPass: () => true,
  isFault: () => true,
  pauseFor: error => (error instanceof Refused ? pauseMs : 0),
  explain: () => new SourceError('failed', 'no'),
}

const pace = (rates: Partial<Pace>): Pace => ({ perSecond: 1_000, attempts: 3, patienceMs: 5_000, ...rates })

/** The most of these moments that lie within one second. */
function maxPerSecond(moments: readonly number[]): number {
  return Math.max(...moments.map(from => moments.filter(at => at >= from && at < from + 1_000).length))
}

describe('calls to a source', () => {
  it('keep the rate of each endpoint and of all together, even when answers are slow', async t => {
    const clock = stopClock(t)
    const call = createPacedCall(pace({ perSecond: 60, perEndpoint: 20 }), failures)
    const asked: Record<string, number[]> = { a: [], b: [], c: [], d: [] }
    const ask = (endpoint: string) =>
      call(
        async () => {
          asked[endpoint]?.push(clock.passedMs)
          await sleep(700)
        },
        { endpoint },
      )
    const names = Object.keys(asked)
    const done = Promise.all(names.flatMap(name => Array.from({ length: 40 }, () => ask(name))))
    const moments = () => Object.values(asked).flat()
    while (moments().length < 160) await clock.pass(1_000)
    await clock.pass(700)
    await done
    for (const name of names) assert.equal(maxPerSecond(asked[name] ?? []), 20, name)
    assert.equal(maxPerSecond(moments()), 60)
    // Three endpoints take up the rate of all, for two seconds, and the fourth follows. One after the other, 160 calls of 0.7 s take 112 s.
    assert.ok(Math.max(...moments()) < 4_000, `the last one after ${Math.max(...moments())} ms`)
  })

  it('come first when they are urgent, and last at their own rate when they are slow', async t => {
    const clock = stopClock(t)
    const call = createPacedCall(pace({ perSecond: 50, slowlyPerSecond: 5, inFlight: 4 }), failures)
    const order: string[] = []
    const slow: number[] = []
    const ask = (urgency: 'now' | 'soon' | 'slowly') =>
      call(
        async () => {
          order.push(urgency)
          if (urgency === 'slowly') slow.push(clock.passedMs)
          await sleep(20)
        },
        { endpoint: urgency, urgency },
      )
    const asked = [
      ...Array.from({ length: 60 }, () => ask('soon')),
      ...Array.from({ length: 6 }, () => ask('slowly')),
    ]
    await clock.pass(100)
    const before = order.length
    asked.push(ask('now'))
    await clock.pass(3_000)
    await Promise.all(asked)
    assert.equal(order.indexOf('now'), before, `${order}`)
    assert.equal(order.indexOf('slowly'), 61)
    assert.deepEqual([slow.length, maxPerSecond(slow)], [6, 5])
  })

  it('are limited in number at the same time, and keep room for urgent calls', async t => {
    const clock = stopClock(t)
    const call = createPacedCall(pace({ inFlight: 3, patienceMs: 60_000 }), failures)
    let [underWay, most] = [0, 0]
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const slow = Array.from({ length: 20 }, () =>
      call(async () => {
        most = Math.max(most, ++underWay)
        await gate
        underWay--
      }),
    )
    await clock.pass(10_000)
    assert.equal(underWay, 3)
    assert.equal(await call(async () => 'answered', { urgency: 'now' }), 'answered')
    open()
    await clock.pass(100)
    await Promise.all(slow)
    assert.equal(most, 3)
  })

  it('all wait when one call is refused for its rate', async t => {
    const clock = stopClock(t)
    const call = createPacedCall(pace({ perSecond: 200 }), failures)
    const asked: number[] = []
    const ask = () =>
      call(async () => {
        asked.push(clock.passedMs)
        if (asked.length === 5) throw new Refused()
      })
    const all = Promise.all(Array.from({ length: 40 }, ask))
    await clock.pass(5_000)
    await all
    assert.equal(asked.length, 41)
    assert.equal((asked[5] ?? 0) - (asked[4] ?? 0), pauseMs)
  })

  it('stay below what Stripe allows', () => {
    const base = 'https://api.stripe.com'
    for (const apiKey of ['sk_live_x', 'rk_live_x']) {
      const { perSecond, perEndpoint = 0 } = paceFor({ base, apiKey })
      assert.ok(perSecond < 100 && perEndpoint < 25)
    }
    for (const apiKey of ['sk_test_x', 'rk_test_x']) assert.ok(paceFor({ base, apiKey }).perSecond < 25)
  })
})

test('no second has more calls than the rates allow, even when timers are late', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const names = ['a', 'b', 'c', 'd']
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 700 }), { maxLength: 30 }), async lateness => {
      let now = 0
      const turns = new Throttle({ perSecond: 60, perEndpoint: 20, inFlight: 160 }, () => now)
      const given: Record<string, number[]> = Object.fromEntries(names.map(name => [name, []]))
      for (let n = 0; n < 40; n++)
        for (const name of names) turns.take(name, 'soon').then(() => given[name]?.push(now))
      const pass = async (milliseconds: number) => {
        now += milliseconds
        t.mock.timers.tick(milliseconds)
        await nextTurn()
      }
      await nextTurn()
      for (const milliseconds of lateness) await pass(milliseconds)
      const stoodStill = now
      const all = () => names.flatMap(name => given[name] ?? [])
      while (all().length < 160 && now < stoodStill + 4_000) await pass(5)
      assert.equal(all().length, 160, `within ${now - stoodStill} ms`)
      for (const name of names) assert.ok(maxPerSecond(given[name] ?? []) <= 20, name)
      assert.ok(maxPerSecond(all()) <= 60)
    }),
    { numRuns: campaign(20, 2_000) },
  )
})
