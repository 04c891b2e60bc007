/** Every engine gives the same answers, byte for byte. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Invoice, invoiceStatuses } from '../../src/domain/invoice.ts'
import { campaign } from '../support/checks/campaign.ts'
import { type Question, writeQuestion } from '../support/checks/model.ts'
import { engines } from '../support/databases/engines.ts'
import { makeInvoice, makeLine } from '../support/worlds/records.ts'
import { type Answer, startService } from '../support/worlds/service.ts'

/** Every ASCII character that prints, and what is special beyond: case pairs, marks, widths, joiners, planes. */
const characters = [
  ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)),
  ...'çÇãÃßẞσςΣİıﬁéé½①ａ\u00a0\u200b\u00ad–—−’·🧾東ab12ab12ab12----    ',
]
const text = fc
  .array(fc.constantFrom(...characters), { minLength: 1, maxLength: 8 })
  .map(chars => chars.join(''))
const piece = fc
  .array(fc.constantFrom(...characters), { minLength: 1, maxLength: 2 })
  .map(chars => chars.join(''))
const words = fc.array(fc.oneof(piece, text, fc.constantFrom('PT509442013', '509442013', 'in_', '2026')), {
  minLength: 1,
  maxLength: 2,
})
const id = fc
  .array(fc.constantFrom(...'aAbBzZ019_-'), { minLength: 1, maxLength: 4 })
  .map(chars => `in_${chars.join('')}`)
const moments = [
  '2026-01-31T23:59:59.999Z',
  '2026-02-01T00:00:00.000Z',
  '2026-02-28T12:00:00.000Z',
  '1969-12-31T23:59:59.999Z',
  '9999-12-31T23:59:59.999Z',
]

const someInvoice = fc
  .record({
    id,
    number: fc.option(text),
    display_name: text,
    customer_name: fc.option(text),
    customer_email: fc.option(text),
    company_name: fc.option(text),
    customer_tax_id: fc.option(fc.oneof(text, fc.constantFrom('PT509442013', '509442013'))),
    issued_at: fc.constantFrom(...moments),
    ix_id: fc.option(fc.nat(99_999)),
    ix_status: fc.option(fc.oneof(text, fc.constantFrom('settled', 'final'))),
    status: fc.constantFrom(...invoiceStatuses),
    total_cents: fc.maxSafeInteger(),
    tax_percent: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  })
  .map(fields => makeInvoice({ ...fields, customer_id: `cus_${fields.id.length % 3}` }))

const filters = {
  page: fc.oneof(fc.integer({ min: -2, max: 12 }), fc.maxSafeInteger()),
  page_size: fc.integer({ min: -1, max: 60 }),
  status: fc.constantFrom(...invoiceStatuses),
  ix_status: fc.oneof(text, fc.constantFrom('settled', 'final')),
  date_from: fc.constantFrom('0001-01-01', '1969-12-31', '2026-01-31', '2026-02-01'),
  date_to: fc.constantFrom('1969-12-31', '2026-01-31', '2026-02-28', '9999-12-31', '2026-02-29'),
}
const q = words.map(parts => parts.join(' '))
const someQuestion: fc.Arbitrary<Question> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ q }) },
  { weight: 3, arbitrary: fc.record({ q, page: filters.page, page_size: filters.page_size }) },
  { weight: 2, arbitrary: fc.record(filters, { requiredKeys: [] }) },
  { weight: 2, arbitrary: fc.record({ ...filters, q }, { requiredKeys: [] }) },
)

const asked = campaign(600, 20_000)

test(`every engine answers ${asked} random questions about a random store with the same bytes`, async t => {
  const invoices = fc.sample(someInvoice, { numRuns: 600, seed: 2026 })
  const records = invoices.map((invoice, i) => ({
    invoice,
    lines: i % 3 === 0 ? null : [makeLine({ description: invoice.display_name })],
  }))
  const services = await Promise.all(engines.map(engine => startService(t, engine, { records })))
  assert.ok(services.length >= 2)
  const questions = fc.sample(fc.tuple(fc.nat(3), someQuestion), { numRuns: asked, seed: 2026 })
  const seen = { matches: 0, none: 0, refused: 0 }
  for (const [customer, question] of questions) {
    const path = `/api/v1/client/cus_${customer}/invoices${writeQuestion(question)}`
    const [first, ...others] = await Promise.all(services.map(service => service.get(path)))
    for (const other of others) {
      assert.equal(other.status, first?.status, path)
      assert.equal(withoutId(other), withoutId(first as Answer), path)
    }
    seen[first?.status !== 200 ? 'refused' : first.json.total > 0 ? 'matches' : 'none']++
  }
  assert.ok(
    seen.matches > asked / 6 && seen.none > asked / 12 && seen.refused > asked / 60,
    JSON.stringify(seen),
  )

  const keys = new Set(invoices.map(({ customer_id, id }: Invoice) => `${customer_id}/invoice/${id}`))
  for (const key of [...[...keys].slice(0, campaign(200, 600)), 'cus_0/invoice/in_none'])
    for (const suffix of ['', '/ix/download', '/payments/download']) {
      const [first, ...others] = await Promise.all(
        services.map(service => service.get(`/api/v1/client/${key}${suffix}`)),
      )
      for (const other of others) {
        assert.equal(withoutId(other), withoutId(first as Answer), key)
        assert.equal(other.headers.etag, first?.headers.etag, key)
      }
    }
})

/** A status and a body, but for the request id. */
function withoutId({ status, text: body, headers }: Answer): string {
  return `${status} ${body.replace(String(headers['request-id']), '')}`
}
