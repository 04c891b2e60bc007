/** `fatura report vat`: both sides of a month's VAT, equal to its SAF-T file to the cent, on every engine; and what is behind each difference. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext, test } from 'node:test'
import { parse } from 'csv-parse/sync'
import { type SaftRow, writeSaft } from '../../../sandbox/saft-file.ts'
import { monthOf } from '../../../src/domain/calendar.ts'
import { type Claim, type Document, noClaim, type RelatedDocument } from '../../../src/domain/document.ts'
import type { Invoice, InvoiceDocument } from '../../../src/domain/invoice.ts'
import { defaultRules } from '../../../src/domain/link/link.ts'
import { completePaymentFacts, type PaymentFacts, type TaxByRate } from '../../../src/domain/payment.ts'
import { readSaft, type SaftDocument } from '../../../src/operations/reconcile/read-saft.ts'
import {
  amountsOfDocument,
  amountsOfInvoice,
  countryOf,
  toEuros,
  type VatPart,
} from '../../../src/operations/report/vat-amounts.ts'
import { createVatReport, type VatEntry } from '../../../src/operations/report/vat-report.ts'
import { mapDocument, mapRelated } from '../../../src/sources/invoicexpress/map-document.ts'
import { openSaftExport } from '../../../src/sources/invoicexpress/saft-export.ts'
import { observationStamp, type WriteStore } from '../../../src/store/store.ts'
import { relinkInvoices } from '../../../src/sync/link-invoices.ts'
import { assertFits, createCli, type Outcome, unwrapped } from '../../support/clients/cli.ts'
import { engines } from '../../support/databases/engines.ts'
import { startDocuments } from '../../support/worlds/documents.ts'
import { noGuard } from '../../support/worlds/no-guard.ts'
import { makeInvoice } from '../../support/worlds/records.ts'
import { openStores } from '../../support/worlds/sync.ts'

type Row = [rate: number | null, base: number, tax: number]
const rowsOf = (parts: readonly VatPart[] | null) =>
  parts?.map(({ rate_percent, base_cents, tax_cents }): Row => [rate_percent, base_cents, tax_cents]) ?? null

const euros = { total: '0', currency: 'Euro' }

describe('the VAT of a document', () => {
  type Case = [
    name: string,
    fields: Parameters<typeof amountsOfDocument>[0],
    rows: Row[] | null,
    unread: RegExp | null,
  ]
  const taxes = (...all: [string | null, string, string][]) =>
    all.map(([rate, base, tax]) => ({ rate, base, tax }))
  const cases: Case[] = [
    [
      'is the sum of its items',
      {
        ...euros,
        before_taxes: '150',
        taxes_total: '26',
        taxes: taxes(['23', '100', '23'], ['6', '50', '3']),
      },
      [
        [23, 10_000, 2_300],
        [6, 5_000, 300],
      ],
      null,
    ],
    [
      'adds up to its amounts, and the largest rate has the rounding',
      {
        ...euros,
        before_taxes: '150.01',
        taxes_total: '25.99',
        taxes: taxes(['23', '100', '23'], ['6', '50', '3']),
      },
      [
        [23, 10_001, 2_299],
        [6, 5_000, 300],
      ],
      null,
    ],
    [
      'does not include the retained tax',
      {
        ...euros,
        total: '98',
        retention: '25',
        before_taxes: '100',
        taxes_total: '23',
        taxes: taxes(['23', '100', '23']),
      },
      [[23, 10_000, 2_300]],
      null,
    ],
    [
      'is 0 % without taxes',
      { ...euros, before_taxes: '100', taxes_total: '0', taxes: taxes(['0', '100', '0']) },
      [[0, 10_000, 0]],
      null,
    ],
    [
      'has an unknown rate as unknown, not as 0 %',
      { ...euros, before_taxes: '100', taxes_total: '0', taxes: taxes([null, '100', '0']) },
      [[null, 10_000, 0]],
      /one of its rates/,
    ],
    [
      'is unread with its amounts when its rates are unknown',
      { ...euros, before_taxes: '100', taxes_total: '23', taxes: null },
      [[null, 10_000, 2_300]],
      /taxes by rate/,
    ],
    ['is missing when the amounts are unknown', { ...euros, total: '123' }, null, /amount before taxes/],
    [
      'is missing in another currency than the account’s',
      {
        total: '123',
        currency: 'US Dollar',
        before_taxes: '100',
        taxes_total: '23',
        taxes: taxes(['23', '100', '23']),
      },
      null,
      /US Dollar/,
    ],
    ['is empty for an amount of zero', { ...euros, before_taxes: '0', taxes_total: '0' }, [], null],
  ]
  for (const [name, fields, rows, unread] of cases)
    test(name, () => {
      const found = amountsOfDocument(fields)
      assert.deepEqual(rowsOf(found.parts), rows)
      if (unread === null) assert.equal(found.unread, null)
      else assert.match(found.unread ?? '', unread)
    })
})

describe("the VAT of the platform's invoice", () => {
  const tax = (rate_percent: number | null, base_cents: number | null, tax_cents: number): TaxByRate => {
    return { rate_percent, base_cents, tax_cents, reason: null }
  }
  type Case = [
    name: string,
    total: number,
    tax: number,
    taxes: TaxByRate[] | null,
    rows: Row[],
    isUnread?: true,
  ]
  const cases: Case[] = [
    [
      'is the sum of its taxes',
      17_600,
      2_600,
      [tax(23, 10_000, 2_300), tax(6, 5_000, 300)],
      [
        [23, 10_000, 2_300],
        [6, 5_000, 300],
      ],
    ],
    [
      'has the amount without a rate at 0 %',
      17_300,
      2_300,
      [tax(23, 10_000, 2_300)],
      [
        [23, 10_000, 2_300],
        [0, 5_000, 0],
      ],
    ],
    ['is 0 % without any rate', 5_000, 0, [], [[0, 5_000, 0]]],
    ['is 0 % without tax and without known rates', 5_000, 0, null, [[0, 5_000, 0]]],
    ['is unread when its rates are unknown', 12_300, 2_300, null, [[null, 10_000, 2_300]], true],
    ['computes a missing base from the total', 12_300, 2_300, [tax(23, null, 2_300)], [[23, 10_000, 2_300]]],
    [
      'has the sum of the percentages when several taxes apply to the whole amount',
      1_150,
      150,
      [tax(5, 1_000, 50), tax(9.975, 1_000, 100)],
      [[14.975, 1_000, 150]],
    ],
    [
      'is unread when taxes apply to other taxes',
      1_200,
      200,
      [tax(5, 1_000, 100), tax(6, 500, 100)],
      [[null, 1_000, 200]],
      true,
    ],
    [
      'joins one rate with two reasons',
      24_600,
      4_600,
      [tax(23, 5_000, 1_150), tax(23, 15_000, 3_450)],
      [[23, 20_000, 4_600]],
    ],
    ['is negative for a credit', -12_300, -2_300, [tax(23, -10_000, -2_300)], [[23, -10_000, -2_300]]],
    ['is empty for an amount of zero', 0, 0, [], []],
  ]
  for (const [name, total_cents, tax_cents, taxes, rows, isUnread] of cases)
    test(name, () => {
      const { parts, unread } = amountsOfInvoice({ total_cents, tax_cents }, { taxes })
      assert.deepEqual(rowsOf(parts), rows)
      assert.equal(unread !== null, isUnread === true)
    })

  const about = (fields: Partial<InvoiceDocument>) => fields as InvoiceDocument
  const converted = { currency: 'usd', total_cents: 13_370, rate: 1.087 }
  const inUsd: VatPart[] = [{ rate_percent: 23, base_cents: 10_870, tax_cents: 2_500 }]
  const conversions: [string, number, string, InvoiceDocument | null, Row[] | null][] = [
    ['stays unchanged in euros', 13_370, 'eur', null, [[23, 10_870, 2_500]]],
    [
      'is converted by the ratio of its document’s two totals',
      13_370,
      'usd',
      about({ currency: 'eur', gross_cents: 12_300, total_cents: 12_300, in_invoice_currency: converted }),
      [[23, 10_000, 2_300]],
    ],
    [
      'is converted when the document’s total excludes the retained tax',
      13_370,
      'usd',
      about({
        currency: 'eur',
        gross_cents: 12_300,
        total_cents: 9_800,
        in_invoice_currency: { ...converted, total_cents: 10_653 },
      }),
      [[23, 10_000, 2_300]],
    ],
    [
      'is converted in proportion when the totals differ',
      26_740,
      'usd',
      about({ currency: 'eur', gross_cents: 12_300, total_cents: 12_300, in_invoice_currency: converted }),
      [[23, 20_000, 4_600]],
    ],
    [
      'is not converted without an exchange rate',
      13_370,
      'usd',
      about({ currency: 'eur', gross_cents: 12_300, total_cents: 12_300, in_invoice_currency: null }),
      null,
    ],
    ['is not converted without a document', 13_370, 'usd', null, null],
  ]
  for (const [name, total_cents, currency, document, rows] of conversions)
    test(name, () => {
      const parts = inUsd.map(part => ({
        ...part,
        base_cents: total_cents - part.tax_cents * (total_cents / 13_370),
        tax_cents: part.tax_cents * (total_cents / 13_370),
      }))
      assert.deepEqual(rowsOf(toEuros(parts, { total_cents, currency }, document)), rows)
    })
})

test('a country is read from a tax ID’s prefix or a NIF, and otherwise unknown', () => {
  const cases: Record<string, string | null> = {
    ...{ PT123456789: 'PT', '123 456 789': 'PT', '123456780': null, PT999999990: null, '999999990': null },
    ...{ ESB12345678: 'ES', B12345678: null, EL123456789: 'GR', GR123456789: 'GR', 'CHE-123.456.789': 'CH' },
    ...{ GB123456789: 'GB', SC123456: null, T3123456789000: null, '12-3456789': null, '': null },
  }
  for (const [taxId, country] of Object.entries(cases)) assert.equal(countryOf(taxId), country, taxId)
  assert.equal(countryOf(null), null)
})

describe('a VAT report', () => {
  const entry = (fields: Partial<VatEntry>): VatEntry => ({
    ...{ customer_id: 'cus_ana', invoice_id: 'in_1', number: '1', document_id: 1, document_number: 'FT A/1' },
    ...{ document_date: '2026-10-10', country: 'PT', exemption_code: null, document: null, invoice: null },
    reason: '',
    ...fields,
  })
  const amounts = (...rows: Row[]) => ({
    parts: rows.map(([rate_percent, base_cents, tax_cents]) => ({ rate_percent, base_cents, tax_cents })),
    unread: null,
  })
  const invoiced = (...rows: Row[]) => ({ ...amounts(...rows), currency: 'eur' })
  const cases: [name: string, entry: VatEntry, counts: [number, number, number]][] = [
    [
      'has no difference when both sides are equal',
      entry({ document: amounts([23, 100, 23]), invoice: invoiced([23, 100, 23]) }),
      [0, 0, 0],
    ],
    [
      'counts a difference of one cent as rounding',
      entry({ document: amounts([23, 101, 23]), invoice: invoiced([23, 100, 24]) }),
      [0, 1, 0],
    ],
    [
      'counts two cents as a difference',
      entry({ document: amounts([23, 102, 23]), invoice: invoiced([23, 100, 23]) }),
      [1, 0, 0],
    ],
    [
      'counts one cent at each of two rates as rounding',
      entry({ document: amounts([23, 100, 24], [6, 100, 7]), invoice: invoiced([23, 100, 23], [6, 100, 6]) }),
      [0, 1, 0],
    ],
    [
      'counts two cents of tax at one of two rates as a difference',
      entry({ document: amounts([23, 100, 25], [6, 100, 6]), invoice: invoiced([23, 100, 23], [6, 100, 6]) }),
      [1, 0, 0],
    ],
    [
      'counts another rate with the same total as one difference',
      entry({ document: amounts([23, 100, 23]), invoice: invoiced([6, 116, 7]) }),
      [1, 0, 0],
    ],
    [
      'counts a document without an invoice as a difference, even of one cent',
      entry({ document: amounts([0, 1, 0]) }),
      [1, 0, 0],
    ],
    [
      'counts an invoice without a document as a difference',
      entry({ invoice: invoiced([0, 1, 0]) }),
      [1, 0, 0],
    ],
    ['ignores an invoice of zero without a document', entry({ invoice: invoiced() }), [0, 0, 0]],
    ['counts an unread document', entry({ document: { parts: null, unread: 'why' } }), [0, 0, 1]],
  ]
  for (const [name, each, counts] of cases)
    test(name, () => {
      const report = createVatReport()
      report.add(each)
      assert.deepEqual([report.counts.difference, report.counts.rounding, report.counts.unread], counts)
    })

  const byCents = entry({ document: amounts([23, 105, 23]), invoice: invoiced([23, 100, 23]) })
  for (const [tolerance, record] of [
    [0, 'difference'],
    [4, 'difference'],
    [5, 'rounding'],
  ] as const)
    test(`counts a difference of five cents as ${record} with a tolerance of ${tolerance}`, () => {
      const report = createVatReport({ tolerance })
      report.add(byCents)
      assert.deepEqual(report.counts, { difference: 0, rounding: 0, unread: 0, [record]: 1 })
    })

  test('lists roundings on request, and splits rows by exemption code only at 0 %', () => {
    const report = createVatReport()
    report.add(
      entry({
        exemption_code: 'M07',
        document: amounts([23, 101, 23], [0, 50, 0]),
        invoice: invoiced([23, 100, 23], [0, 50, 0]),
      }),
    )
    const shown = (withRounding: boolean) =>
      report
        .lines({ withRounding })
        .map(({ record, rate_percent, exemption_code, documents_base, stripe_base }) => {
          return [record, rate_percent, exemption_code, documents_base, stripe_base].join(' ')
        })
    const rows = ['row 23  1.01 1.00', 'row 0 M07 0.50 0.50', 'total   1.51 1.50']
    assert.deepEqual(shown(false), rows)
    assert.deepEqual(shown(true), [...rows, 'rounding 23  1.01 1.00'])
  })
})

const month = '2026-10'
/** As the sandbox of both systems has it. */
const ixKey = 'canary_key_of_invoicexpress'

interface Planted {
  n: number
  invoice?: Partial<Invoice>
  taxes?: TaxByRate[]
  payment?: Partial<PaymentFacts>
  claim?: Partial<Claim>
  /** As InvoiceXpress sends it; null: none. */
  document: Record<string, unknown> | null
  notes?: Record<string, unknown>[]
  /** The rows of the SAF-T file: net and gross. */
  filed: [number: string, net: number, tax: number][]
}

const item = (rate: number, base: number, tax: number) => {
  return { tax: { name: 'IVA', value: rate }, tax_amount: tax, total: base + tax }
}
const stripeTax = (rate_percent: number, base_cents: number, tax_cents: number): TaxByRate => {
  return { rate_percent, base_cents, tax_cents, reason: null }
}
const at23 = { before_taxes: 100, taxes: 23, total: 123, items: [item(23, 100, 23)] }
const usual = { total_cents: 12_300, tax_cents: 2_300 }
const defaultTaxes = [stripeTax(23, 10_000, 2_300)]

/** Right on both sides: two rates, retention, a foreign currency, exemptions, credit notes of two rates and of a document of before. */
const right: Planted[] = [
  { n: 1, invoice: usual, taxes: defaultTaxes, document: at23, filed: [['FT A/1', 100, 23]] },
  {
    n: 2,
    invoice: { total_cents: 17_600, tax_cents: 2_600 },
    taxes: [stripeTax(23, 10_000, 2_300), stripeTax(6, 5_000, 300)],
    document: { before_taxes: 150, taxes: 26, total: 176, items: [item(23, 100, 23), item(6, 50, 3)] },
    payment: { post_payment_credit_cents: 8_800 },
    notes: [
      {
        id: 902,
        type: 'CreditNote',
        inverted_sequence_number: 'NC/2',
        before_taxes: 75,
        taxes: 13,
        total: 88,
        items: [item(23, 50, 11.5), item(6, 25, 1.5)],
      },
    ],
    filed: [
      ['FT A/2', 150, 26],
      ['NC NC/2', 75, 13],
    ],
  },
  {
    n: 3,
    invoice: usual,
    taxes: defaultTaxes,
    document: { ...at23, total: 98, retention: '25' },
    filed: [['FT A/3', 100, 23]],
  },
  {
    n: 4,
    invoice: { total_cents: 13_370, tax_cents: 2_500, currency: 'usd', customer_tax_id: null },
    taxes: [stripeTax(23, 10_870, 2_500)],
    document: { ...at23, multicurrency: { rate: '1.087', currency: 'US Dollar', total: 133.7 } },
    filed: [['FT A/4', 100, 23]],
  },
  {
    n: 5,
    invoice: { total_cents: 5_000, tax_cents: 0, customer_tax_id: 'ESB12345678' },
    taxes: [],
    document: { before_taxes: 50, taxes: 0, total: 50, items: [item(0, 50, 0)], tax_exemption: 'M40' },
    filed: [['FT A/5', 50, 0]],
  },
  // Credited in this month, and of the month before.
  {
    n: 6,
    invoice: { ...usual, issued_at: '2026-09-10T10:00:00.000Z' },
    taxes: defaultTaxes,
    payment: { post_payment_credit_cents: 12_300 },
    document: { ...at23, date: '10/09/2026' },
    notes: [
      { id: 906, type: 'CreditNote', inverted_sequence_number: 'NC/6', ...at23 },
      { id: 916, type: 'CreditNote', inverted_sequence_number: 'NC/16', ...at23, status: 'canceled' },
      { id: 926, type: 'Receipt', inverted_sequence_number: 'RG/6', ...at23, status: 'settled' },
    ],
    filed: [['NC NC/6', 100, 23]],
  },
  {
    n: 7,
    invoice: { ...usual, status: 'void' },
    taxes: defaultTaxes,
    document: { ...at23, status: 'canceled' },
    filed: [],
  },
  {
    n: 8,
    invoice: { ...usual, status: 'draft' },
    taxes: defaultTaxes,
    document: { ...at23, status: 'draft', sequence_number: 'rascunho', inverted_sequence_number: null },
    filed: [],
  },
  // October's in Lisbon, and September's by UTC.
  {
    n: 9,
    invoice: { ...usual, issued_at: '2026-09-30T23:30:00.000Z' },
    taxes: defaultTaxes,
    document: { ...at23, date: '01/10/2026' },
    filed: [['FT A/9', 100, 23]],
  },
]

/** Each difference once, and beside each what is nearly one. */
const wrong: Planted[] = [
  // Another rate, with the same total.
  {
    n: 1,
    invoice: { total_cents: 12_300, tax_cents: 696 },
    taxes: [stripeTax(6, 11_604, 696)],
    document: at23,
    filed: [],
  },
  {
    n: 2,
    invoice: { total_cents: 12_300, tax_cents: 2_299 },
    taxes: [stripeTax(23, 10_001, 2_299)],
    document: at23,
    filed: [],
  },
  { n: 3, invoice: usual, taxes: defaultTaxes, document: null, filed: [] },
  { n: 4, invoice: usual, taxes: defaultTaxes, document: { ...at23, status: 'canceled' }, filed: [] },
  { n: 5, invoice: usual, taxes: defaultTaxes, document: { ...at23, date: '02/11/2026' }, filed: [] },
  {
    n: 6,
    invoice: { ...usual, issued_at: '2026-11-02T10:00:00.000Z' },
    taxes: defaultTaxes,
    document: at23,
    filed: [],
  },
  { n: 7, invoice: { ...usual, status: 'void' }, taxes: defaultTaxes, document: at23, filed: [] },
  { n: 8, invoice: usual, taxes: defaultTaxes, document: { ...at23, reference: 'Order 8' }, filed: [] },
  // A note that is credited at Stripe by half.
  {
    n: 9,
    invoice: usual,
    taxes: defaultTaxes,
    payment: { pre_payment_credit_cents: 6_150 },
    document: at23,
    notes: [{ id: 909, type: 'CreditNote', inverted_sequence_number: 'NC/9', ...at23 }],
    filed: [],
  },
  // Items without rates; and those of a note.
  {
    n: 10,
    invoice: usual,
    taxes: defaultTaxes,
    payment: { pre_payment_credit_cents: 12_300 },
    document: { ...at23, items: [{ total: 123, tax_amount: 23, tax: { value: null } }] },
    notes: [{ id: 910, type: 'CreditNote', inverted_sequence_number: 'NC/10', ...at23, items: undefined }],
    filed: [],
  },
  {
    n: 11,
    invoice: { total_cents: 13_370, tax_cents: 2_500, currency: 'usd', customer_tax_id: null },
    taxes: [stripeTax(23, 10_870, 2_500)],
    document: at23,
    filed: [],
  },
  {
    n: 12,
    invoice: usual,
    claim: { state: 'ignored' },
    taxes: defaultTaxes,
    document: null,
    filed: [],
  },
  { n: 13, invoice: { total_cents: 0, tax_cents: 0 }, document: null, filed: [] },
  {
    n: 14,
    invoice: usual,
    taxes: defaultTaxes,
    document: { ...at23, status: 'second_copy', reference: 'x', inverted_sequence_number: 'A/14' },
    filed: [],
  },
  {
    n: 15,
    invoice: usual,
    taxes: defaultTaxes,
    document: at23,
    notes: [{ id: 915, type: 'DebitNote', inverted_sequence_number: 'ND/1', ...at23 }],
    filed: [],
  },
]

const expected = [
  'difference | in_15 | ND ND/1 | 23 | 100.00 | 23.00 | a debit note, which Stripe does not have',
  'difference | in_01 | FT A/1 | 23 | 100.00 | 23.00 | other amounts on both sides',
  'difference | in_01 | FT A/1 | 6 | -116.04 | -6.96 | other amounts on both sides',
  'difference | in_03 |  | 23 | -100.00 | -23.00 | there is no document',
  'difference | in_04 | FT A/4 | 23 | -100.00 | -23.00 | document 4 is canceled',
  'difference | in_05 | FT A/5 | 23 | -100.00 | -23.00 | document 5 is of 2026-11-02',
  'difference | in_06 | FT A/6 | 23 | 100.00 | 23.00 | its invoice is of 2026-11-02',
  'difference | in_07 | FT A/7 | 23 | 100.00 | 23.00 | its invoice is void',
  'difference |  | FT A/8 | 23 | 100.00 | 23.00 | no invoice is tied to it',
  'difference | in_08 |  | 23 | -100.00 | -23.00 | there is no document',
  'difference | in_09 | NC NC/9 | 23 | -100.00 | -23.00 | 61.50 eur credited at Stripe, 123.00 eur by credit notes in force',
  'difference | in_10 | FT A/10 |  | 100.00 | 23.00 | the document: one of its rates is not known',
  'difference | in_10 | FT A/10 | 23 | -100.00 | -23.00 | the document: one of its rates is not known',
  'difference | in_11 | FT A/11 | 23 | -108.70 | -25.00 | no rate from usd to euros is known',
  'difference | in_11 | FT A/11 | 23 | 100.00 | 23.00 | no rate from usd to euros is known',
  'difference | in_14 |  | 23 | -100.00 | -23.00 | there is no document',
  'unread |  |  |  |  |  | document 14 is a second copy, and its original is not known',
  'unread | in_10 | FT A/10 |  |  |  | the document: one of its rates is not known',
  'unread | in_10 | NC NC/10 |  |  |  | the document: its taxes by rate are not known',
]

const idOf = (n: number) => `in_${String(n).padStart(2, '0')}`

function read<T>(value: T | null): T {
  return value ?? assert.fail()
}

function documentOf({ n, document }: Planted): Document[] {
  if (document === null) return []
  const sent = {
    ...{ id: n, type: 'Invoice', status: 'settled', reference: idOf(n), sequence_number: `${n}/A` },
    ...{ inverted_sequence_number: `A/${n}`, date: '10/10/2026', currency: 'Euro', client: { id: n } },
    ...document,
  }
  return [read(mapDocument(sent))]
}

function notesOf({ notes = [] }: Planted): RelatedDocument[] {
  return notes.map(note => mapRelated({ status: 'final', date: '20/10/2026', currency: 'Euro', ...note }))
}

async function plant(store: WriteStore, planted: readonly Planted[]): Promise<void> {
  let stamp = observationStamp(Date.now() - 3_600_000)
  const now = Date.now()
  await store.transaction(async tx => {
    const records = planted.map(({ n, invoice: fields, taxes = [], payment, claim }) => {
      const invoice = makeInvoice({ id: idOf(n), issued_at: `${month}-10T10:00:00.000Z`, ...fields })
      return {
        invoice,
        lines: null,
        claim: { ...noClaim, ...claim },
        payment: completePaymentFacts(invoice, { taxes, ...payment }),
      }
    })
    await tx.saveInvoices(records, stamp++)
    await tx.saveDocuments(planted.flatMap(documentOf), stamp++)
    const wanted = { documents: [], invoices: planted.map(({ n }) => idOf(n)) }
    await relinkInvoices(tx, wanted, 'test', { rules: defaultRules, guard: noGuard, now: Date.now() })
    for (const each of planted)
      if (each.document !== null)
        await tx.saveRelations(each.n, { has_qr: false, documents: notesOf(each) }, stamp++)
    for (const name of ['ix:all', 'ix:open'])
      await tx.saveStream({ name, cursor: null, succeeded_at: now, failed_at: null, error: null })
  })
}

/** Sums of the file's documents in force, credit notes negative, in cents. */
async function sumSaft(parts: AsyncIterable<Uint8Array>, isCounted: (document: SaftDocument) => boolean) {
  const sums = { base: 0, tax: 0 }
  for await (const part of readSaft(parts)) {
    if (part.kind !== 'document' || part.document.section !== 'SalesInvoices') continue
    const { net, gross, type, status } = part.document
    if (status === 'A' || !isCounted(part.document)) continue
    const [base, whole] = [net, gross].map(each => Math.round(100 * Number(each))) as [number, number]
    const sign = type === 'NC' ? -1 : 1
    sums.base += sign * base
    sums.tax += sign * (whole - base)
  }
  return sums
}

async function* inOnePiece(bytes: Buffer) {
  yield bytes
}

const fileOf = (planted: readonly Planted[]) =>
  inOnePiece(
    writeSaft({
      month,
      customers: [],
      sales: planted.flatMap(({ filed }) =>
        filed.map(([number, net, tax]): SaftRow => {
          return {
            number,
            atcud: '0',
            status: 'N',
            date: `${month}-10`,
            customer: '1',
            net,
            gross: net + tax,
          }
        }),
      ),
    }),
  )

// biome-ignore lint/suspicious/noExplicitAny: a test states what it expects of it
const linesOf = ({ stdout }: Outcome): any[] =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))

const cents = (decimal: string) => Math.round(100 * Number(decimal))

const short = ({
  record,
  rate_percent,
  exemption_code,
  country,
  currency,
  ...line
}: Record<string, string>) =>
  [
    ...[record, rate_percent ?? '?', exemption_code ?? '-', country ?? '?', currency],
    ...[line.documents_base, line.documents_tax, line.stripe_base, line.stripe_tax],
  ].join(' ')

async function createReport(t: TestContext, url: string) {
  const cli = await createCli(t)
  return (...args: string[]) => cli.run(['report', 'vat', ...args], { env: { DATABASE_URL: url } })
}

for (const engine of engines)
  describe(`fatura report vat on ${engine.name}`, () => {
    it('equals the month’s SAF-T to the cent, with credit notes, two rates, retention and foreign currency', async t => {
      const { store, url } = await openStores(t, engine)
      await plant(store, right)
      const run = await createReport(t, url)
      const outcome = await run('--month', month, '--json')
      assert.deepEqual(linesOf(outcome).map(short), [
        'row 23 - PT eur 250.00 57.50 250.00 57.50',
        'row 23 - ? eur 100.00 23.00 100.00 23.00',
        'row 6 - PT eur 25.00 1.50 25.00 1.50',
        'row 0 M40 ES eur 50.00 0.00 50.00 0.00',
        'total ? - ? eur 425.00 82.00 425.00 82.00',
      ])
      assert.equal(outcome.code, 0)
      assert.equal(outcome.stderr, 'No differences in 8 documents and 6 invoices.\n')
      const total = linesOf(outcome).at(-1)
      const saft = await sumSaft(fileOf(right), () => true)
      assert.deepEqual({ base: cents(total.documents_base), tax: cents(total.documents_tax) }, saft)
    })

    it('names the invoice and document of each difference, and lists unread documents', async t => {
      const { store, url } = await openStores(t, engine)
      await plant(store, wrong)
      const run = await createReport(t, url)
      const outcome = await run('--month', month, '--json')
      assert.equal(outcome.code, 1)
      const lines = linesOf(outcome)
      const found = lines
        .filter(({ record }) => record !== 'row' && record !== 'total')
        .map(
          ({ record, rate_percent, base_difference, tax_difference, invoice_id, document_number, detail }) =>
            [record, invoice_id, document_number, rate_percent, base_difference, tax_difference, detail].join(
              ' | ',
            ),
        )
      assert.deepEqual(found.sort(), expected.toSorted())
      // What is in another currency than the euro, and without a rate, has a row and a total of its own.
      assert.deepEqual(
        lines.map(short).filter(line => / usd /.test(line)),
        [
          'row 23 - ? usd 0.00 0.00 108.70 25.00',
          'total ? - ? usd 0.00 0.00 108.70 25.00',
          'difference 23 - ? usd 0.00 0.00 108.70 25.00',
        ],
      )
      assert.equal(
        unwrapped(outcome.stderr).replaceAll('\n', ' '),
        '13 differences, 1 of rounding, 3 unread in 12 documents and 12 invoices. 1 ignored invoice is left out. ',
      )
      const all = linesOf(await run('--month', month, '--json', '--all'))
      assert.deepEqual(
        all
          .filter(({ record }) => record === 'rounding')
          .map(({ invoice_id, tax_difference }) => [invoice_id, tax_difference]),
        [['in_02', '0.01']],
      )
      const strict = await run('--month', month, '--json', '--tolerance', '0')
      assert.match(unwrapped(strict.stderr).replaceAll('\n', ' '), /^14 differences, 3 unread in /)
    })

    it('prints a table that fits a terminal, and CSV for programs and for Excel', async t => {
      const { store, url } = await openStores(t, engine)
      await plant(store, wrong)
      const run = await createReport(t, url)
      const table = await run('--month', month)
      assertFits(table.stdout + table.stderr)
      assert.match(table.stdout, /^RATE +COUNTRY +DOCUMENTS +TAX +STRIPE +TAX +DIFF +TAX\n23 % +PT +/)
      assert.match(unwrapped(table.stdout), /^difference +in_01 +FT A\/1 +23 % +/m)
      const csv = parse((await run('--month', month, '--format', 'csv')).stdout, { columns: true }) as Record<
        string,
        string
      >[]
      const json = linesOf(await run('--month', month, '--format', 'json'))
      assert.deepEqual(
        csv,
        json.map(line =>
          Object.fromEntries(Object.entries(line).map(([name, value]) => [name, String(value ?? '')])),
        ),
      )
      const excel = (await run('--month', month, '--format', 'csv-pt')).stdout
      assert.match(excel, /^\ufeffrecord;rate_percent;.*\r\nrow;23;;PT;eur;\d+,\d\d;/)
    })

    it('is refused with exit code 2 before the documents are read completely', async t => {
      const { url } = await openStores(t, engine)
      const run = await createReport(t, url)
      const outcome = await run('--month', month)
      assert.equal(outcome.code, 2)
      assert.match(outcome.stderr, /^fatura: The documents were never read completely/)
      const other = await run('--month', '2026-13')
      assert.equal(other.code, 2)
      assert.match(other.stderr, /--month must be a calendar month/)
    })
  })

it('fatura report vat equals the sandbox’s SAF-T of the month to the cent', async t => {
  const rig = await startDocuments(t, engines[0] ?? assert.fail(), {
    documents: { states: 'ordinary' },
    invoices: 150,
    days: 80,
    seed: 4,
    customers: 12,
  })
  const now = rig.account.clock * 1000
  const last = monthOf(Date.parse(`${monthOf(now)}-01`) - 1)
  // Credit notes are dated by the clock: the month that runs has them. Those of a document that no invoice is tied to are not read.
  const isTied = (id: string | null) => rig.account.invoices.get(id ?? '')?.customer != null
  const all = [...rig.documents.documents.values()]
  for (const { id, type } of all) {
    const [about] = rig.documents.relatedTo(id)
    if (type.endsWith('CreditNote') && !isTied(about?.reference ?? null)) rig.documents.change('vanish', id)
  }
  const creditable = all.filter(
    ({ id, status, currency, total, sequence_number, reference }) =>
      isTied(reference) &&
      sequence_number !== null &&
      status !== 'canceled' &&
      currency === 'Euro' &&
      total > 1 &&
      rig.documents.relatedTo(id).length === 0,
  )
  for (const [index, { id }] of creditable.slice(0, 6).entries())
    rig.documents.change('credit', id, index % 2 === 0 ? '1' : '0.37')
  await rig.syncAll()
  const run = await createReport(t, rig.url)
  for (const month of [last, monthOf(now)]) {
    const lines = linesOf(await run('--month', month, '--json'))
    const total = lines.find(({ record, currency }) => record === 'total' && currency === 'eur')
    const unread = lines.filter(({ record }) => record === 'unread')
    // Every document is in euros: one with an unknown rate is named, and its amounts are in a row without a rate.
    for (const { document_number, detail } of unread)
      assert.match(detail ?? '', /^the document: one of its rates is not known/, `${document_number}`)
    const options = { account: null, apiKey: ixKey, base: rig.ix.address, timeoutMs: 60_000 }
    const saft = await sumSaft(await openSaftExport(options, month, () => {}), () => true)
    assert.ok(saft.base > 0 && saft.tax > 0)
    assert.deepEqual({ base: cents(total.documents_base), tax: cents(total.documents_tax) }, saft)
    // Both sides of each pair in euros are equal.
    const pairs = lines.filter(
      ({ record, currency, documents_base, stripe_base, detail }) =>
        record === 'difference' &&
        currency === 'eur' &&
        detail === 'other amounts on both sides' &&
        documents_base !== stripe_base,
    )
    assert.deepEqual(pairs, [])
  }
})
