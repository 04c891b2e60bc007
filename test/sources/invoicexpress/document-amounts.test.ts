/** What a document charges, and how it is shown: amounts, retention, another currency, its number. Pure. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Amounts,
  type Document,
  grossOf,
  originalStatusOf,
  printedNumberOf,
  printedTypeOf,
  withheldOf,
} from '../../../src/domain/document.ts'
import {
  describeInvoiceDocument,
  documentColumns,
  exchangeRateOf,
} from '../../../src/domain/document-json.ts'
import { makeInvoice } from '../../support/worlds/records.ts'

const euros: Document = {
  id: 1,
  type: 'Invoice',
  status: 'final',
  reference: null,
  number: '6/G',
  date: '2026-03-05',
  total: '123',
  currency: 'Euro',
  client_id: null,
  series_number: 'G/6',
  before_taxes: '100',
  taxes_total: '23',
  taxes: [{ rate: '23', base: '100', tax: '23' }],
}

const show = (document: Partial<Document>, currency = 'eur', related: Partial<Document>[] = []) =>
  describeInvoiceDocument(
    makeInvoice({ currency }),
    { ...euros, ...document },
    { has_qr: false, documents: related.map(each => ({ ...euros, ...each })) },
  )

describe('the gross amount of a document', () => {
  const cases: [name: string, amounts: Partial<Amounts>, gross: string | null, withheld: string | null][] = [
    ['is the amount before taxes plus the taxes', {}, '123', null],
    ['is an exact sum of decimals', { before_taxes: '0.1', taxes_total: '0.2', total: '0.3' }, '0.3', null],
    ['is more than its total when tax is retained', { retention: '25', total: '98' }, '123', '25'],
    ['is its total when no other amount is known', { before_taxes: null, taxes_total: null }, '123', null],
    ['is its total with a retention of 0', { before_taxes: null, retention: '0.0' }, '123', null],
    [
      'is unknown when only the retention and the total are known',
      { before_taxes: null, retention: '25', total: '98' },
      null,
      null,
    ],
    ['may be negative', { before_taxes: '-100', taxes_total: '-23', total: '-123' }, '-123', null],
  ]
  for (const [name, amounts, gross, withheld] of cases)
    test(name, () => {
      assert.equal(grossOf({ ...euros, ...amounts }), gross)
      assert.equal(withheldOf({ ...euros, ...amounts }), withheld)
    })
})

describe('a document as it is shown', () => {
  test('has its tax as given, and the retained tax beside it', () => {
    const shown = show({ retention: '25', total: '98' })
    assert.deepEqual(
      [shown.before_tax_cents, shown.tax_cents, shown.gross_cents, shown.total_cents],
      [10_000, 2_300, 12_300, 9_800],
    )
    assert.deepEqual([shown.retention_percent, shown.retention_cents], [25, 2_500])
  })

  test('has no tax when InvoiceXpress gives no tax, whatever its totals are', () => {
    assert.equal(show({ taxes_total: null, total: '98' }).tax_cents, null)
  })

  test('has no retention when the retention is unknown', () => {
    for (const retention of [undefined, null] as const) {
      const shown = show(retention === undefined ? {} : { retention })
      assert.deepEqual([shown.retention_percent, shown.retention_cents], [null, null])
    }
  })

  test('has the account’s currency, and beside it the total in the invoice’s currency', () => {
    const multicurrency = { rate: '1.087', currency: 'usd', total: '133.70' }
    const shown = show({ multicurrency }, 'usd')
    assert.deepEqual([shown.total_cents, shown.currency], [12_300, 'eur'])
    assert.deepEqual(shown.in_invoice_currency, { currency: 'usd', total_cents: 13_370, rate: 1.087 })
  })

  test('has whole units in a currency without decimals', () => {
    const multicurrency = { rate: '163.9', currency: 'jpy', total: '20160' }
    assert.deepEqual(show({ multicurrency }, 'jpy').in_invoice_currency, {
      currency: 'jpy',
      total_cents: 20_160,
      rate: 163.9,
    })
  })

  test('has no second currency when InvoiceXpress gives none, or one with an unknown name', () => {
    assert.equal(show({}, 'usd').in_invoice_currency, null)
    const multicurrency = { rate: '2', currency: 'Patacão', total: '246' }
    assert.equal(show({ multicurrency }, 'usd').in_invoice_currency, null)
  })

  test('has null for an unknown tax rate, beside the tax amount', () => {
    const taxes = [
      { rate: '6', base: '20', tax: '1.2' },
      { rate: null, base: '80', tax: '21.8' },
    ]
    assert.deepEqual(show({ taxes }).taxes, [
      { rate_percent: 6, base_cents: 2_000, tax_cents: 120 },
      { rate_percent: null, base_cents: 8_000, tax_cents: 2_180 },
    ])
  })
})

describe('the exchange rate of a document', () => {
  const cases: [name: string, total: string, rate: string | null, theirs: string, expected: string | null][] =
    [
      ['is taken unchanged when it is in the invoice’s currency', '100', '1.087', '108.7', '1.087'],
      ['is inverted when it is given for the other direction', '100', '0.92', '108.7', '1.086957'],
      ['is taken unchanged for a currency of low value', '100', '163.9', '16390', '163.9'],
      [
        'is inverted for a currency of low value in the other direction',
        '100',
        '0.0061',
        '16393',
        '163.934426',
      ],
      ['is inverted for a negative total in the other direction', '-100', '0.92', '-108.7', '1.086957'],
      ['is taken unchanged for a total of zero', '0', '1.087', '0', '1.087'],
      ['is rounded when it has many digits', '100', '0.00610016470', '16393', '163.93'],
      ['is 1 for equal amounts', '100', '1', '100', '1'],
      ['is null when it is not given', '100', null, '108.7', null],
      ['is null when it is given as 0', '100', '0', '108.7', null],
    ]
  for (const [name, total, rate, theirs, expected] of cases)
    test(name, () => {
      const amounts = { total, currency: 'Euro', multicurrency: { rate, currency: 'usd', total: theirs } }
      assert.equal(exchangeRateOf(amounts), expected)
    })
})

describe('the sum of credit notes in the invoice’s currency', () => {
  const note: Partial<Document> = {
    type: 'CreditNote' as 'Invoice',
    total: '61.5',
    before_taxes: '50',
    taxes_total: '11.5',
  }
  const inDollars = { rate: '2', currency: 'usd', total: '246' }
  const sumOf = (document: Partial<Document>, currency: string, related: Partial<Document>[]) =>
    documentColumns(show(document, currency, related), currency).credited_cents

  test('contains only notes in force', () => {
    const others = (['draft', 'canceled', 'deleted', 'second_copy'] as const).map(status => ({
      ...note,
      status,
    }))
    assert.equal(sumOf({}, 'eur', [note, ...others]), 6_150)
  })
  test('contains credit notes of MOSS, and no receipts', () => {
    const related = ['VatMossCreditNote', 'VatMossReceipt', 'Receipt'].map(type => ({
      ...note,
      type: type as 'Invoice',
    }))
    assert.equal(sumOf({}, 'eur', related), 6_150)
  })
  test('contains the gross amount of notes with retained tax', () => {
    assert.equal(
      sumOf({ retention: '25', total: '98' }, 'eur', [{ ...note, retention: '25', total: '49' }]),
      6_150,
    )
  })
  test('takes a note’s own total in that currency', () => {
    const multicurrency = { rate: '2.1', currency: 'usd', total: '129.15' }
    assert.equal(sumOf({ multicurrency: inDollars }, 'usd', [{ ...note, multicurrency }]), 12_915)
  })
  test('converts a note at the document’s rate when the note has no such total', () => {
    assert.equal(sumOf({ multicurrency: inDollars }, 'usd', [note]), 12_300)
  })
  test('is 0 when no total in that currency is known', () => {
    assert.equal(sumOf({}, 'usd', [note]), 0)
  })
})

describe('the printed number of a document', () => {
  const cases: [type: string, series: string | null, number: string | null, printedType?: string][] = [
    ['Invoice', 'A/123', 'FT A/123'],
    ['Invoice', 'FR A/123', 'FR A/123', 'InvoiceReceipt'],
    ['Invoice', 'FR/123', 'FR FR/123', 'InvoiceReceipt'],
    ['Invoice', 'FRA/123', 'FT FRA/123'],
    ['Invoice', null, null],
    ['SimplifiedInvoice', 'FR A/1', 'FR A/1'],
    ['VatMossInvoice', 'A/1', 'FVM A/1'],
    ['VatMossCreditNote', 'A/1', 'A/1'],
    ['VatMossReceipt', 'A/1', 'A/1'],
    ['CreditNote', 'A/1', 'NC A/1'],
  ]
  for (const [type, series_number, number, printedType = type] of cases)
    test(`of the type ${type} with the number ${series_number} is ${number}, of the type ${printedType}`, () => {
      assert.equal(printedNumberOf({ type, series_number }), number)
      assert.equal(printedTypeOf({ type, series_number }), printedType)
    })
})

describe('the status of a second copy', () => {
  const copy: Document = { ...euros, id: 2, status: 'second_copy' }
  const cases: [name: string, others: Document[], status: string][] = [
    ['is that of the document with the same number', [euros], 'final'],
    ['is canceled when the original is canceled', [{ ...euros, status: 'canceled' }], 'canceled'],
    [
      'stays second_copy when only a document of another number is known',
      [{ ...euros, series_number: 'G/7' }],
      'second_copy',
    ],
    [
      'stays second_copy when only the same number of another type is known',
      [{ ...euros, type: 'CashInvoice' }],
      'second_copy',
    ],
    ['stays second_copy when only other copies are known', [{ ...copy, id: 3 }, copy], 'second_copy'],
  ]
  for (const [name, others, status] of cases)
    test(name, () => assert.equal(originalStatusOf(copy, others), status))

  test('stays second_copy without a number', () => {
    const without = { number: null, series_number: null }
    assert.equal(originalStatusOf({ ...copy, ...without }, [{ ...euros, ...without }]), 'second_copy')
  })
  test('does not replace the status of any other document', () => {
    assert.equal(originalStatusOf({ ...copy, status: 'draft' }, [euros]), 'draft')
  })
})
