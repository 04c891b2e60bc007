/** Calls to an upstream: within its rates, what is urgent first, and no slower for taking long. */
import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { SourceError } from '../../src/sources.ts'
import { paceFor } from '../../src/stripe/client.ts'
import type { Failures } from '../../src/upstream/failures.ts'
import { createPacedCall, type Pace } from '../../src/upstream/paced-calls.ts'
import { createThrottle } from '../../src/upstream/throttle.ts'
import { campaign } from '../support/campaign.ts'
import { eventually } from '../support/cli.ts'
import { onThisMachine } from '../support/machine-speed.ts'

class Refused extends Error {}

const failures: Failures = {
  name: 'Upstream',
  mayPass: () => true,
  isFault: () => true,
  pauseFor: error => (error instanceof Refused ? 400 : 0),
  explain: () => new SourceError('failed', 'no'),
}

const pace = (rates: Partial<Pace>): Pace => ({ perSecond: 1_000, attempts: 3, patienceMs: 5_000, ...rates })

/** The most of these moments that lie within one second. */
function mostPerSecond(moments: readonly number[]): number {
  return Math.max(...moments.map(from => moments.filter(at => at >= from && at < from + 1_000).length))
}

interface Gap {
  from: number
  to: number
}

/** Notes when the process stood still: each pause between two turns of its loop. */
function watchStanding(): { gaps: Gap[]; stop(): void } {
  const gaps: Gap[] = []
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    gaps.push({ from: last, to: now })
    last = now
  }, 5)
  return { gaps, stop: () => clearInterval(timer) }
}

/** Fails when more lie within a second than allowed, and than come late by the longest pause around it. */
function assertPaced(
  moments: readonly number[],
  allowed: number,
  perSecond: number,
  gaps: readonly Gap[],
): void {
  for (const from of moments) {
    const n = moments.filter(at => at >= from && at < from + 1_000).length
    const around = gaps.filter(gap => gap.to > from - 1_000 && gap.from < from + 1_000)
    const stoodMs = Math.max(0, ...around.map(gap => gap.to - gap.from))
    const bound = Math.floor(allowed + (perSecond * stoodMs) / 1_000)
    assert.ok(
      n <= bound,
      `${n} within a second, at most ${bound}: it stood still for ${Math.round(stoodMs)} ms`,
    )
  }
}

describe('paced calls', { concurrency: 6 }, () => {
  it('keep to the rate of each endpoint and of all, and none of it is lost to slow answers', async () => {
    const call = createPacedCall(pace({ perSecond: 60, perEndpoint: 20 }), failures)
    const asked: Record<string, number[]> = { a: [], b: [], c: [], d: [] }
    const ask = (endpoint: string) =>
      call(
        async () => {
          asked[endpoint]?.push(performance.now())
          await sleep(700)
        },
        { endpoint },
      )
    const names = Object.keys(asked)
    const bound = onThisMachine(20_000) / 1000
    const standing = watchStanding()
    const started = performance.now()
    await Promise.all(names.flatMap(name => Array.from({ length: 40 }, () => ask(name))))
    const seconds = (performance.now() - started) / 1000
    standing.stop()
    // A process that stands still between a turn and its call makes that call late, and the others follow it within a second: so many
    // more as it stood still. The turns themselves keep to the rate; see below.
    for (const name of names) assertPaced(asked[name] ?? [], 22, 20, standing.gaps)
    assertPaced(Object.values(asked).flat(), 66, 60, standing.gaps)
    // 160 calls of 0.7 s at 60 a second: one after the other they would take 112 s.
    assert.ok(seconds > 2.5 && seconds < bound, `${seconds} s`)
  })

  it('let what is urgent go first, and what is slow have its small share', async () => {
    const call = createPacedCall(pace({ perSecond: 50, slowlyPerSecond: 5, inFlight: 4 }), failures)
    const order: string[] = []
    const ask = (urgency: 'now' | 'soon' | 'slowly') =>
      call(
        async () => {
          order.push(urgency)
          await sleep(20)
        },
        { endpoint: urgency, urgency },
      )
    const listed = Array.from({ length: 60 }, () => ask('soon'))
    const again = Array.from({ length: 6 }, () => ask('slowly'))
    await sleep(100)
    const before = order.length
    await ask('now')
    assert.ok(order.indexOf('now') - before <= 4, `${order.indexOf('now') - before} went before`)
    await Promise.all([...listed, ...again])
    assert.ok(order.slice(0, 50).filter(urgency => urgency === 'slowly').length <= 8)
  })

  it('bound how many are under way, and leave room for what is urgent', async () => {
    const call = createPacedCall(pace({ inFlight: 3 }), failures)
    let [underWay, most] = [0, 0]
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const slow = Array.from({ length: 20 }, () =>
      call(async () => {
        most = Math.max(most, ++underWay)
        await gate
        underWay--
      }),
    )
    await eventually('three are under way', () => underWay === 3)
    await sleep(100)
    assert.equal(underWay, 3)
    assert.equal(await call(async () => 'answered', { urgency: 'now' }), 'answered')
    open()
    await Promise.all(slow)
    assert.equal(most, 3)
  })

  it('all wait when one is refused', async () => {
    const call = createPacedCall(pace({ perSecond: 200 }), failures)
    const asked: number[] = []
    let refusedAt = 0
    /** Calls that had their turn already are made before it, however late a busy machine comes to them. */
    let notedAt = 0
    const ask = () =>
      call(async () => {
        asked.push(performance.now())
        if (asked.length === 5) {
          refusedAt = performance.now()
          setImmediate(() => {
            notedAt = performance.now()
          })
          throw new Refused()
        }
      })
    await Promise.all(Array.from({ length: 40 }, ask))
    assert.equal(asked.length, 41)
    const early = asked.filter(at => at > notedAt && at < refusedAt + 390)
    assert.deepEqual(
      early.map(at => Math.round(at - refusedAt)),
      [],
    )
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

test('no second holds more turns than the rates give, however late timers come, and all are given', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const names = ['a', 'b', 'c', 'd']
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 700 }), { maxLength: 30 }), async lateness => {
      let now = 0
      const turns = createThrottle({ perSecond: 60, perEndpoint: 20, inFlight: 160 }, () => now)
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
      for (const name of names) assert.ok(mostPerSecond(given[name] ?? []) <= 20, name)
      assert.ok(mostPerSecond(all()) <= 60)
    }),
    { numRuns: campaign(20, 2_000) },
  )
})
