/** The checker of answers refuses what openapi.json does not allow; without that, its tests would say nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findFaults, type Schema } from '../support/checks/fits-schema.ts'

const components = {
  schemas: { Line: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } } },
}

const cases: [schema: Schema, fits: readonly unknown[], refused: readonly unknown[]][] = [
  [{ type: 'object' }, [{}], [[], null, 'x', 1, undefined]],
  [{ type: 'array' }, [[]], [{}, null, 'x']],
  [{ type: 'string' }, ['', 'x'], [1, null, undefined]],
  [{ type: 'integer' }, [0, -1, 2 ** 53], [1.5, '1', null, Number.NaN]],
  [{ type: 'number' }, [0, 1.5], ['1', null]],
  [{ type: ['string', 'null'] }, ['x', null], [1, undefined]],
  [{ enum: ['paid', 'void'] }, ['paid'], ['Paid', '', null]],
  [{ type: 'string', pattern: '^in_[a-z]+$' }, ['in_a'], ['in_', 'xin_a', 'in_a1']],
  [{ format: 'date' }, ['2026-02-28', 5], ['2026-02-30', '2026-2-3', '2026-02-28T00:00:00Z']],
  [
    { format: 'date-time' },
    ['2026-02-28T10:00:00.000Z'],
    ['2026-02-28', '2026-02-30T10:00:00Z', '2026-02-28T25:00:00Z'],
  ],
  [{ format: 'uri' }, ['https://a.example/b'], ['/b', 'a b']],
  [{ minimum: 1, maximum: 50 }, [1, 50, 'x'], [0, 51]],
  [{ maxItems: 1 }, [[], [1], 'xx'], [[1, 2]]],
  [{ items: { type: 'integer' } }, [[], [1], 'x'], [['1'], [1, null]]],
  [{ required: ['a'] }, [{ a: undefined }, []], [{}, { b: 1 }]],
  [{ properties: { a: { type: 'integer' } } }, [{}, { a: 1 }, { b: 'x' }], [{ a: '1' }]],
  [{ properties: { a: {} }, additionalProperties: false }, [{}, { a: 1 }], [{ a: 1, b: 2 }, { toString: 1 }]],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, ['x', null], [1, {}]],
  [{ $ref: '#/components/schemas/Line' }, [{ id: 'x' }], [{}, { id: 1 }, null]],
  [{ items: { $ref: '#/components/schemas/Line' } }, [[{ id: 'x' }]], [[{ id: 'x' }, {}]]],
  [{ description: 'anything', examples: [1] }, [1, null, {}], []],
]

test('the schema check of the tests accepts or refuses each value correctly', () => {
  for (const [schema, fits, refused] of cases) {
    for (const value of fits)
      assert.deepEqual(findFaults(schema, value, components), [], JSON.stringify([schema, value]))
    for (const value of refused)
      assert.ok(findFaults(schema, value, components).length > 0, JSON.stringify([schema, value]))
  }
})

test('the schema check of the tests names the place of a problem', () => {
  const schema = { properties: { lines: { items: { $ref: '#/components/schemas/Line' } } } }
  assert.deepEqual(findFaults(schema, { lines: [{ id: 'x' }, { id: 1 }] }, components), [
    'it.lines[1].id is not string',
  ])
})

test('the schema check of the tests refuses a schema with unknown keywords, for any value', () => {
  for (const schema of [
    { oneOf: [{}] },
    { not: {} },
    { const: 1 },
    { minLength: 1 },
    { type: 'float' },
    { format: 'email' },
    { additionalProperties: {} },
    { $ref: '#/components/schemas/None' },
    { $ref: 'other.json' },
    { toString: 1 },
  ])
    assert.throws(() => findFaults(schema, 'x', components), /is not understood/, JSON.stringify(schema))
})
