/** How a long list is cut: in periods that double backwards, and each of these in parts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  cutByAge,
  cutInParts,
  formatCursor,
  isWhole,
  type Range,
  readListCursor,
  spanOf,
  wholeList,
  writeListCursor,
} from '../../src/sync/invoices/ranges.ts'

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
  it('makes each range twice as long as the next newer range', () => {
    const periods = cutByAge(read, now, 1_000)
    assertCovers(periods, read)
    const bounds = periods.flatMap(({ from }) => (from === null ? [] : [now - from]))
    assert.deepEqual(bounds.slice(0, 4), [1_000, 3_000, 7_000, 15_000])
    assert.ok((bounds.at(-1) ?? 0) * 2 + 1_000 >= now - earliest, 'the last one reaches to the beginning')
  })

  it('marks the first range as divisible no further, and the others as divisible once', () => {
    assert.deepEqual(
      cutByAge(read, now, 1_000).map(({ isCut }) => isCut),
      [true, ...Array(18).fill(false)],
    )
  })

  for (const [what, reached, seconds, count] of [
    ['pages that span one second', now, 1, 29],
    ['pages that span a month', now - 2_592_000, 2_592_000, 8],
    ['pages that span all years', earliest, 490_000_000, 1],
    ['pages from before the earliest time', earliest - 9, 4, 1],
  ] as const)
    it(`makes ${count} ranges for ${what}`, () => {
      const periods = cutByAge(read, reached, seconds)
      assert.equal(periods.length, count)
      assertCovers(periods, read)
    })
})

describe('cutInParts', () => {
  const period: Range = { from: now - 24_000, before: now, after: 'in_300', isCut: false }
  for (const [what, range, reached, count] of [
    ['a period', period, now, 12],
    ['the rest of a period', period, now - 12_000, 12],
    ['a period of five seconds', { ...period, from: now - 5 }, now, 5],
    ['a period of one second', { ...period, from: now - 1 }, now, 1],
    ['a period with nothing left', period, now - 24_000, 1],
    ['the oldest period', { ...period, from: null }, now - 7_000, 12],
  ] as const)
    it(`makes ${count} parts of ${what}`, () => {
      const some = cutInParts(range, reached)
      assert.equal(some.length, count)
      assertCovers(some, range)
      assert.ok(some.every(({ isCut }) => isCut))
    })

  it('makes parts of equal length', () => {
    const lengths = cutInParts(period, now).map(({ from, before }) => (before ?? 0) - (from ?? 0))
    assert.deepEqual(lengths, Array(12).fill(2_000))
  })
})

it('only a range from the list’s beginning to its end counts as the whole list', () => {
  const others = [{ from: 1 }, { before: 1 }, { isCut: true }, { from: 1, before: 2 }]
  assert.deepEqual([wholeList, ...others.map(more => ({ ...wholeList, ...more }))].map(isWhole), [
    ...[true, false, false, false, false],
  ])
  assert.equal(isWhole(read), true)
})

it('a range’s span is its remaining time, and is unknown without an end', () => {
  const range = { ...wholeList, from: 100, before: 200 }
  const spans = [spanOf(range, null), spanOf(range, 150), spanOf(range, 50), spanOf(wholeList, earliest + 9)]
  assert.deepEqual(spans, [100, 50, 0, 9])
  assert.equal(spanOf({ ...wholeList, from: -5 }, null), 0)
})

it('no range begins before the earliest time of a list', () => {
  const range = { ...wholeList, from: earliest - 1_000 }
  assert.equal(cutByAge(range, earliest + 100, 100).length, 1)
  assert.equal(cutByAge(range, earliest + 101, 100).length, 2)
})

describe('the cursor of a list', () => {
  const beginning = { since: null, begunAt: null, isForced: false, ranges: [wholeList] }

  it('stands for the whole list when its text cannot be read', () => {
    for (const text of [null, '', 'page 2', '{}', '{"parts":[]}', '[]'])
      assert.deepEqual(readListCursor(text), beginning, String(text))
  })

  it('contains only the known fields', () => {
    assert.equal(writeListCursor(beginning), '{"parts":[[null,null,null,false]]}')
    const ranges = [{ from: 1, before: 2, after: 'in_1', isCut: true }]
    assert.deepEqual(readListCursor('{"since":7,"parts":[[1,2,"in_1",true]]}'), {
      ...{ since: 7, begunAt: null, isForced: false, ranges },
    })
  })

  for (const [text, words] of [
    ['2026-03 since x', '2026-03 since x'],
    ['17', '17'],
    ['{"parts":[[null,null,null,false]]}', '1 part left'],
    ['{"parts":[[5,1700000000,null,true]]}', '1 part left, the newest before 2023-11-14'],
    [
      '{"parts":[[5,1600000000,null,true],[6,1700000000,null,true]]}',
      '2 parts left, the newest before 2023-11-14',
    ],
    ['{"parts":[[5,null,null,true],[6,1700000000,null,true]]}', '2 parts left'],
  ] as const)
    it(`is shown as "${words}"`, () => assert.equal(formatCursor(text), words))
})

it('a list’s cursor is read back with the same ranges', () => {
  const ranges = cutByAge(read, now, 1_000)
  const cursor = { since: 7, begunAt: 8, isForced: true, ranges }
  assert.deepEqual(readListCursor(writeListCursor(cursor)), cursor)
})
