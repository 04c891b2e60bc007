/** When the element asks its host for the next token. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseAfterFailureMs, renewAfterMs } from '../../src/web/renewal.ts'

const second = 1000
const minute = 60 * second
const noon = Date.UTC(2026, 10, 19, 12)

const lives: [name: string, issued: number | null, expires: number | null, waitMs: number | null][] = [
  ['a token that tells no end is never replaced', null, null, null],
  ['15 minutes, just issued', 0, 15 * minute, 12 * minute],
  ['a minute, just issued', 0, minute, 48 * second],
  ['10 seconds: never within 15', 0, 10 * second, 15 * second],
  ['15 minutes, of which 10 are over', -10 * minute, 5 * minute, 2 * minute],
  ['15 minutes, of which 14 are over', -14 * minute, minute, 15 * second],
  ['without its beginning: of what is left', null, 10 * minute, 8 * minute],
  ['a clock that runs an hour before the host’s', -60 * minute, -45 * minute, 12 * minute],
  ['a clock that runs an hour behind the host’s', 60 * minute, 75 * minute, 12 * minute],
  ['over, and nobody knows its life', null, -minute, 15 * second],
]

for (const [name, issued, expires, waitMs] of lives)
  test(`the next token is asked for: ${name}`, () => {
    const at = (offset: number | null) => (offset === null ? null : noon + offset)
    assert.equal(renewAfterMs({ issuedAt: at(issued), expiresAt: at(expires) }, noon), waitMs)
  })

test('after a first refusal at once; then after 15 s, 30 s, and once a minute for ever', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 1_000].map(pauseAfterFailureMs), [
    0,
    15 * second,
    30 * second,
    minute,
    minute,
    minute,
  ])
})
