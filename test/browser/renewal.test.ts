/** When the element asks its host for the next token. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseAfterFailureMs, renewAfterMs } from '../../src/web/renewal.ts'

const second = 1000
const minute = 60 * second
const noon = Date.UTC(2026, 10, 19, 12)

const lives: [name: string, issued: number | null, expires: number | null, waitMs: number | null][] = [
  ['never for a token without an end', null, null, null],
  ['after 12 minutes for a new token of 15 minutes', 0, 15 * minute, 12 * minute],
  ['after 48 seconds for a new token of a minute', 0, minute, 48 * second],
  ['after 15 seconds at least, for a new token of 10 seconds', 0, 10 * second, 15 * second],
  ['after 2 minutes for a 10-minute-old token of 15 minutes', -10 * minute, 5 * minute, 2 * minute],
  ['after 15 seconds for a 14-minute-old token of 15 minutes', -14 * minute, minute, 15 * second],
  ['after 80 % of the remaining life when the start is unknown', null, 10 * minute, 8 * minute],
  ['after 12 minutes when the client’s clock is an hour ahead', -60 * minute, -45 * minute, 12 * minute],
  ['after 12 minutes when the client’s clock is an hour behind', 60 * minute, 75 * minute, 12 * minute],
  ['after 15 seconds for an expired token of unknown life', null, -minute, 15 * second],
]

for (const [name, issued, expires, waitMs] of lives)
  test(`the time of the next token request: ${name}`, () => {
    const at = (offset: number | null) => (offset === null ? null : noon + offset)
    assert.equal(renewAfterMs({ issuedAt: at(issued), expiresAt: at(expires) }, noon), waitMs)
  })

test('a refused token is requested again at once, then after 15 s, 30 s and each minute', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 1_000].map(pauseAfterFailureMs), [
    0,
    15 * second,
    30 * second,
    minute,
    minute,
    minute,
  ])
})
