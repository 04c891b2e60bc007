/** The spans of days that the page offers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { periodsOf } from '../../src/web/periods.ts'

const spans: [today: string, expected: string[]][] = [
  [
    '2026-11-19',
    ['2026-11-01..2026-11-30', '2026-10-01..2026-10-31', '2026-10-01..2026-12-31', '2026-07-01..2026-09-30'],
  ],
  [
    '2027-01-31',
    ['2027-01-01..2027-01-31', '2026-12-01..2026-12-31', '2027-01-01..2027-03-31', '2026-10-01..2026-12-31'],
  ],
  [
    '2028-03-01',
    ['2028-03-01..2028-03-31', '2028-02-01..2028-02-29', '2028-01-01..2028-03-31', '2027-10-01..2027-12-31'],
  ],
]
for (const [today, expected] of spans)
  test(`the month and quarter of ${today} and the ones before are offered as whole periods`, () => {
    assert.deepEqual(
      periodsOf(today).map(({ from, to }) => `${from}..${to}`),
      expected,
    )
  })
