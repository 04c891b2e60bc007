/** The estimate for the whole store, and the time until a fault is seen, as `docs/admin.md` states it. Pure. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { createRandom, type Random } from '../../sandbox/random.ts'
import { estimate } from '../../src/metrics/drift-estimate.ts'

const bounds = new Map<string, number>()

function bound(compared: number, differing: number): number {
  const key = `${compared} ${differing}`
  const known = bounds.get(key) ?? estimate({ compared, differing }).ratio_at_most ?? assert.fail()
  bounds.set(key, known)
  return known
}

/** Number of successes among so many, each with a chance. */
function count(random: Random, n: number, chance: number): number {
  let found = 0
  for (let i = 0; i < n; i++) if (random() < chance) found++
  return found
}

describe('the estimate', () => {
  it('is null before anything was compared', () => {
    assert.deepEqual(estimate({ compared: 0, differing: 0 }), { ratio: null, ratio_at_most: null })
  })

  it('bounds the share as Clopper and Pearson do', () => {
    const known = [
      [10, 0, 0.2588656],
      [10, 3, 0.6066242],
      [100, 10, 0.1637105],
      [4_320, 0, 0.00069322],
      [4_320, 4_320, 1],
      [1, 0, 0.95],
    ] as const
    for (const [compared, differing, at_most] of known)
      assert.ok(Math.abs(bound(compared, differing) / at_most - 1) < 1e-4, `${compared}, ${differing}`)
    assert.ok(bound(4_320, 2_000) < 0.4757)
  })

  it('holds: whatever the share is, at least 95 % of the samples bound it', () => {
    const random = createRandom(28)
    const samples = 1_000
    for (const compared of [60, 360, 1_440])
      for (const share of [0.0005, 0.005, 0.02, 0.08, 0.3]) {
        // Exactly: a bound grows with what differs, so that those below the share are of the smallest counts.
        let term = (1 - share) ** compared
        let missed = 0
        for (let differing = 0; bound(compared, differing) < share; differing++) {
          missed += term
          term *= ((compared - differing) / (differing + 1)) * (share / (1 - share))
        }
        assert.ok(missed <= 0.05, `${share} of ${compared}: ${missed}`)
        // And drawn.
        let below = 0
        for (let sample = 0; sample < samples; sample++)
          if (bound(compared, count(random, compared, share)) < share) below++
        const [seen, spread] = [below / samples, Math.sqrt((missed * (1 - missed)) / samples)]
        assert.ok(Math.abs(seen - missed) <= 4 * spread + 1e-9, `${share} of ${compared}: ${seen}, ${missed}`)
      }
  })

  it('reports a new fault within the times that the docs promise', async () => {
    const table = readTable(await readFile('docs/admin.md', 'utf8'))
    for (const share of [0.001, 0.01, 0.1]) {
      const promised = table.get(share) ?? assert.fail(`the docs do not tell of ${share}`)
      const simulated = simulate(share)
      for (const [place, minutes] of simulated.entries()) {
        const said = promised[place] ?? assert.fail()
        assert.ok(
          Math.abs(minutes - said) <= 3 + 0.2 * said,
          `${share}, ${place}: ${minutes}, and not ${said}`,
        )
      }
    }
  })
})

/** Each minute three stored invoices are compared, and a hundred are listed. */
const [perMinute, listedPerMinute] = [3, 100]
/** A difference is told after a second look. */
const secondLook = 1
const runs = 400
/** Interval between looks at a bound, in minutes. */
const every = 15

/**
 * In minutes after the fault, all before being well: when the first difference is told, in the median and in 19 of 20 cases; the same of one
 * that is missing; and in the median, when the bounds of a day and of two hours are not below the share any more.
 */
function simulate(share: number): number[] {
  const random = createRandom(5)
  const [seen, missing, day, hours]: number[][] = [[], [], [], []]
  const firstOf = (perMinute: number) => {
    let minute = 1
    while (count(random, perMinute, share) === 0) minute++
    return minute + secondLook
  }
  for (let run = 0; run < runs; run++) {
    seen?.push(firstOf(perMinute))
    missing?.push(firstOf(listedPerMinute))
    const beganAt = every * Math.floor(random() * (60 / every))
    day?.push(boundHolds(random, share, 24, beganAt))
    hours?.push(boundHolds(random, share, 2, beganAt))
  }
  return [
    ...[quantile(seen, 0.5), quantile(seen, 0.95), quantile(missing, 0.5), quantile(missing, 0.95)],
    ...[quantile(day, 0.5), quantile(hours, 0.5)],
  ]
}

/** The fault begins at a minute of an hour. The window is of whole hours, and of the one that has begun. */
function boundHolds(random: Random, share: number, windowHours: number, beganAt: number): number {
  const differing: number[] = []
  for (let minute = 0; ; minute += every) {
    const window = (windowHours - 1) * 60 + ((beganAt + minute) % 60)
    const inWindow = differing.slice(Math.max(0, differing.length - window / every))
    const found = inWindow.reduce((sum, each) => sum + each, 0)
    if (window > 0 && bound(window * perMinute, found) >= share) return minute
    differing.push(count(random, every * perMinute, share))
  }
}

function quantile(values: readonly number[] | undefined, part: number): number {
  return values?.toSorted((a, b) => a - b)[Math.floor(part * runs)] ?? assert.fail()
}

/** Rows such as `| 1 % | 24 min | 1.7 h | …`, by the share; in minutes. */
function readTable(text: string): Map<number, number[]> {
  const rows = [...text.matchAll(/^\| ([\d.]+) % \|(.+)\|$/gm)]
  return new Map(
    rows.map(([, percent, cells = '']) => [
      Number(percent) / 100,
      cells.split('|').map(cell => {
        const [, value, unit] = /([\d.]+) (min|h)/.exec(cell) ?? assert.fail(cell)
        return Number(value) * (unit === 'h' ? 60 : 1)
      }),
    ]),
  )
}
