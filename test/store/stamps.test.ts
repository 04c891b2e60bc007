/** Stamps only rise, whatever the clock does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStamps } from '../../src/store/stamps.ts'

test('a stamp is the current microsecond, or the one after the last stamp', () => {
  let nowMs = 5
  const nextStamp = createStamps(0, () => nowMs)
  assert.equal(nextStamp(), 5_000)
  assert.equal(nextStamp(), 5_001, 'within the same millisecond')
  nowMs = 4
  assert.equal(nextStamp(), 5_002, 'after a clock was set back')
  nowMs = 9
  assert.equal(nextStamp(), 9_000)
})

test('the first stamp is later than any that is stored', () => {
  assert.equal(createStamps(7_000, () => 5)(), 7_001)
  assert.equal(createStamps(4_999, () => 5)(), 5_000)
})
