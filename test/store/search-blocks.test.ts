/** SQLite's blocks of texts: whatever days change, they hold each invoice once, and what is found in them is there. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { everyDay } from '../../src/store/read-model/counting.ts'
import { type SearchWord, wordsLeft } from '../../src/store/read-model/search.ts'
import { keepBlocks } from '../../src/store/sqlite/keep-blocks.ts'
import {
  blockColumns,
  findTexts,
  makeBlock,
  placeOf,
  readBlock,
  type SearchBlock,
  type SearchRow,
  soughtWord,
} from '../../src/store/sqlite/search-blocks.ts'
import { engines } from '../support/engines.ts'

const someText = fc.array(
  fc.constantFrom('a', 'ana', 'in_1', '0', '2', '2023', '48', '9', '\n', 'é', '東', '😀'),
  {
    maxLength: 8,
  },
)
const someRow = fc
  .record({
    status: fc.constantFrom('paid', 'open'),
    ix_status: fc.constantFrom(null, 'settled', '', '-'),
    own_text: someText.map(parts => parts.join('')),
    party: fc.constantFrom('in_\nana\n', 'in_\n2023 lda\n\t509442013', 'in_\n\t9', ''),
  })
  .map((row): SearchRow => ({ ...row }))
const someRows = fc.array(someRow, { maxLength: 5 })

test('blocks hold what the days hold, each as large as it should be, whatever the order of the changes', async t => {
  const url = await engines[0]?.createStore(t)
  const db = new DatabaseSync(String(url).slice('sqlite:'.length))
  const readAll = db.prepare(
    `SELECT first, ${blockColumns} FROM search_blocks WHERE customer_id = 'cus_ana' ORDER BY first DESC`,
  )
  db.exec('BEGIN')
  const least = 7
  const blocks = keepBlocks(db, least)
  const change = fc.dictionary(fc.integer({ min: -30, max: 60 }).map(String), someRows, { maxKeys: 12 })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), changes => {
      blocks.deleteAll('cus_ana')
      const known = new Map<number, readonly SearchRow[]>()
      for (const changed of changes) {
        for (const [day, rows] of Object.entries(changed)) known.set(Number(day), rows)
        blocks.renew('cus_ana', Object.keys(changed).map(Number), day => ({
          day,
          rows: known.get(day) ?? [],
        }))
        const stored = readAll.all() as unknown as (SearchBlock & { first: number })[]
        const days = stored.map(block => readBlock(block))
        const expected = [...known].filter(([, rows]) => rows.length > 0).sort(([a], [b]) => b - a)
        assert.deepEqual(
          days.flat(),
          expected.map(([day, rows]) => ({ day, rows })),
        )
        if (Object.keys(changed).length > 0) assert.equal(stored.at(-1)?.first, everyDay.first)
        for (const [index, { first }] of stored.entries()) {
          const next = stored[index - 1]?.first ?? everyDay.end
          for (const { day } of days[index] ?? []) assert.ok(first <= day && day < next)
          const size = (days[index] ?? []).reduce((n, { rows }) => n + rows.length, 0)
          assert.ok(size < 2 * least + 5, `${size} in a block`)
          assert.ok(size > 0 || first === everyDay.first, 'none is empty but the lowest')
        }
      }
    }),
    { numRuns: 150, seed: 2026 },
  )
  db.close()
})

test('what is found in a block is what each of its texts holds', () => {
  const someWord = fc.oneof(
    fc.constantFrom('a', 'an', 'ana', '2', '20', '2023', '023', '48', '9', 'é', '東', '😀', 'zz', 'n_1ana'),
    fc
      .array(fc.constantFrom('ana', 'in_1', '2023', '48', '0', '9', 'é'), { minLength: 2, maxLength: 7 })
      .map(parts => parts.join('')),
  )
  const alternatives: fc.Arbitrary<SearchWord> = fc.oneof(
    someWord.map((word): SearchWord => [word, null]),
    someWord.map((word): SearchWord => [word, `\t${word}`]),
  )
  const someDays = fc.uniqueArray(fc.record({ day: fc.integer({ min: -9, max: 9 }), rows: someRows }), {
    selector: ({ day }) => day,
    maxLength: 12,
  })
  const sought = fc.record({
    words: fc.array(alternatives, { minLength: 1, maxLength: 4 }),
    status: fc.constantFrom(undefined, undefined, 'paid'),
    ix_status: fc.constantFrom(undefined, undefined, 'settled', ''),
    days: fc.constantFrom(null, null, { first: -4, end: 3 }),
  })
  const found = new Uint8Array(100)
  fc.assert(
    fc.property(someDays, sought, (days, { words, status, ix_status, days: range }) => {
      const latestFirst = days.toSorted((a, b) => b.day - a.day).filter(({ rows }) => rows.length > 0)
      const block = makeBlock(latestFirst)
      const expected = latestFirst.flatMap(({ day, rows }) =>
        rows.map((row, before) => ({
          place: { day, before },
          isSought:
            (status === undefined || row.status === status) &&
            (ix_status === undefined || row.ix_status === ix_status) &&
            (range === null || (day >= range.first && day < range.end)) &&
            wordsLeft(words, row.party).every(word => row.own_text.includes(word)),
        })),
      )
      const n = findTexts(block, { words: words.map(soughtWord), status, ix_status, days: range }, found)
      assert.equal(n, expected.filter(({ isSought }) => isSought).length)
      for (const [index, { place, isSought }] of expected.entries()) {
        if (n > 0) assert.equal(found[index] === 1, isSought)
        assert.deepEqual(placeOf(block, index), place)
      }
    }),
    { numRuns: 3_000, seed: 2026 },
  )
})
