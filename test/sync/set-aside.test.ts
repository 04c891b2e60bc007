/** When a record that was set aside is asked for again, and what clears it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { SetAside } from '../../src/store/connector-store.ts'
import { plausibleLosses } from '../../src/sync/deletion-guard.ts'
import { dueAtOf, noId, replaceSetAside, type Wanted } from '../../src/sync/set-aside.ts'

const minute = 60_000

describe('the time at which a set-aside record is requested again', () => {
  it('depends on its kind', () => {
    const pauses = {
      overlapped: 0,
      waiting: minute / 2,
      invoice: 5 * minute,
      refused: 60 * minute,
      outdated: 60 * minute,
      document: 0,
      client: 0,
      relations: 0,
      field: 0,
    } as const
    for (const [kind, pause] of Object.entries(pauses))
      assert.equal(dueAtOf(kind as keyof typeof pauses, 'in_1', 1_000), 1_000 + pause, kind)
  })

  it('does not exist for a record without an ID', () => {
    assert.equal(dueAtOf('refused', noId, 1_000), null)
  })
})

describe('an answer about a set-aside invoice', () => {
  const row = (kind: string, asked_stamp: number): SetAside => {
    return {
      system: 'billing',
      kind,
      id: 'in_1',
      reason: '',
      asked_stamp,
      due_at: 1,
      first_at: 1,
      last_at: 1,
      tries: 1,
    }
  }
  const wanted = (kind: Wanted['kind']): Wanted => ({ kind, reason: 'r' })
  const cases: readonly [
    what: string,
    rows: SetAside[],
    askedAt: number,
    wanted: Wanted | null,
    cleared: string[],
    asked: number,
  ][] = [
    ['clears the record when the invoice is valid', [row('invoice', 5)], 6, null, ['invoice'], 6],
    ['clears nothing when the record was requested later', [row('invoice', 5)], 4, null, [], 5],
    [
      'clears the record when record and answer were requested at the same time',
      [row('invoice', 5)],
      5,
      null,
      ['invoice'],
      5,
    ],
    ['replaces a record of another kind', [row('refused', 5)], 6, wanted('invoice'), ['refused'], 6],
    ['writes a record of the same kind again', [row('invoice', 5)], 6, wanted('invoice'), [], 6],
    ['keeps the later of the two request times', [row('invoice', 5)], 4, wanted('outdated'), ['invoice'], 5],
    ['clears nothing when no record exists', [], 4, null, [], 4],
  ]
  for (const [what, rows, askedAt, given, cleared, asked] of cases)
    it(what, () => {
      const change = replaceSetAside(rows, askedAt, given)
      assert.deepEqual([change.cleared.map(({ kind }) => kind), change.asked_stamp], [cleared, asked])
    })
})

it('a loss of up to 20 records, or a tenth of all records, is plausible', () => {
  for (const [atRisk, plausible] of [
    [0, 20],
    [200, 20],
    [209, 20],
    [210, 21],
    [5_000, 500],
  ] as const)
    assert.equal(plausibleLosses(atRisk), plausible, `${atRisk}`)
})
