/** What the page says that a customer owes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CustomerBalance } from '../../src/sdk/client.ts'
import { owedOf } from '../../src/web/owed.ts'

type Open = CustomerBalance['invoices'][number]

const invoice = (id: string, facts: Partial<Open>): Open => ({
  ...{ id, number: id, issued_at: '2026-10-01T00:00:00.000Z', currency: 'eur', document_number: null },
  ...{ total_cents: 100, paid_cents: 0, remaining_cents: 100, credit_cents: 0 },
  ...{ due_date: null, days_overdue: 0, can_be_paid: true, ...facts },
})

function balance(
  invoices: Open[],
  sums: Partial<CustomerBalance['currencies'][number]> = {},
): CustomerBalance {
  const remaining_cents = invoices.reduce((sum, each) => sum + each.remaining_cents, 0)
  const credit_cents = invoices.reduce((sum, each) => sum + each.credit_cents, 0)
  const count = invoices.filter(each => each.remaining_cents > 0).length
  return {
    day: '2026-11-19',
    invoices,
    more: 0,
    currencies: [
      {
        ...{ currency: 'eur', remaining_cents, credit_cents, count },
        ...{ overdue_cents: 0, overdue_count: 0, overdue_since: null, credit_count: 0 },
        aging: {} as CustomerBalance['currencies'][number]['aging'],
        ...sums,
      },
    ],
  }
}

test('several open invoices are shown as one debt with the next due day', () => {
  const [owed] = owedOf(balance([invoice('a', { due_date: '2026-11-25' }), invoice('b', {})]))
  assert.deepEqual([owed?.cents, owed?.count, owed?.daysOverdue, owed?.nextDue], [200, 2, 0, '2026-11-25'])
})

test('the days overdue are those of the oldest overdue invoice', () => {
  const overdue = [
    invoice('a', { due_date: '2026-11-09', days_overdue: 10 }),
    invoice('b', { due_date: '2026-11-18', days_overdue: 1 }),
  ]
  const [owed] = owedOf(balance(overdue, { overdue_since: '2026-11-09' }))
  assert.deepEqual([owed?.daysOverdue, owed?.nextDue], [10, null])
})

test('a fully credited invoice is neither debt nor credit', () => {
  const credited = invoice('a', { credit_cents: 100, due_date: '2026-01-01', days_overdue: 300 })
  const rest = invoice('b', { remaining_cents: 50 })
  const [owed] = owedOf(balance([credited, rest], { overdue_since: '2026-01-01' }))
  assert.deepEqual(
    [owed?.cents, owed?.creditCents, owed?.count, owed?.daysOverdue, owed?.invoices.map(({ id }) => id)],
    [50, 0, 1, 0, ['b']],
  )
})

test('credit is shown beside the debt, which is never negative', () => {
  const inFavour = invoice('a', { total_cents: -1_121, remaining_cents: 0, credit_cents: 1_121 })
  const [owed] = owedOf(balance([inFavour, invoice('b', {})]))
  assert.deepEqual([owed?.cents, owed?.creditCents, owed?.count], [100, 1_121, 1])
  const [alone] = owedOf(balance([inFavour]))
  assert.deepEqual([alone?.cents, alone?.creditCents, alone?.count], [0, 1_121, 0])
})

test('a partly credited invoice stays in the debt with its whole amount', () => {
  const [owed] = owedOf(balance([invoice('a', { credit_cents: 30 })]))
  assert.deepEqual([owed?.cents, owed?.creditCents], [100, 30])
})
