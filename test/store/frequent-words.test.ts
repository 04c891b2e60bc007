/** Frequent words: what is kept of them is exact, and a search by them finds what the model finds. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Invoice } from '../../src/invoice.ts'
import { openReadStore, openWriteStore } from '../../src/store/engines.ts'
import { frequentPlace, keepFrequent, readBits } from '../../src/store/read-model/frequent-words.ts'
import { searchWords } from '../../src/store/read-model/search.ts'
import { engines } from '../support/engines.ts'
import { changeRows } from '../support/kept-stores.ts'
import { expectedPage, type Question } from '../support/model.ts'
import { makeInvoice } from '../support/records.ts'

const someText = fc
  .array(fc.constantFrom('a', 'b', 'in_', '2025', '48', '0', '9', '\n', 'é', '東', '\\', ':'), {
    maxLength: 7,
  })
  .map(parts => parts.join(''))

test('of each word that one in twenty texts holds, the bits tell who has it; of no other word there are any', () => {
  const parties = ['in_\nana 48\n', '2025 lda\n\t509', '']
  const someRow = fc.record({ text: someText, party: fc.nat(2) })
  fc.assert(
    fc.property(fc.array(someRow, { minLength: 256, maxLength: 300 }), rows => {
      const texts = rows.map(({ text }) => text)
      const block = { texts, parties, partyOf: rows.map(({ party }) => party) }
      const parts = keepFrequent({ ...block, days: 1 })
      const words = new Set(texts.flatMap(text => text.match(/[a-z0-9_]/g) ?? []))
      for (const text of texts.slice(0, 20))
        for (let i = 0; i < text.length; i++) for (const n of [2, 3, 8, 9]) words.add(text.slice(i, i + n))
      for (const word of words) {
        const place = frequentPlace([word, null])
        const bits = place && readBits(parts.get(place.part) ?? '', place.mark)
        const inOwn = texts.filter(text => text.includes(word)).length
        const isFrequent = /^[a-z0-9_]{1,8}$/.test(word) && inOwn >= texts.length / 20
        assert.equal(bits !== null, isFrequent, JSON.stringify(word))
        if (!bits) continue
        for (const [i, { text, party }] of rows.entries()) {
          const isKept: boolean = ((bits[i >> 3] as number) & (128 >> (i & 7))) !== 0
          assert.equal(isKept, text.includes(word) || String(parties[party]).includes(word))
        }
      }
      assert.equal(keepFrequent({ ...block, days: 2 }).size, 0, 'where days are small, texts are read')
    }),
    { numRuns: 25, seed: 2026 },
  )
  assert.equal(frequentPlace(['pt5094', '\t5094']), null, 'what may also be a tax id is looked for')
})

/** Two large days, a small one, and one in between; of three names, two hold what numbers hold as well. */
const days = ['2025-03-01', '2025-03-02', '2025-03-03', '2025-04-09'] as const
function makeOne(serial: number, changes: Partial<Invoice> = {}): Invoice {
  const day = days[serial % 20 === 0 ? 2 : serial % 7 === 0 ? 3 : serial % 2] as string
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
    '0 ana',
    'acme 20',
    'pt509442013 2',
    'é',
  ].map(q => ({ q })),
  ...[2, 9, 30, 999].map(page => ({ q: '2025', page })),
  { q: '2', page: 15, page_size: 50 },
  { q: '48', date_from: '2025-03-02', date_to: '2025-03-02' },
  { q: '48', date_from: '2025-03-02' },
  { q: '20', date_to: '2025-03-03', page: 3 },
  { q: '2025', status: 'open' },
  { q: '4', ix_status: 'settled' },
]

for (const engine of engines)
  describe(`frequent words on ${engine.name}`, () => {
    test('a search finds what the model finds, also after changes; what is kept wrongly is found and repaired', async t => {
      const url = await engine.createStore(t)
      const [writer, reader] = [await openWriteStore(url), await openReadStore(url)]
      t.after(() => Promise.all([reader.close(), writer.close()]))
      const known = new Map(Array.from({ length: 1_400 }, (_, serial) => [serial, makeOne(serial)]))
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
      await holdAgainstModel()

      for (const serial of [1, 2, 3, 700])
        known.set(serial, makeOne(serial, { number: 'FT 1999/1', display_name: 'Outra 48' }))
      known.set(5, makeOne(5, { issued_at: '2025-03-03T10:00:00.000Z' }))
      await save([1, 2, 3, 5, 700].map(serial => known.get(serial) as Invoice))
      await holdAgainstModel()

      for (const damage of [
        'DELETE FROM fatura.search_signs WHERE part > 40',
        'UPDATE fatura.search_signs SET first = first + 100 WHERE part > 40',
      ]) {
        await changeRows(url, damage)
        const wrong = await writer.checkCounts()
        assert.ok(wrong > 0, damage)
        assert.equal(await writer.repairCounts(), wrong)
        await holdAgainstModel()
      }
    })
  })
