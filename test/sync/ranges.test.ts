/** How a long list is cut: in periods that double backwards, and each of these in parts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  cutByAge,
  cutInParts,
  type Range,
  readCursor,
  wholeList,
  writeCursor,
} from '../../src/sync/ranges.ts'

const now = 1_790_000_000
const earliest = 1_300_000_000

/** Each moment lies in one range, and the first range goes on where the list was. */
function assertCovers(ranges: readonly Range[], { from, before, after }: Range): void {
  assert.equal(ranges[0]?.before, before)
  assert.equal(ranges[0]?.after, after)
  assert.equal(ranges.at(-1)?.from, from)
  for (const [index, range] of ranges.slice(1).entries()) {
    assert.equal(range.before, ranges[index]?.from)
    assert.equal(range.after, null)
  }
  for (const range of ranges) assert.ok((range.from ?? 0) < (range.before ?? now), JSON.stringify(range))
}

const read = { ...wholeList, after: 'in_300' }

describe('cutByAge', () => {
  it('makes each period twice as long as the newer one', () => {
    const periods = cutByAge(read, now, 1_000)
    assertCovers(periods, read)
    const bounds = periods.flatMap(({ from }) => (from === null ? [] : [now - from]))
    assert.deepEqual(bounds.slice(0, 4), [1_000, 3_000, 7_000, 15_000])
    assert.ok((bounds.at(-1) ?? 0) * 2 + 1_000 >= now - earliest, 'the last one reaches to the beginning')
  })

  it('cuts what goes on with the list no further, and all others once', () => {
    assert.deepEqual(
      cutByAge(read, now, 1_000).map(({ isCut }) => isCut),
      [true, ...Array(18).fill(false)],
    )
  })

  for (const [what, reached, seconds, count] of [
    ['pages of one second', now, 1, 29],
    ['pages of a month', now - 2_592_000, 2_592_000, 8],
    ['pages of all years', earliest, 490_000_000, 1],
    ['pages from before the earliest moment', earliest - 9, 4, 1],
  ] as const)
    it(`${what}: ${count} ranges`, () => {
      const periods = cutByAge(read, reached, seconds)
      assert.equal(periods.length, count)
      assertCovers(periods, read)
    })
})

describe('cutInParts', () => {
  const period: Range = { from: now - 24_000, before: now, after: 'in_300', isCut: false }
  for (const [what, range, reached, count] of [
    ['a period', period, now, 12],
    ['what is left of a period', period, now - 12_000, 12],
    ['few seconds', { ...period, from: now - 5 }, now, 5],
    ['one second', { ...period, from: now - 1 }, now, 1],
    ['nothing that is left', period, now - 24_000, 1],
    ['the oldest period', { ...period, from: null }, now - 7_000, 12],
  ] as const)
    it(`${what}: ${count} parts`, () => {
      const some = cutInParts(range, reached)
      assert.equal(some.length, count)
      assertCovers(some, range)
      assert.ok(some.every(({ isCut }) => isCut))
    })

  it('makes parts of one length', () => {
    const lengths = cutInParts(period, now).map(({ from, before }) => (before ?? 0) - (from ?? 0))
    assert.deepEqual(lengths, Array(12).fill(2_000))
  })
})

it('a cursor keeps ranges as they are', () => {
  const ranges = cutByAge(read, now, 1_000)
  const cursor = { since: 7, begunAt: 8, isForced: true, ranges }
  assert.deepEqual(readCursor(writeCursor(cursor)), cursor)
})
