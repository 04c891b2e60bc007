/** The list against a naive in-memory model of the contract. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Invoice, invoiceStatuses } from '../../src/domain/invoice.ts'
import { campaign } from '../support/checks/campaign.ts'
import { expectedMatches, expectedPage, type Question, writeQuestion } from '../support/checks/model.ts'
import { engines } from '../support/databases/engines.ts'
import { makeInvoice, withDocument } from '../support/worlds/records.ts'
import { startService } from '../support/worlds/service.ts'

const moments = [
  '2026-01-31T23:59:59.999Z',
  '2026-02-01T00:00:00.000Z',
  '2026-02-28T23:59:59.999Z',
  '2026-03-01T00:00:00.000Z',
]
/** Over three years, several of them within the day, the month or the moment of others. */
const manyMoments = [
  ...moments,
  ...Array.from({ length: 120 }, (_, i) => new Date(Date.UTC(2024, 0, 1) + i * 9 * 86_400_000).toISOString()),
  ...Array.from({ length: 40 }, (_, i) => new Date(Date.UTC(2026, 1, 10, i) + i).toISOString()),
  '1969-12-31T23:59:59.999Z',
  '1969-11-20T00:00:00.000Z',
]
const names = ['João Conceição', 'Padaria São Bento, Lda.', 'ACME 100%', 'a_b']
const ixStatuses = ['settled', 'final', 'draft', null]

/** Random, but with few different values of everything, so that ties abound. */
const someInvoice = fc
  .record({
    serial: fc.nat(999_999),
    moment: fc.constantFrom(...manyMoments),
    name: fc.constantFrom(...names),
    ix_status: fc.constantFrom(...ixStatuses),
    status: fc.constantFrom(...invoiceStatuses),
  })
  .map(({ serial, moment, name, ix_status, status }) =>
    makeInvoice({
      ...(ix_status !== null && withDocument),
      ix_status,
      id: `in_${serial}`,
      number: `2026-${String(serial).padStart(6, '0')}`,
      display_name: name,
      issued_at: moment,
      status,
    }),
  )

/** Every filter absent and present, in every combination. */
function* filterCombinations(): Generator<Question> {
  const days = [
    {},
    { date_from: '2026-02-01' },
    { date_to: '2026-02-28' },
    { date_from: '2026-02-01', date_to: '2026-02-28' },
  ]
  for (const status of [undefined, ...invoiceStatuses])
    for (const ix_status of [undefined, 'settled', 'nothing'])
      for (const dates of days)
        for (const q of [undefined, 'conceicao 2026', '100%', '7 1', 'in_ bento 31'])
          yield { ...(status && { status }), ...(ix_status && { ix_status }), ...dates, ...(q && { q }) }
}

const odd = fc.constantFrom(...'aA1-/ _%\\*\'"çÇßσς.é🧾\u200b')
const oddText = fc.array(odd, { minLength: 1, maxLength: 6 }).map(chars => chars.join(''))

/** Texts of few, odd characters: what is saved and what is asked for often meet. */
const oddInvoice = fc
  .record({
    id: fc.nat(999),
    customer_id: fc.constantFrom('cus_ana', 'cus_bob'),
    number: fc.option(oddText),
    display_name: oddText,
    customer_tax_id: fc.option(fc.constantFrom('PT509442013', '509442013', 'PT 509 442 013')),
    ix_status: fc.constantFrom(null, 'settled', "o'k"),
    status: fc.constantFrom(...invoiceStatuses),
    day: fc.nat(3),
  })
  .map(({ id, day, ...fields }) => makeInvoice({ ...fields, id: `in_${id}`, issued_at: moments[day] ?? '' }))

const someQuestion: fc.Arbitrary<Question> = fc.record(
  {
    page: fc.integer({ min: 1, max: 6 }),
    page_size: fc.integer({ min: 1, max: 60 }),
    status: fc.constantFrom(...invoiceStatuses),
    ix_status: fc.constantFrom('settled', "o'k", 'none'),
    date_from: fc.constantFrom('2026-01-31', '2026-02-01', '2026-03-01'),
    date_to: fc.constantFrom('2026-01-31', '2026-02-28', '2026-03-01'),
    q: fc.oneof(oddText, fc.constantFrom('PT509442013', 'PT 509442013', '509 442 013', 'pt999999999', ' ')),
  },
  { requiredKeys: [] },
)

/** Far above the size from which counters are kept. */
const size = campaign(1_500, 30_000)
const sample = fc.sample(someInvoice, { numRuns: size * 1.5, seed: 2026 })
/** As they are saved: in no order. */
const invoices = [...new Map(sample.map(invoice => [invoice.id, invoice])).values()].slice(0, size)
/** The model's answer is computed once, and compared with every engine; the more is in order, the sooner it is sorted. */
const sorted = expectedMatches(invoices, 'cus_ana', {})
const walks = [...filterCombinations()].map(filter => ({
  filter,
  expected: expectedMatches(sorted, 'cus_ana', filter),
}))

for (const engine of engines) {
  describe(`paging on ${engine.name}`, () => {
    test(`shows each of ${size} invoices exactly once in order, and every filtered page correctly`, async t => {
      assert.equal(invoices.length, size)
      assert.equal(walks.length, 6 * 3 * 4 * 5)
      const service = await startService(t, engine, {
        records: invoices.map(invoice => ({ invoice, lines: null })),
      })
      for (const [turn, { filter, expected }] of walks.entries()) {
        const pages = Math.max(1, Math.ceil(expected.length / 50))
        // Whole walks where one filter is given at most; the first, the last and some pages between of all the others, by turns.
        const isWalked = Object.keys(filter).length < 2 && filter.q === undefined
        const some = [1, Math.ceil(pages / 3), Math.ceil((pages * 2) / 3), pages]
        const asked = isWalked
          ? Array.from({ length: pages }, (_, i) => i + 1)
          : campaign([some[turn % 4] ?? 1, some[(turn + 2) % 4] ?? 1], some)
        for (const page of new Set(asked.map(each => Math.max(1, Math.min(each, pages))))) {
          const { json } = await service.list(writeQuestion({ ...filter, page, page_size: 50 }))
          assert.deepEqual(
            [json.page, json.total, json.total_pages],
            [page, expected.length, Math.ceil(expected.length / 50)],
            writeQuestion(filter),
          )
          assert.deepEqual(
            json.invoices.map(({ id }: Invoice) => id),
            expected.slice((page - 1) * 50, page * 50).map(({ id }) => id),
            `${writeQuestion(filter)} page ${page}`,
          )
        }
      }
    })

    test('answers random queries about random records exactly as the contract says', async t => {
      const service = await startService(t, engine)
      const records = fc.array(oddInvoice, { maxLength: 40 })
      const questions = fc.array(someQuestion, { minLength: 1, maxLength: 12 })
      let known: Invoice[] = []
      await fc.assert(
        fc.asyncProperty(records, questions, async (invoices, asked) => {
          await service.store.transaction(async tx => {
            for (const { customer_id, id } of known) await tx.deleteInvoice(customer_id, id)
          })
          known = [
            ...new Map(invoices.map(invoice => [`${invoice.customer_id} ${invoice.id}`, invoice])).values(),
          ]
          await service.save(...invoices.map(invoice => ({ invoice, lines: null })))
          for (const question of asked) {
            const { text } = await service.list(writeQuestion(question))
            assert.equal(
              text,
              JSON.stringify(expectedPage(known, 'cus_ana', question)),
              writeQuestion(question),
            )
          }
        }),
        { numRuns: campaign(40, 1_000), seed: 2026 },
      )
    })
  })
}
