/** The detail's text is cut out of the summary's: it must be what parsing and writing again would give, to the byte. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { downloadPath, type Invoice, invoiceFields } from '../../src/domain/invoice.ts'
import { serializeDetail, serializeSummary } from '../../src/domain/invoice-json.ts'
import { anyCharacter } from '../support/clients/any-character.ts'
import { makeInvoice } from '../support/worlds/records.ts'

function writeAnew(invoice: Invoice, lines: string | null): string {
  const { id, number, customer_id, display_name, issued_at, ...rest } = invoice
  const { customer_name, customer_email, company_name, customer_tax_id, ix_created_at, ...tail } = rest
  return JSON.stringify({
    ...{ id, number, customer_id, display_name, issued_at, ...tail },
    lines: JSON.parse(lines ?? '[]'),
    lines_source: lines === null ? 'none' : 'payments',
    downloads: {
      ix: invoice.ix_id === null ? null : downloadPath(customer_id, id, 'ix'),
      payments: downloadPath(customer_id, id, 'payments'),
    },
  })
}

/** Text that tries to pass for the end of a string and the beginning of a field. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...invoiceFields.flatMap(name => [`,"${name}":`, `","${name}":"`, `\\",\\"${name}\\":`]),
      ),
      fc.constantFrom(
        '"',
        '\\',
        '\\"',
        ',',
        ',"',
        '":',
        '{',
        '}',
        'null',
        '\u2028',
        '\ud800',
        'é',
        '🧾',
        '\n',
      ),
      fc.string({ unit: anyCharacter, maxLength: 5 }),
    ),
    { maxLength: 6 },
  )
  .map(parts => parts.join(''))
const textOrNull = fc.option(hostile)
const whole = fc.maxSafeInteger()

test('the JSON of a detail contains the summary’s fields in the same order, for any field values', () => {
  const fields = fc.record({
    number: textOrNull,
    display_name: hostile,
    customer_name: textOrNull,
    customer_email: textOrNull,
    company_name: textOrNull,
    customer_tax_id: textOrNull,
    ix_created_at: fc.option(fc.constant('2026-01-02T03:04:05.006Z')),
    subtotal_cents: whole,
    tax_percent: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
    total_cents: whole,
    ix_id: fc.option(whole),
    ix_status: textOrNull,
  })
  fc.assert(
    fc.property(fields, fc.constantFrom(null, '[]', '[{"id":"il_1"}]'), (given, lines) => {
      const invoice = makeInvoice(given)
      assert.equal(
        serializeDetail(serializeSummary(invoice), lines),
        writeAnew(JSON.parse(serializeSummary(invoice)), lines),
      )
    }),
    { numRuns: 2_000 },
  )
})
