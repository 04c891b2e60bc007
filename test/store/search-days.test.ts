/** SQLite's days of texts: whatever changes, they hold each invoice once, and what is found in them is there. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { hasBit } from '../../src/store/read-model/letters.ts'
import { type SearchWord, wordsLeft } from '../../src/store/read-model/search.ts'
import { countParts, signDay } from '../../src/store/read-model/search-signs.ts'
import { keepDays } from '../../src/store/sqlite/keep-days.ts'
import {
  dayColumns,
  findTexts,
  makeDay,
  type SearchDay,
  type SearchRow,
  soughtWord,
  textsOf,
} from '../../src/store/sqlite/search-days.ts'
import { campaign } from '../support/campaign.ts'
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

test('what is kept of days is what their invoices say, whatever the order of the changes', async t => {
  const url = await engines[0]?.createStore(t)
  const db = new DatabaseSync(String(url).slice('sqlite:'.length))
  const readDays = db.prepare(
    `SELECT day, ${dayColumns} FROM search_days WHERE customer_id = 'cus_ana' ORDER BY day`,
  )
  const readParts = db.prepare(
    `SELECT day, 0 AS kind, part, bits FROM search_signs WHERE customer_id = 'cus_ana'
     UNION ALL SELECT day, 1, part, bits FROM search_words WHERE customer_id = 'cus_ana' ORDER BY 1, 2, 3`,
  )
  const readSigned = db.prepare(
    "SELECT day, is_signed, signed_size FROM search_days WHERE customer_id = 'cus_ana'",
  )
  db.exec('BEGIN')
  const days = keepDays(db)
  // Around the sizes from which days have signs, and keep words.
  const someSize = fc.constantFrom(0, 1, 63, 64, 64, 255, 256, 256, 300)
  const someDay = fc.integer({ min: -6, max: 7 })
  const change = fc.record({ day: someDay, rows: someRows, size: someSize, isLast: fc.boolean() })
  fc.assert(
    fc.property(fc.array(change, { minLength: 8, maxLength: 40 }), changes => {
      days.deleteAll('cus_ana')
      const known = new Map<number, readonly SearchRow[]>()
      const changed = new Set<number>()
      for (const { day, rows, size, isLast } of changes) {
        const all =
          rows.length === 0 ? [] : Array.from({ length: size }, (_, i) => rows[i % rows.length] as SearchRow)
        if (all.length === 0) known.delete(day)
        else known.set(day, all)
        days.renew('cus_ana', day, all)
        changed.add(day)
        if (!isLast) continue
        days.sign('cus_ana', changed)
        changed.clear()
      }
      days.sign('cus_ana', changed)
      const made = [...known].sort(([a], [b]) => a - b).map(([day, rows]) => ({ day, ...makeDay(rows) }))
      assert.deepEqual(
        readDays.all().map(row => ({ ...row })),
        made,
      )
      const signed = readSigned.all() as unknown as { day: number; is_signed: number; signed_size: number }[]
      const unsigned = new Set(signed.filter(({ is_signed }) => is_signed === 0).map(({ day }) => day))
      assert.ok(unsigned.size <= 8, `${unsigned.size} without signs`)
      const nameOf = (day: unknown, kind: unknown, part: unknown, bits: unknown) =>
        `${day} ${kind} ${part} ${Buffer.from(bits as Uint8Array).toString('hex')}`
      const expected = made.flatMap(({ day, ...texts }) => {
        if (unsigned.has(day)) return []
        const { signs, words } = signDay(textsOf(texts))
        return [signs, words].flatMap((parts, kind) =>
          parts.map((bits, part) => nameOf(day, kind, part, bits)),
        )
      })
      const kept = readParts
        .all()
        .map(({ day, kind, part, bits }) => ({ day: Number(day), text: nameOf(day, kind, part, bits) }))
      assert.deepEqual(
        kept.filter(({ day }) => !unsigned.has(day)).map(({ text }) => text),
        expected,
      )
      // Of what is left of a day that changed, nothing is forgotten either.
      for (const { day, signed_size } of signed) {
        const { signs, words } = countParts(signed_size)
        assert.equal(kept.filter(one => one.day === day).length, signs + words, `day ${day}`)
      }
    }),
    { numRuns: campaign(60, 500), seed: 2026 },
  )
  db.close()
})

test('what is found in a day is what each of its texts holds', () => {
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
  const sought = fc.record({
    words: fc.array(alternatives, { minLength: 1, maxLength: 4 }),
    status: fc.constantFrom(undefined, undefined, 'paid'),
    ix_status: fc.constantFrom(undefined, undefined, 'settled', ''),
  })
  const manyRows = fc.array(someRow, { minLength: 1, maxLength: 40 })
  const possible = fc.option(fc.uint8Array({ minLength: 5, maxLength: 5 }))
  const found = new Uint8Array(100)
  fc.assert(
    fc.property(manyRows, sought, possible, (rows, { words, status, ix_status }, possible) => {
      const day: SearchDay = makeDay(rows)
      const expected = rows.map(
        (row, i) =>
          (possible === null || hasBit(possible, rows.length - 1 - i)) &&
          (status === undefined || row.status === status) &&
          (ix_status === undefined || row.ix_status === ix_status) &&
          wordsLeft(words, row.party).every(word => row.own_text.includes(word)),
      )
      const n = findTexts(day, { words: words.map(soughtWord), status, ix_status }, found, possible)
      assert.equal(n, expected.filter(Boolean).length)
      if (n > 0) for (const [i, isSought] of expected.entries()) assert.equal(found[i] === 1, isSought)
    }),
    { numRuns: 3_000, seed: 2026 },
  )
})
