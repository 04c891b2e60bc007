/** Stamps only rise, whatever the clock does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStamps } from '../../src/store/stamps.ts'

const still = [() => 5, () => 0] as const

test('a stamp is the current microsecond, or the last stamp plus one', () => {
  let nowMs = 5
  const nextStamp = createStamps(
    0,
    () => nowMs,
    () => 0,
  )
  assert.equal(nextStamp(), 5_000)
  assert.equal(nextStamp(), 5_001, 'within the same millisecond')
  nowMs = 4
  assert.equal(nextStamp(), 5_002, 'after a clock was set back')
  nowMs = 9
  assert.equal(nextStamp(), 9_000)
})

test('stamps that are ahead of the clock advance at the clock’s pace', () => {
  let elapsedMs = 100
  const nextStamp = createStamps(
    9_000_000,
    () => 5,
    () => elapsedMs,
  )
  assert.equal(nextStamp(), 9_000_001)
  elapsedMs += 4.5
  assert.equal(nextStamp(), 9_004_001)
  elapsedMs += 0.5
  assert.equal(nextStamp(), 9_005_001, 'parts of milliseconds add up')
})

test('the first stamp is later than every stored stamp', () => {
  assert.equal(createStamps(7_000, ...still)(), 7_001)
  assert.equal(createStamps(4_999, ...still)(), 5_000)
})
