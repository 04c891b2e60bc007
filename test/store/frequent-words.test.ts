/** Frequent and short words: what is kept of them is exact, and a search by them finds what the model finds. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Invoice } from '../../src/invoice.ts'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { frequentPlace, readBits } from '../../src/store/read-model/frequent-words.ts'
import { hasBit } from '../../src/store/read-model/letters.ts'
import { addParties, partyPart } from '../../src/store/read-model/party-bits.ts'
import { partyIdOf, searchWords } from '../../src/store/read-model/search.ts'
import { countParts, signDay } from '../../src/store/read-model/search-signs.ts'
import { foursOf, readShort, shortPlace } from '../../src/store/read-model/short-words.ts'
import { campaign } from '../support/campaign.ts'
import { engines } from '../support/engines.ts'
import { changeRows } from '../support/kept-stores.ts'
import { expectedPage, type Question } from '../support/model.ts'
import { makeInvoice } from '../support/records.ts'

const someText = fc
  .array(fc.constantFrom('a', 'b', 'in_', '2025', '48', '0', '9', '\n', 'é', '東', '\\', ':'), {
    maxLength: 7,
  })
  .map(parts => parts.join(''))

function afterMark(part: Uint8Array | undefined, mark: string): string | null {
  return (
    Buffer.from(part ?? [])
      .toString('latin1')
      .split(mark)[1] ?? null
  )
}

test('of a day of many, bits tell who is found by a frequent word and who is whose, lists who has a short one, and fours who can have a longer one', () => {
  const parties = ['in_\nana 48\n', '2025 lda\n\t509', '']
  const someRow = fc.record({ text: someText, party: fc.nat(2) })
  fc.assert(
    fc.property(fc.array(someRow, { minLength: 256, maxLength: 300 }), rows => {
      const texts = rows.map(({ text }) => text)
      const day = { texts, parties, partyOf: rows.map(({ party }) => party) }
      const parts = signDay(day).words
      for (const [number, party] of parties.entries()) {
        const bits = new Uint8Array(Math.ceil(texts.length / 8))
        addParties(bits, parts[partyPart] ?? new Uint8Array(), [String(partyIdOf(party))])
        for (const [i, row] of rows.entries())
          assert.equal(hasBit(bits, texts.length - 1 - i), row.party === number)
      }
      const words = new Set(['q', 'qq', 'a9q', 'a', 'ab9', '_20', 'n', 'd', 'l'])
      for (const text of texts.slice(0, 20))
        for (let i = 0; i < text.length; i++)
          for (const n of [1, 2, 3, 4, 5, 8, 9]) words.add(text.slice(i, i + n))
      for (const word of words) {
        const holds = (text: string) => text.includes(word)
        const place = frequentPlace([word, null])
        const frequent = place && readBits(afterMark(parts[place.part], place.mark), place)
        const inOwn = texts.filter(holds).length
        const isFrequent =
          /^[a-z0-9_]{1,8}$/.test(word) && (word.length === 1 || (inOwn > 0 && inOwn >= texts.length / 20))
        assert.equal(frequent !== null, isFrequent, JSON.stringify(word))
        const placeOfShort = shortPlace([word, null])
        assert.equal(placeOfShort !== null, /^[a-z0-9_]{2,4}$/.test(word))
        const bitsAt = (place: NonNullable<typeof placeOfShort>) =>
          readShort(parts[place.part] ?? new Uint8Array(), place, texts.length)
        const short = placeOfShort && bitsAt(placeOfShort)
        const fours = foursOf([word, null])?.map(bitsAt)
        assert.equal(fours !== undefined, /^[a-z0-9_]{5,}$/.test(word))
        for (const [i, { text, party }] of rows.entries()) {
          const bit = texts.length - 1 - i
          if (frequent && (inOwn > 0 || word.length === 1))
            assert.equal(hasBit(frequent, bit), holds(text) || holds(String(parties[party])))
          if (short) assert.equal(hasBit(short, bit), holds(text), JSON.stringify(word))
          if (fours && holds(text)) assert.ok(fours.every(bits => hasBit(bits, bit)))
        }
      }
    }),
    { numRuns: campaign(25, 200), seed: 2026 },
  )
  assert.equal(frequentPlace(['pt5094', '\t5094']), null, 'what may also be a tax id is looked for')
})

test('a day of few keeps no words, and one of very few no signs', () => {
  const partsOfDay = (n: number) => {
    const day = { texts: Array(n).fill('in_1\n20250001'), parties: [''], partyOf: Array(n).fill(0) }
    const { signs, words } = signDay(day)
    return { signs: signs.length, words: words.length }
  }
  assert.deepEqual([63, 64, 255, 256].map(partsOfDay), [63, 64, 255, 256].map(countParts))
  assert.deepEqual([63, 64, 256].map(partsOfDay), [
    { signs: 0, words: 0 },
    { signs: 32, words: 0 },
    { signs: 32, words: 97 },
  ])
})

test('a day of many parties does not keep who is whose', () => {
  const partOfDay = (parties: number) => {
    const texts = Array(300).fill('in_1')
    const names = Array.from({ length: parties }, (_, i) => `party ${i}`)
    return signDay({ texts, parties: names, partyOf: texts.map((_, i) => i % parties) }).words[partyPart]
  }
  assert.ok(partOfDay(24)?.length)
  assert.equal(partOfDay(25)?.length, 0)
})

test('a party that is missing in a damaged store keeps a day from nothing', () => {
  const texts = Array(300).fill('in_1')
  const { words } = signDay({ texts, parties: [], partyOf: texts.map(() => -1) })
  assert.equal(words.length, countParts(300).words)
})

test('a day of any size is told: who lies far behind the last one is found', () => {
  const n = 40_000
  const texts = Array.from({ length: n }, (_, i) => ([0, 5, 130, 20_000, n - 1].includes(i) ? 'xyz' : 'a'))
  const parts = signDay({ texts, parties: [''], partyOf: Array(n).fill(0) }).words
  const place = shortPlace(['xyz', null])
  assert.ok(place)
  const bits = readShort(parts[place.part] ?? new Uint8Array(), place, n)
  const found = texts.flatMap((_, i) => (hasBit(bits, n - 1 - i) ? [i] : []))
  assert.deepEqual(found, [0, 5, 130, 20_000, n - 1])
})

/** Large days, of which some are without signs; smaller ones, some without words; of three names, two hold what numbers hold as well. */
const largeDays = 10
const invoiceCount = 3_400
function makeOne(serial: number, changes: Partial<Invoice> = {}): Invoice {
  const place = serial % 50 === 0 ? 20 + (serial % 3) : serial % 17 === 0 ? 30 : serial % largeDays
  const day = new Date(Date.UTC(2025, 2, 1 + place)).toISOString().slice(0, 10)
  return makeInvoice({
    id: `in_1${(serial * 7919).toString(36)}`,
    number: serial % 9 === 0 ? null : `FT ${2022 + (serial % 5)}/${String(serial * 31).padStart(6, '0')}`,
    customer_id: 'cus_ana',
    display_name: ['Ana Lima', 'Padaria 48', 'ACME 2025 FT'][serial % 3] as string,
    customer_name: null,
    company_name: null,
    customer_email: null,
    customer_tax_id: serial % 4 === 0 ? 'PT509442013' : null,
    issued_at: `${day}T${String(serial % 24).padStart(2, '0')}:00:00.000Z`,
    status: serial % 5 === 0 ? 'open' : 'paid',
    ix_id: serial % 3 === 0 ? null : 48_000 + serial,
    ...changes,
  })
}

const questions: Question[] = [
  ...[
    '2025',
    '48',
    '5',
    'ft',
    'ft2025',
    '1 5 7',
    '2025 48',
    '2025 777',
    'in_1',
    '777',
    '7',
    'q',
    'zq',
    '3c',
    '1f4',
    '4800',
    '8017',
    '8017 2',
    'ft19',
    'lima 2024',
    'acme 777',
    'z',
    '0 ana',
    'acme 20',
    'padaria',
    'padaria lima',
    'acme2025ft',
    'ana 2024 7',
    'adar',
    'pt509442013 2',
    'é',
  ].map(q => ({ q })),
  ...[2, 9, 30, 999].map(page => ({ q: '2025', page })),
  { q: '2', page: 15, page_size: 50 },
  { q: '48', date_from: '2025-03-02', date_to: '2025-03-04' },
  { q: '48', date_from: '2025-03-02' },
  { q: '20', date_to: '2025-03-03', page: 3 },
  { q: '2025', status: 'open' },
  { q: '4', ix_status: 'settled' },
  { q: '777', status: 'open' },
  { q: '80', ix_status: 'settled', date_from: '2025-03-02' },
]

for (const engine of engines)
  describe(`frequent and short words on ${engine.name}`, () => {
    test('a search finds what the model finds, also after changes; what is kept wrongly is found and repaired', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      t.after(() => Promise.all([reader.close(), writer.close()]))
      const known = new Map(Array.from({ length: invoiceCount }, (_, serial) => [serial, makeOne(serial)]))
      const save = (invoices: Iterable<Invoice>) =>
        writer.transaction(tx => tx.saveInvoices([...invoices].map(invoice => ({ invoice, lines: null }))))
      const holdAgainstModel = async () => {
        for (const { page = 1, page_size = 10, q = '', date_from, date_to, ...states } of questions) {
          const expected = expectedPage([...known.values()], 'cus_ana', {
            page,
            page_size,
            q,
            date_from,
            date_to,
            ...states,
          } as Question)
          const found = await reader.listInvoices({
            customer_id: 'cus_ana',
            page,
            page_size,
            words: searchWords(q),
            ...(states as object),
            ...(date_from && { issued_from: Date.parse(date_from) }),
            ...(date_to && { issued_before: Date.parse(date_to) + 86_400_000 }),
          })
          const ids = (JSON.parse(`[${Buffer.from(found.summaries)}]`) as Invoice[]).map(({ id }) => id)
          assert.deepEqual(
            { q, total: found.total, page: found.page, ids },
            { q, total: expected.total, page: expected.page, ids: expected.invoices.map(({ id }) => id) },
          )
        }
        assert.equal(await writer.checkCounts(), 0)
      }
      await save(known.values())
      for (const serial of [1, 2, 3, 700])
        known.set(serial, makeOne(serial, { number: 'FT 1999/1', display_name: 'Outra 48' }))
      known.set(5, makeOne(5, { issued_at: '2025-03-03T10:00:00.000Z' }))
      await save([1, 2, 3, 5, 700].map(serial => known.get(serial) as Invoice))
      await holdAgainstModel()

      for (const damage of [
        'DELETE FROM fatura.search_words WHERE part > 40',
        'DELETE FROM fatura.search_words WHERE part = 50',
        'UPDATE fatura.search_words SET day = day + 100 WHERE part > 40',
        'UPDATE fatura.search_days SET signed_size = 70',
      ]) {
        await changeRows(url, damage)
        const wrong = await writer.checkCounts()
        assert.ok(wrong > 0, damage)
        assert.equal(await writer.repairCounts(), wrong)
      }
      await holdAgainstModel()
    })
  })
