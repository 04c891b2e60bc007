import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMoment } from '../../src/domain/calendar.ts'

test('a time is valid in ISO 8601 with a time zone, a four-digit year and an existing day', () => {
  const moments: [string, string | null][] = [
    ['2026-03-02T09:30:00Z', '2026-03-02T09:30:00.000Z'],
    ['2026-03-02T09:30Z', '2026-03-02T09:30:00.000Z'],
    ['2026-03-02T09:30:00.123456+01:00', '2026-03-02T08:30:00.123Z'],
    ['2026-03-02T09:30:00+0100', '2026-03-02T08:30:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59-01:00', null],
    ['0000-01-01T00:00:00+01:00', null],
    ['2026-02-29T00:00:00Z', null],
    ['2026-02-31T00:00:00Z', null],
    ['2026-13-01T00:00:00Z', null],
    ['2026-03-02T24:01:00Z', null],
    ['2026-03-02T09:60:00Z', null],
    ['2026-03-02T09:30:00', null],
    ['2026-03-02', null],
    ['+012026-03-02T09:30:00Z', null],
    ['1772443872', null],
    ['NaN', null],
    ['', null],
  ]
  for (const [text, expected] of moments) {
    const moment = readMoment(text)
    assert.equal(moment === null ? null : new Date(moment).toISOString(), expected, text)
  }
})
