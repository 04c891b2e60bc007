/** The one state that the page shows of an invoice. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PaymentBrief } from '../../src/sdk/client.ts'
import { type InvoiceState, remainderOf, stateOf } from '../../src/web/invoice-state.ts'

const today = '2026-11-19'
const owed: PaymentBrief = {
  due_date: '2026-11-20',
  paid_cents: 0,
  remaining_cents: 100,
  overdue: false,
  payable: true,
  credited_cents: 0,
}
const open = { status: 'open', total_cents: 100 } as const

const states: [name: string, invoice: Parameters<typeof stateOf>[0], state: InvoiceState][] = [
  ['is draft for a draft', { status: 'draft', total_cents: 100, payment: owed }, { kind: 'draft' }],
  [
    'is cancelled for a void invoice, whatever was credited',
    { status: 'void', total_cents: 100, payment: { ...owed, credited_cents: 100 } },
    { kind: 'void' },
  ],
  ['is paid for a paid invoice', { status: 'paid', total_cents: 100, payment: owed }, { kind: 'paid' }],
  [
    'is credited for a paid invoice that was credited in full',
    { status: 'paid', total_cents: 100, payment: { ...owed, credited_cents: 100 } },
    { kind: 'credited' },
  ],
  [
    'is to be paid for an invoice that was credited in part',
    { ...open, payment: { ...owed, credited_cents: 99 } },
    { kind: 'toPay', due: '2026-11-20' },
  ],
  [
    'is credited for an open invoice that was credited in full',
    { ...open, payment: { ...owed, credited_cents: 100 } },
    { kind: 'credited' },
  ],
  [
    'is not overdue on the due day',
    { ...open, payment: { ...owed, due_date: today } },
    { kind: 'toPay', due: today },
  ],
  [
    'is one day overdue on the day after the due day',
    { ...open, payment: { ...owed, due_date: '2026-11-18' } },
    { kind: 'overdue', days: 1 },
  ],
  [
    'is to be paid without a due day',
    { ...open, payment: { ...owed, due_date: null } },
    { kind: 'toPay', due: null },
  ],
  [
    'is nothing to pay for an open invoice without a remaining amount',
    { ...open, total_cents: -100, payment: { ...owed, remaining_cents: 0 } },
    { kind: 'nothingToPay' },
  ],
  ['is to be paid when the payment is unknown', open, { kind: 'toPay', due: null }],
  [
    'is uncollectible for an uncollectible invoice',
    { status: 'uncollectible', total_cents: 100, payment: owed },
    { kind: 'uncollectible' },
  ],
]

describe('the shown state of an invoice', () => {
  for (const [name, invoice, state] of states)
    test(name, () => assert.deepEqual(stateOf(invoice, today), state))
})

test('the remaining amount is shown only when it differs from the total', () => {
  const remains = (remaining_cents: number, status: 'open' | 'paid' = 'open') =>
    remainderOf({ status, total_cents: 100, payment: { ...owed, remaining_cents } })
  assert.deepEqual(
    [remains(40), remains(100), remains(0), remains(40, 'paid'), remainderOf(open)],
    [40, null, null, null, null],
  )
})
