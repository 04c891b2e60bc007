/** Every kind of difference that the amounts, taxes, days and credit notes of a pair decide: a yes, and its nearest no. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { addWorkingDays } from '../../../src/domain/calendar.ts'
import { type Document, noClaim, type RelatedDocument, type Relations } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import { defaultRules } from '../../../src/domain/link/link.ts'
import { completePaymentFacts, type PaymentFacts, type TaxByRate } from '../../../src/domain/payment.ts'
import {
  type DifferenceKind,
  defaultLimits,
  differenceWords,
  type Limits,
} from '../../../src/operations/reconcile/difference-kinds.ts'
import { findDifferences } from '../../../src/operations/reconcile/reconcile.ts'
import { stripeIdentity } from '../../../src/sources/stripe/source-identity.ts'
import { makeInvoice } from '../../support/worlds/records.ts'

/** A paid invoice of 100 and 23 % with its settled document, but for what a case says. */
interface Case {
  it: string
  invoice?: Partial<Invoice>
  facts?: Partial<PaymentFacts>
  document?: Partial<Document>
  /** Documents about it; null when they were not read. */
  related?: Partial<RelatedDocument>[] | null
  /** The tax ID of the document's client. */
  taxId?: string | null
  limits?: Partial<Limits>
  finds: DifferenceKind[]
  detail?: RegExp
}

const tax = (rate_percent: number | null, tax_cents: number, reason = 'standard_rated'): TaxByRate => ({
  ...{ rate_percent, tax_cents, reason },
  base_cents: null,
})
const rate = (rate: string | null, tax: string) => ({ rate, base: '1', tax })
const note: Partial<RelatedDocument> = { type: 'CreditNote', status: 'final', total: '23.00' }
const open: Partial<Invoice> = { status: 'open' }
const final: Partial<Document> = { status: 'final' }
const whole: Partial<RelatedDocument> = { ...note, total: '123.00' }
const untaxed: Case = {
  it: '',
  invoice: { tax_cents: 0, total_cents: 10_000 },
  document: { before_taxes: '100', taxes_total: '0', total: '100' },
  finds: [],
}
const exempt = (reason: string, exemption_code: string) => ({
  invoice: untaxed.invoice as Partial<Invoice>,
  document: { ...untaxed.document, exemption_code },
  facts: { taxes: [tax(0, 0, reason)] },
})
const dollars = (total: string): Partial<Document> => ({
  ...{ total: '113.16', before_taxes: '92.00', taxes_total: '21.16' },
  multicurrency: { rate: '1.087', currency: 'usd', total },
})
const paidOn = (day: string): Partial<PaymentFacts> => ({
  payments: [{ id: 'pi_1', amount_cents: 12_300, paid_at: `${day}T12:00:00.000Z` }],
})

const cases: Case[] = [
  { it: 'finds no difference when both agree', finds: [] },
  // Totals and taxes.
  {
    it: 'finds a different tax with the same total',
    document: { before_taxes: '116.04', taxes_total: '6.96' },
    finds: ['tax_differs'],
    detail: /^23\.00 eur of tax at Stripe, 6\.96 Euro on document 5 of 2026-03-02$/,
  },
  {
    it: 'finds no difference when the document has no tax amount',
    document: { before_taxes: null, taxes_total: null },
    finds: [],
  },
  {
    it: 'finds only the total when the total and the tax differ',
    document: { total: '124', before_taxes: '101', taxes_total: '23' },
    finds: ['total_differs'],
  },
  {
    it: 'finds a tax at another rate with the same sum',
    facts: { taxes: [tax(23, 2_100), tax(6, 200)] },
    document: { taxes: [rate('23', '20'), rate('6', '3')] },
    finds: ['tax_differs'],
    detail: /^at 23 %, 21\.00 eur of tax at Stripe, 20 Euro on document 5 of 2026-03-02$/,
  },
  {
    it: 'finds a tax at a rate that Stripe does not have',
    facts: { taxes: [tax(23, 2_300)] },
    document: { taxes: [rate('13', '23')] },
    finds: ['tax_differs'],
  },
  {
    it: 'does not compare taxes by rate when one rate is unknown',
    facts: { taxes: [tax(23, 2_100), tax(null, 200)] },
    document: { taxes: [rate('23', '20'), rate('6', '3')] },
    finds: [],
  },
  {
    it: 'finds no difference when two rates on one amount are one rate on the document',
    facts: {
      taxes: [
        { ...tax(15, 1_500), base_cents: 10_000 },
        { ...tax(8, 800), base_cents: 10_000 },
      ],
    },
    document: { taxes: [rate('23', '23')] },
    finds: [],
  },
  {
    it: 'finds no difference when one rate has two reasons',
    facts: { taxes: [tax(23, 1_300), tax(23, 1_000, 'other')] },
    document: { taxes: [rate('23.0', '23')] },
    finds: [],
  },
  {
    it: 'counts one cent of tax as rounding',
    document: { before_taxes: '99.99', taxes_total: '23.01' },
    finds: ['rounding'],
  },
  {
    it: 'counts one cent in the total as rounding',
    document: { total: '123.01', before_taxes: '100', taxes_total: '23.01' },
    finds: ['rounding'],
  },
  {
    it: 'finds a total that differs by two cents at one rate',
    document: { total: '123.02', before_taxes: '100.01', taxes_total: '23.01' },
    finds: ['total_differs'],
  },
  {
    it: 'counts two cents at two rates as rounding',
    facts: { taxes: [tax(23, 2_000), tax(6, 300)] },
    document: {
      ...{ total: '123.02', before_taxes: '100', taxes_total: '23.02' },
      taxes: [rate('23', '20.01'), rate('6', '3.01')],
    },
    finds: ['rounding'],
  },
  {
    it: 'finds a difference of one cent with --tolerance 0',
    document: { total: '123.01', before_taxes: '100.01' },
    limits: { tolerance: 0 },
    finds: ['total_differs'],
  },
  {
    it: 'finds no difference for a dollar invoice with a document in euros',
    invoice: { currency: 'usd' },
    document: dollars('123.00'),
    finds: [],
  },
  {
    it: 'finds a different tax for a dollar invoice',
    invoice: { currency: 'usd', tax_cents: 700 },
    document: dollars('123.00'),
    finds: ['tax_differs'],
  },
  {
    it: 'finds no difference for a dollar invoice with taxes by rate in euros',
    invoice: { currency: 'usd' },
    facts: { taxes: [tax(23, 2_000), tax(6, 300)] },
    document: { ...dollars('123.00'), taxes: [rate('23', '18.40'), rate('6', '2.76')] },
    finds: [],
  },
  {
    it: 'finds a tax at another rate for a dollar invoice with a document in euros',
    invoice: { currency: 'usd' },
    facts: { taxes: [tax(23, 2_000), tax(6, 300)] },
    document: { ...dollars('123.00'), taxes: [rate('23', '17.40'), rate('6', '3.76')] },
    finds: ['tax_differs'],
    detail: /^at 23 %, 20\.00 usd of tax at Stripe, 17\.40 Euro on document 5 of 2026-03-02$/,
  },
  {
    it: 'finds no difference for a yen invoice, where a cent is more than one yen',
    invoice: { currency: 'jpy', tax_cents: 2_300, total_cents: 12_300 },
    document: {
      ...{ total: '75.03', before_taxes: '61.00', taxes_total: '14.03' },
      multicurrency: { rate: '163.93', currency: 'jpy', total: '12300' },
    },
    finds: [],
  },
  {
    it: 'finds an unknown currency instead of comparing taxes of two currencies',
    invoice: { currency: 'usd', tax_cents: 700 },
    document: { total: '113.16', before_taxes: '92.00', taxes_total: '21.16', multicurrency: null },
    finds: ['currency_unknown'],
  },
  {
    it: 'finds no difference for retained tax, which is not charged',
    document: { total: '98', retention: '25' },
    finds: [],
  },
  // Credit notes.
  {
    it: 'finds no difference for a dollar credit note with a document in euros',
    invoice: { currency: 'usd' },
    facts: { post_payment_credit_cents: 2_500 },
    document: dollars('123.00'),
    related: [{ ...note, total: '23.00', multicurrency: { rate: '1.087', currency: 'usd', total: '25.00' } }],
    finds: [],
  },
  {
    it: 'finds a dollar credit note with another amount at Stripe',
    invoice: { currency: 'usd' },
    facts: { post_payment_credit_cents: 2_300 },
    document: dollars('123.00'),
    related: [{ ...note, total: '23.00', multicurrency: { rate: '1.087', currency: 'usd', total: '25.00' } }],
    finds: ['credit_note_unmatched'],
  },
  {
    it: 'finds a credit note that only Stripe has',
    facts: { post_payment_credit_cents: 2_300 },
    finds: ['credit_note_missing'],
    detail: /^credit notes of 23\.00 eur at Stripe, of 0\.00 in force about document 5 of 2026-03-02$/,
  },
  {
    it: 'finds a credit note before the payment whose document is canceled',
    facts: { pre_payment_credit_cents: 2_300 },
    related: [{ ...note, status: 'canceled' }],
    finds: ['credit_note_missing'],
  },
  {
    it: 'finds no difference for equal credit notes',
    facts: { pre_payment_credit_cents: 1_300, post_payment_credit_cents: 1_000 },
    related: [note],
    finds: [],
  },
  {
    it: 'finds no difference for credit notes that were not read',
    facts: { post_payment_credit_cents: 2_300 },
    related: null,
    finds: [],
  },
  { it: 'finds a credit note that only the document has', related: [note], finds: ['credit_note_unmatched'] },
  { it: 'finds no difference for a receipt', related: [{ ...note, type: 'Receipt' }], finds: [] },
  {
    it: 'counts a cent of a credit note as rounding',
    facts: { post_payment_credit_cents: 2_301 },
    related: [note],
    finds: ['rounding'],
  },
  // Void, open, and nothing to certify.
  { it: 'finds a document of a void invoice', invoice: { status: 'void' }, finds: ['document_on_void'] },
  {
    it: 'finds a void invoice whose document is credited only in part',
    invoice: { status: 'void' },
    related: [note],
    finds: ['document_on_void'],
  },
  {
    it: 'finds no difference for a void invoice with a fully credited document',
    invoice: { status: 'void' },
    related: [whole],
    finds: [],
  },
  {
    it: 'finds a void invoice whose credit note is canceled',
    invoice: { status: 'void' },
    related: [{ ...whole, status: 'canceled' }],
    finds: ['document_on_void'],
  },
  { it: 'finds an open invoice with a settled document', invoice: open, finds: ['open_settled'] },
  {
    it: 'finds an open invoice with an invoice-receipt',
    invoice: open,
    document: { type: 'InvoiceReceipt', status: 'final' },
    finds: ['open_settled'],
  },
  {
    it: 'finds an open invoice whose document is printed as an invoice-receipt',
    invoice: open,
    document: { status: 'final', series_number: 'FR A/1' },
    finds: ['open_settled'],
  },
  {
    it: 'finds an open invoice whose document is credited in full',
    invoice: open,
    related: [whole],
    finds: ['open_credited'],
  },
  {
    it: 'finds an open invoice credited in full at InvoiceXpress and in part at Stripe',
    invoice: open,
    facts: { pre_payment_credit_cents: 2_300, amount_remaining_cents: 10_000 },
    document: final,
    related: [whole],
    finds: ['open_credited'],
    detail: /^open with 100\.00 eur to pay, but document 5 of 2026-03-02 is credited in full$/,
  },
  {
    it: 'finds an open invoice credited in full at InvoiceXpress, with nothing to pay',
    invoice: open,
    facts: { amount_paid_cents: 12_300, amount_remaining_cents: 0 },
    document: final,
    related: [whole],
    finds: ['credit_note_unmatched'],
  },
  {
    it: 'finds no difference for an open invoice that both credit in full',
    invoice: open,
    facts: { pre_payment_credit_cents: 12_300, starting_balance_cents: 500, amount_remaining_cents: 500 },
    document: final,
    related: [whole],
    finds: [],
  },
  {
    it: 'finds no difference for an open invoice with a final document',
    invoice: open,
    document: final,
    finds: [],
  },
  {
    it: 'finds no difference for a settled document of an open invoice with nothing to pay',
    invoice: open,
    facts: { amount_remaining_cents: 0 },
    finds: [],
  },
  {
    it: 'finds no difference for a settled document when only the retained tax is open',
    invoice: open,
    facts: { amount_paid_cents: 9_800, amount_remaining_cents: 2_500 },
    document: { total: '98', retention: '25' },
    finds: [],
  },
  {
    it: 'finds a settled document when more than the retained tax is open',
    invoice: open,
    facts: { amount_paid_cents: 9_000, amount_remaining_cents: 3_300 },
    document: { total: '98', retention: '25' },
    finds: ['open_settled'],
  },
  {
    it: 'finds no difference for a dollar invoice when only the retained tax is open',
    invoice: { ...open, currency: 'usd' },
    facts: { amount_paid_cents: 9_800, amount_remaining_cents: 2_500 },
    document: { ...dollars('123.00'), total: '90.16', retention: '25' },
    finds: [],
  },
  {
    it: 'finds an open invoice without a document in force',
    invoice: open,
    document: { status: 'canceled' },
    finds: ['open_without_document'],
  },
  {
    it: 'finds a paid invoice without a document in force',
    document: { status: 'canceled' },
    finds: ['paid_without_document'],
  },
  {
    it: 'finds no difference for a paid invoice of zero without a document',
    invoice: { total_cents: 0 },
    document: { status: 'canceled' },
    finds: [],
  },
  {
    it: 'finds no difference for a negative invoice without a document',
    invoice: { total_cents: -500 },
    document: { status: 'canceled' },
    finds: [],
  },
  // Days, by Lisbon's clocks.
  {
    it: 'finds a document of the next month',
    invoice: { issued_at: '2026-03-31T22:30:00.000Z' },
    document: { date: '2026-04-01' },
    finds: ['wrong_month'],
    detail: /^issued 2026-03-31, and document 5 is of 2026-04-01$/,
  },
  {
    it: 'finds no difference for a document of the same month in Lisbon’s time',
    invoice: { issued_at: '2026-03-31T23:30:00.000Z' },
    document: { date: '2026-04-01' },
    finds: [],
  },
  {
    it: 'finds a document six working days after the payment',
    facts: paidOn('2026-03-06'),
    document: { date: '2026-03-16' },
    finds: ['late'],
    detail: /^paid 2026-03-06, so due by 2026-03-13, and document 5 is of 2026-03-16$/,
  },
  {
    it: 'finds no difference for a document five working days after the payment',
    facts: paidOn('2026-03-06'),
    document: { date: '2026-03-13' },
    finds: [],
  },
  // Limits, tax IDs, exemptions.
  {
    it: 'finds a simplified invoice above the limit',
    document: { type: 'SimplifiedInvoice' },
    finds: ['simplified_over_limit'],
    detail: /^document 5 of 2026-03-02 is a simplified invoice, and charges 123 EUR, above 100$/,
  },
  {
    it: 'finds no difference for a simplified invoice at the limit of retail',
    document: { type: 'SimplifiedInvoice' },
    limits: { simplifiedLimit: 123 },
    finds: [],
  },
  { it: 'finds a different tax ID', taxId: '987654321', finds: ['tax_id_differs'] },
  { it: 'finds a tax ID that only Stripe has', taxId: '999999990', finds: ['tax_id_one_side'] },
  {
    it: 'finds a tax ID that only the document has',
    invoice: { customer_tax_id: null },
    finds: ['tax_id_one_side'],
  },
  {
    it: 'finds no difference for a consumer without a tax ID',
    invoice: { customer_tax_id: null },
    taxId: '999999990',
    finds: [],
  },
  {
    it: 'finds a plain exemption where Stripe has a reverse charge',
    ...exempt('reverse_charge', 'M07'),
    finds: ['exemption_differs'],
    detail: /^no tax as reverse_charge at Stripe, as M07 on document 5 of 2026-03-02$/,
  },
  {
    it: 'finds a reverse charge where Stripe has an exempt product',
    ...exempt('product_exempt', 'M40'),
    finds: ['exemption_differs'],
  },
  {
    it: 'finds no difference for the same reason on both sides',
    ...exempt('reverse_charge', 'M40'),
    finds: [],
  },
  { it: 'finds no difference for reasons that may be equal', ...exempt('reverse_charge', 'M99'), finds: [] },
  {
    it: 'finds no difference for a rate of zero with any exemption code',
    ...exempt('zero_rated', 'M07'),
    finds: [],
  },
]

function find({ invoice: own, facts, document: theirs, related = [], taxId = 'PT123456789', limits }: Case) {
  const document: Document = {
    ...{ id: 5, type: 'Invoice', status: 'settled', reference: 'in_1', number: '5/A', date: '2026-03-02' },
    ...{ total: '123.00', currency: 'Euro', before_taxes: '100', taxes_total: '23', client_id: 1 },
    ...theirs,
  }
  const issued_at = theirs?.date?.startsWith('2026-03') ? `${theirs.date}T10:00:00.000Z` : undefined
  const invoice = makeInvoice({
    ...{ id: 'in_1', ix_sync_state: 'synced', ix_id: 5, ix_status: document.status },
    ...(issued_at && { issued_at }),
    ...own,
  })
  const documents = related?.map(
    (each, place): RelatedDocument => ({
      ...{ id: 50 + place, type: 'CreditNote', status: 'final', date: '2026-03-09' },
      ...{ total: '0', currency: 'Euro' },
      ...each,
    }),
  )
  const relations: Relations | null = documents === undefined ? null : { has_qr: false, documents }
  const known = { id: 5, document, misses: 0, observed_stamp: 1, client_tax_id: null, relations }
  const linked = {
    ...{ customer_id: invoice.customer_id, id: invoice.id, summary: JSON.stringify(invoice) },
    ...{ payment: completePaymentFacts(invoice, facts), observed_stamp: 1, claim: noClaim },
    ...{ document: known, client_tax_id: taxId },
  }
  const bounds = { ...defaultLimits, ...limits }
  return findDifferences(linked, [known], defaultRules, stripeIdentity, Date.now(), [], bounds)
}

describe('fatura reconcile on one invoice and its document', () => {
  for (const each of cases)
    it(each.it, () => {
      const found = find(each)
      assert.deepEqual(
        found.map(({ kind }) => kind),
        each.finds,
      )
      if (each.detail) assert.match(found[0]?.detail ?? '', each.detail)
    })
})

it('working days are counted from Monday to Friday', () => {
  const days = [
    ['2026-03-02', '2026-03-09'],
    ['2026-03-06', '2026-03-13'],
    ['2026-03-07', '2026-03-13'],
    ['2026-03-08', '2026-03-13'],
  ] as const
  for (const [day, fifth] of days) assert.equal(addWorkingDays(day, 5), fifth, day)
})

/** Kinds whose lines the docs show. */
const shownKinds = [
  ...([
    'open_settled',
    'open_credited',
    'tax_differs',
    'rounding',
    'credit_note_missing',
    'credit_note_unmatched',
  ] as const),
  ...(['wrong_month', 'late', 'simplified_over_limit', 'exemption_differs', 'tax_id_one_side'] as const),
]

it('docs/linking.md shows one exact output line for each kind of difference', async () => {
  const page = await readFile(new URL('../../../docs/linking.md', import.meta.url), 'utf8')
  const lines = shownKinds.map(kind => {
    const first = cases.find(({ finds }) => finds[0] === kind) ?? assert.fail(kind)
    return `${kind.padEnd(23)}${find(first)[0]?.detail}\n`
  })
  assert.ok(page.includes(lines.join('')), lines.join(''))
})

it('docs/linking.md lists every kind of difference, with its order and words', async () => {
  const page = await readFile(new URL('../../../docs/linking.md', import.meta.url), 'utf8')
  const rows = Object.entries(differenceWords).map(
    ([kind, { meaning, remedy }]) => `| \`${kind}\` | ${meaning} | ${remedy} |\n`,
  )
  assert.ok(page.includes(rows.join('')), rows.join(''))
})
