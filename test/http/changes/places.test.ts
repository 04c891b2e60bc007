/** Who gets a place, and who gives way. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Places } from '../../../src/http/changes/places.ts'

/** Four places. Holders are named by their owner and their order, as in a1. */
const cases: [title: string, present: string, newcomer: string, isTaken: boolean, gaveWay: string | null][] =
  [
    ['a free place is taken', 'a1 a2 a3', 'a4', true, null],
    [
      'pass from the owner with most places to a new owner, the oldest first',
      'a1 b1 a2 a3',
      'c1',
      true,
      'a1',
    ],
    ['pass on by their time of arrival, not by their names', 'b1 a3 a1 a2', 'c1', true, 'a3'],
    ['pass from the owner with most places to an owner with fewer', 'a1 a2 a3 b1', 'b2', true, 'a1'],
    ['are refused to the owner with most places', 'a1 a2 a3 b1', 'a4', false, null],
    ['are refused to an owner who would then have most places', 'a1 a2 b1 b2', 'a3', false, null],
    ['are refused to an owner who would only swap shares with another', 'a1 a2 b1 c1', 'b2', false, null],
    ['are refused to a new owner when each owner has one', 'a1 b1 c1 d1', 'e1', false, null],
    ['pass from a single owner to a new owner', 'a1 a2 a3 a4', 'b1', true, 'a1'],
  ]

describe('places for requests that wait', () => {
  for (const [title, present, newcomer, isTaken, gaveWay] of cases)
    it(title, () => {
      const places = new Places<string>(4)
      for (const name of present.split(' ')) assert.ok(places.take(name.charAt(0), name).isTaken)
      assert.deepEqual(places.take(newcomer.charAt(0), newcomer), { isTaken, gaveWay })
    })

  it('a place is freed only once, even when its owner leaves repeatedly', () => {
    const places = new Places<string>(2)
    places.take('a', 'a1')
    places.take('a', 'a2')
    assert.equal(places.take('b', 'b1').gaveWay, 'a1')
    places.leave('a', 'a1')
    assert.deepEqual(places.take('b', 'b2'), { isTaken: false, gaveWay: null })
    places.leave('a', 'a2')
    assert.deepEqual(places.take('b', 'b2'), { isTaken: true, gaveWay: null })
    for (const name of ['b1', 'b2', 'b2']) places.leave('b', name)
    assert.ok(places.isEmpty)
  })
})
