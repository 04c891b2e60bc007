/** The payment of an imported invoice: what is told of it, what follows, and what is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inFavourCents } from '../../../src/domain/balance.ts'
import type { InvoiceStatus } from '../../../src/domain/invoice.ts'
import { completePaymentFacts, type PaymentFacts, toPayCents } from '../../../src/domain/payment.ts'
import { exampleDocument } from '../../../src/http/openapi/examples.ts'
import { readRecord } from '../../../src/sync/import/check-record.ts'
import { makeInvoice } from '../../support/worlds/records.ts'

test('missing payment facts of an invoice are derived from its status and total', () => {
  type Told = Partial<PaymentFacts>
  const table: [InvoiceStatus, total: number, Told, due: number, paid: number, remaining: number][] = [
    ['paid', 100, {}, 100, 100, 0],
    ['paid', -100, {}, 0, 0, 0],
    ['open', 100, {}, 100, 0, 100],
    ['open', -100, {}, 0, 0, 0],
    ['open', 0, {}, 0, 0, 0],
    ['draft', 100, {}, 100, 0, 100],
    ['uncollectible', 100, {}, 100, 0, 100],
    ['void', 100, {}, 100, 0, 0],
    ['open', 100, { amount_paid_cents: 30 }, 100, 30, 70],
    ['open', 100, { starting_balance_cents: -40 }, 60, 0, 60],
    ['open', 100, { starting_balance_cents: -400 }, 0, 0, 0],
    ['open', 100, { starting_balance_cents: 40 }, 140, 0, 140],
    ['open', 100, { pre_payment_credit_cents: 25 }, 75, 0, 75],
    ['open', 100, { post_payment_credit_cents: 25 }, 100, 0, 100],
    ['paid', 100, { starting_balance_cents: -40 }, 60, 60, 0],
    ['open', 100, { amount_due_cents: 90, amount_paid_cents: 10 }, 90, 10, 80],
    ['open', 100, { amount_due_cents: 90, amount_paid_cents: 10, amount_remaining_cents: 80 }, 90, 10, 80],
  ]
  for (const [status, total_cents, told, due, paid, remaining] of table) {
    const facts = completePaymentFacts({ status, total_cents }, told)
    const { amount_due_cents, amount_paid_cents, amount_remaining_cents } = facts
    const found = [amount_due_cents, amount_paid_cents, amount_remaining_cents]
    assert.deepEqual(found, [due, paid, remaining], JSON.stringify([status, total_cents, told]))
  }
})

test('only open invoices have an amount to pay, and negative totals become credit', () => {
  const table: [InvoiceStatus, total: number, told: Partial<PaymentFacts>, toPay: number, credit: number][] =
    [
      ['open', 100, {}, 100, 0],
      ['open', 0, {}, 0, 0],
      ['open', -100, {}, 0, 100],
      ['open', -100, { starting_balance_cents: 30 }, 0, 70],
      ['open', -100, { starting_balance_cents: 300 }, 200, 0],
      ['open', -100, { starting_balance_cents: -30 }, 0, 100],
      ['open', 100, { starting_balance_cents: -400 }, 0, 0],
      ['open', 100, { amount_due_cents: 100, amount_paid_cents: 130 }, 0, 30],
      ['draft', 100, {}, 0, 0],
      ['draft', -100, {}, 0, 0],
      ['paid', -100, {}, 0, 0],
      ['void', 100, { amount_remaining_cents: 100 }, 0, 0],
      ['uncollectible', 100, {}, 0, 0],
    ]
  for (const [status, total_cents, told, toPay, credit] of table) {
    const invoice = { status, total_cents, currency: 'eur' }
    const facts = completePaymentFacts(invoice, told)
    const found = [toPayCents(invoice, facts), inFavourCents(invoice, facts, null)]
    assert.deepEqual(found, [toPay, credit], JSON.stringify([status, total_cents, told]))
  }
})

test('a certified credit note counts as credit unless the payment platform already subtracted it', () => {
  const note = {
    ...{ id: 2, type: 'CreditNote', number: null, date: null, status: 'final' },
    ...{ gross_cents: 1_100, total_cents: 1_100, in_invoice_currency: null },
  }
  const document = { ...exampleDocument, currency: 'eur', related: [note] }
  const table: [status: InvoiceStatus, currency: string, credited: number, status: string, credit: number][] =
    [
      ['open', 'eur', 0, 'final', 1_100],
      ['open', 'eur', 400, 'final', 700],
      ['open', 'eur', 1_100, 'final', 0],
      ['open', 'eur', 5_000, 'final', 0],
      ['open', 'eur', 0, 'canceled', 0],
      ['open', 'usd', 0, 'final', 0],
      ['paid', 'eur', 0, 'final', 0],
    ]
  for (const [status, currency, pre_payment_credit_cents, noteStatus, credit] of table) {
    const invoice = { status, total_cents: 12_300, currency }
    const facts = completePaymentFacts(invoice, { pre_payment_credit_cents })
    const certified = { ...document, related: [{ ...note, status: noteStatus }] }
    assert.equal(inFavourCents(invoice, facts, certified), credit)
  }
})

test('given payment facts are read and completed', () => {
  const invoice = makeInvoice({ status: 'open', total_cents: 12_300 })
  const payments = [{ id: 'pi_1', amount_cents: 2_300, paid_at: null }]
  const taxes = [{ rate_percent: 23, base_cents: 10_000, tax_cents: 2_300 }]
  const told = { due_date: '2026-04-01', amount_paid_cents: 2_300, payments, taxes }
  const read = readRecord({ ...invoice, payment: told })
  assert.ok('record' in read, JSON.stringify(read))
  assert.deepEqual(read.record.payment, {
    ...completePaymentFacts(invoice),
    ...{ due_date: '2026-04-01', amount_paid_cents: 2_300, amount_remaining_cents: 10_000, payments },
    taxes: taxes.map(tax => ({ ...tax, reason: null })),
  })
  for (const nothing of [undefined, null]) {
    const without = readRecord({ ...invoice, payment: nothing })
    assert.ok('record' in without)
    assert.equal(without.record.payment, undefined)
  }
  const none = readRecord({ ...invoice, payment: {} })
  assert.deepEqual('record' in none && none.record.payment, completePaymentFacts(invoice))
})

test('an invalid payment is refused with the name of its field', () => {
  const payment = { id: 'pi_1', amount_cents: 1, paid_at: null }
  const table: [payment: unknown, field: string, reason: RegExp][] = [
    ['paid', 'payment', /^must be a JSON object, or left out/],
    [[], 'payment', /^must be a JSON object, or left out/],
    [{ due_date: '2026-02-30' }, 'payment.due_date', /^must be a day, like 2026-04-01, or null/],
    [{ amount_due_cents: null }, 'payment.amount_due_cents', /^must be a whole number/],
    [{ amount_paid_cents: 0.5 }, 'payment.amount_paid_cents', /^must be a whole number/],
    [{ pre_payment_credit_cents: -1 }, 'payment.pre_payment_credit_cents', /0 or more/],
    [{ paid: 1 }, 'payment.paid', /^is not a field of the contract$/],
    [{ taxes: {} }, 'payment.taxes', /^must be an array of taxes/],
    [{ taxes: [{ rate_percent: 23 }] }, 'payment.taxes[0].tax_cents', /it is missing/],
    [{ payments: [1] }, 'payment.payments[0]', /^must be a JSON object/],
    [{ payments: [{ ...payment, paid_at: '2026' }] }, 'payment.payments[0].paid_at', /^must be a moment/],
    [{ payments: [payment, payment] }, 'payment.payments', /^must name each payment once/],
    [{ amount_remaining_cents: 1 }, 'payment.amount_remaining_cents', /found 12300 − 0 and 1\)$/],
  ]
  for (const [told, field, reason] of table) {
    const read = readRecord({ ...makeInvoice({ status: 'open', total_cents: 12_300 }), payment: told })
    assert.ok('problems' in read, JSON.stringify(told))
    const [problem] = read.problems
    assert.equal(problem?.field, field)
    assert.match(problem?.reason ?? '', reason)
  }
  const kept = readRecord({
    ...makeInvoice({ status: 'void', total_cents: 100 }),
    payment: { amount_due_cents: 100, amount_remaining_cents: 100 },
  })
  assert.ok('record' in kept, 'Stripe leaves the amount of a void invoice as it was')
})
