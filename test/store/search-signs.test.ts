/** Signs of texts: what a text holds is never denied, and most of what it does not hold is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { groupsOf, partOf, signParts, signText } from '../../src/store/read-model/search-signs.ts'

/** Whether a text can hold a word, by its sign alone. */
function canHold(parts: readonly Uint8Array[], word: string): boolean {
  return groupsOf([[word, null]]).every(group => {
    const bits = parts[partOf(group)] as Uint8Array
    const place = group & (8 * bits.length - 1)
    return ((bits[place >>> 3] as number) & (1 << (place & 7))) !== 0
  })
}

test('a sign denies no word that the text holds, in whatever script', () => {
  const letter = fc.constantFrom('a', 'b', '0', '1', '9', 'é', '東', '😀', '_', '\n')
  const text = fc.array(letter, { maxLength: 300 }).map(letters => letters.join(''))
  fc.assert(
    fc.property(text, fc.nat(), fc.integer({ min: 1, max: 40 }), (text, from, length) => {
      const start = text.length === 0 ? 0 : from % text.length
      assert.ok(canHold(signText(text), text.slice(start, start + length)))
    }),
  )
})

test('a sign denies most words that the text does not hold, at every size of a text', () => {
  for (const size of [10, 100, 1_000]) {
    const number = (n: number) => `20250${String((n * 7_919) % 1_000_003).padStart(7, '0')}`
    const parts = signText(Array.from({ length: size }, (_, n) => number(n)).join('\r'))
    assert.equal(parts.length, signParts)
    const others = Array.from({ length: 500 }, (_, n) => number(size + n))
    const wrong = others.filter(word => canHold(parts, word)).length
    assert.ok(wrong < 100, `${wrong} of 500 words of a text of ${size} numbers`)
  }
})

test('words of fewer letters than a group say nothing of where they are; of alternatives, what they share does', () => {
  assert.deepEqual(
    groupsOf([
      ['2025', null],
      ['pt', '\t509442013'],
    ]),
    [],
  )
  assert.equal(groupsOf([['20251', null]]).length, 1)
  assert.deepEqual(groupsOf([['pt509442013', '\t509442013']]), groupsOf([['509442013', null]]))
})
