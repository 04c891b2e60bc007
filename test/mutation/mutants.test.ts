import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { applyMutant, findMutants } from './mutants.ts'

const mutate = (file: string, source: string) =>
  findMutants(file, source).map(mutant => applyMutant(source, mutant))

describe('the mutants of TypeScript', () => {
  const table: [name: string, source: string, mutants: string[]][] = [
    ['a boundary moves', 'a < b', ['a <= b']],
    [
      'a condition is negated, or always and never true',
      'if (a === b) c = 1',
      ['if (true) c = 1', 'if (false) c = 1', 'if (a !== b) c = 1'],
    ],
    ['a default is dropped', 'a ?? b', ['a']],
    ['a negation is dropped', 'x = !a', ['x = a']],
    ['the branches of a choice are swapped', 'x = a ? b : c', ['x = a ? c : b']],
    ['a filter is dropped', 'x = list.filter(keep)', ['x = list']],
    ['a call whose result nobody uses is dropped', 'await save(a)', ['void 0']],
    ['a log line stays', 'log.info(a)', []],
    ['the greatest becomes the least', 'x = Math.max(1, 2)', ['x = Math.min(1, 2)']],
    ['a type has no mutants', 'type A = { b: true }', []],
    [
      'SQL in a text is mutated as SQL',
      "query('SELECT 1 FROM a WHERE b >= $1')",
      ['void 0', "query('SELECT 1 FROM a WHERE b > $1')"],
    ],
  ]
  for (const [name, source, mutants] of table)
    it(`are right: ${name}`, () => assert.deepEqual(mutate('a.ts', source).sort(), mutants.sort()))
})

describe('the mutants of SQL', () => {
  const table: [name: string, source: string, mutants: string[]][] = [
    ['a boundary moves', 'SELECT a WHERE b < 1', ['SELECT a WHERE b <= 1']],
    [
      'a condition is joined otherwise, and each is negated',
      'SELECT a WHERE b = 1 AND c = 2',
      ['SELECT a WHERE b <> 1 AND c = 2', 'SELECT a WHERE b = 1 OR c = 2', 'SELECT a WHERE b = 1 AND c <> 2'],
    ],
    [
      'an UPDATE forgets each column',
      'UPDATE a SET b = 1, c = d(2, 3) WHERE e IS NULL',
      [
        'UPDATE a SET c = d(2, 3) WHERE e IS NULL',
        'UPDATE a SET b = 1 WHERE e IS NULL',
        'UPDATE a SET b = 1, c = d(2, 3) WHERE e IS NOT NULL',
      ],
    ],
    [
      'a conflict forgets each column',
      'ON CONFLICT (a) DO UPDATE SET b = 1, c = 2',
      ['ON CONFLICT (a) DO UPDATE SET c = 2', 'ON CONFLICT (a) DO UPDATE SET b = 1'],
    ],
    ['a default is dropped', 'SELECT coalesce(a, 0) FROM b', ['SELECT coalesce(a) FROM b']],
    ['the order is turned', 'SELECT a ORDER BY b DESC', ['SELECT a ORDER BY b']],
    ['comments and texts stay', "SELECT 'a < b' -- a < b", []],
    ['a setting of a function stays', 'CREATE FUNCTION a() SET jit = off, b = c', []],
  ]
  for (const [name, source, mutants] of table)
    it(`are right: ${name}`, () => assert.deepEqual(mutate('a.sql', source).sort(), mutants.sort()))
})
