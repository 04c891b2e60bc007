import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonLine } from '../../src/cli/terminal/json-line.ts'

test('a line of --json has every time in ISO 8601, and null for an unknown time', () => {
  const documents = [{ id: 1, observed_stamp: 0 }]
  const line = jsonLine({ id: 'in_1', expires_at: 1_500, at: 0, observed_stamp: 2_500_999, documents })
  assert.ok(line.endsWith('\n'))
  assert.deepEqual(JSON.parse(line), {
    id: 'in_1',
    expires_at: '1970-01-01T00:00:01.500Z',
    at: '1970-01-01T00:00:00.000Z',
    observed_at: '1970-01-01T00:00:02.500Z',
    documents: [{ id: 1, observed_at: null }],
  })
})
