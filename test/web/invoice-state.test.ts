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
  ['a draft is a draft', { status: 'draft', total_cents: 100, payment: owed }, { kind: 'draft' }],
  [
    'a cancelled invoice is cancelled, whatever was credited',
    { status: 'void', total_cents: 100, payment: { ...owed, credited_cents: 100 } },
    { kind: 'void' },
  ],
  ['a paid one is paid', { status: 'paid', total_cents: 100, payment: owed }, { kind: 'paid' }],
  [
    'a paid one that was credited whole is credited',
    { status: 'paid', total_cents: 100, payment: { ...owed, credited_cents: 100 } },
    { kind: 'credited' },
  ],
  [
    'one that was credited in part is still to be paid',
    { ...open, payment: { ...owed, credited_cents: 99 } },
    { kind: 'toPay', due: '2026-11-20' },
  ],
  [
    'nothing is asked for of an open one that was credited whole',
    { ...open, payment: { ...owed, credited_cents: 100 } },
    { kind: 'credited' },
  ],
  [
    'one that is due today is not overdue',
    { ...open, payment: { ...owed, due_date: today } },
    { kind: 'toPay', due: today },
  ],
  [
    'one that was due yesterday is a day overdue',
    { ...open, payment: { ...owed, due_date: '2026-11-18' } },
    { kind: 'overdue', days: 1 },
  ],
  [
    'one without a due day is to be paid',
    { ...open, payment: { ...owed, due_date: null } },
    { kind: 'toPay', due: null },
  ],
  [
    'an open one of which nothing remains asks for nothing',
    { ...open, total_cents: -100, payment: { ...owed, remaining_cents: 0 } },
    { kind: 'nothingToPay' },
  ],
  ['one of which the payment is not known is to be paid', open, { kind: 'toPay', due: null }],
  [
    'one that is written off says so',
    { status: 'uncollectible', total_cents: 100, payment: owed },
    { kind: 'uncollectible' },
  ],
]

describe('the state of an invoice', () => {
  for (const [name, invoice, state] of states)
    test(name, () => assert.deepEqual(stateOf(invoice, today), state))
})

test('what remains to be paid is told where it is not the total', () => {
  const remains = (remaining_cents: number, status: 'open' | 'paid' = 'open') =>
    remainderOf({ status, total_cents: 100, payment: { ...owed, remaining_cents } })
  assert.deepEqual(
    [remains(40), remains(100), remains(0), remains(40, 'paid'), remainderOf(open)],
    [40, null, null, null, null],
  )
})
