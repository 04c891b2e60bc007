/** The whole of each decision, the words of a change, and what of an invoice is compared with what was stored. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noClaim } from '../../src/domain/document.ts'
import { completePaymentFacts, type PaymentFacts, type TaxByRate } from '../../src/domain/payment.ts'
import { completeRecord, nothingUnread } from '../../src/sources/platform-invoice.ts'
import { decide, describeChange, isDifferent, type PriorInvoice } from '../../src/sync/invoices/decide.ts'
import { isRefusedKind, noId } from '../../src/sync/set-aside.ts'
import { answer, deleted, type Fields, gone, stored, told } from '../support/worlds/answers.ts'

const key = { customer_id: 'cus_a', id: 'in_1' }

describe('the decision about an invoice', () => {
  it('names no customer when the answer has none', () => {
    const why = 'it has no customer'
    const refused = { action: 'refuse', reason: 'no_customer', key: null, isStored: false, why }
    assert.deepEqual(decide(answer({ customer_id: null }), []), refused)
  })

  it('gives the reason when the invoice is refused', () => {
    const why = 'none of ours: preview'
    assert.deepEqual(decide(answer({ found: { refusal: 'preview' } }), []), {
      ...{ action: 'refuse', reason: 'preview', key, isStored: false, why },
    })
  })

  it('gives the reason when an issued invoice no longer exists', () => {
    const why = 'not found, though it is paid: only a draft can be deleted'
    assert.deepEqual(decide(gone(), [stored({ status: 'paid' })]), {
      ...{ action: 'refuse', reason: 'missing', key, isStored: true, why },
    })
  })

  it('is a deletion when the missing invoice is already deleted or was never seen', () => {
    for (const before of [null, deleted()])
      assert.deepEqual(decide(gone(), before === null ? [] : [before]), { action: 'delete', key, before })
  })

  it('compares with the invoice of the same customer, and takes the invoice from other customers', () => {
    const [own, other, left] = [
      stored({ status: 'open' }),
      stored({ customer_id: 'cus_c' }),
      deleted({ customer_id: 'cus_b' }),
    ]
    const decision = decide(answer(), [left, own, other])
    assert.ok(decision.action === 'save')
    assert.deepEqual([decision.before, decision.formerly], [own, [other]])
  })

  it('belongs to the customer who has the invoice now, when another customer had it before', () => {
    const known = [stored({ customer_id: 'cus_b' }), deleted({ customer_id: 'cus_c' })]
    const decision = decide(answer({ customer_id: null }), known)
    assert.ok(decision.action === 'save')
    assert.equal(decision.record.invoice.customer_id, 'cus_b')
  })

  it('is never an overlap while two customers have the invoice', () => {
    const known = [stored(), stored({ customer_id: 'cus_b' })]
    assert.deepEqual(decide(answer({ askedAt: 9 }), known), { action: 'overlap', key })
  })
})

const recordOf = (fields: Fields = {}) =>
  completeRecord(told({ customer_id: 'cus_a', ...fields }), stored().previous)

describe('a change of a stored record', () => {
  const paid = (facts: Partial<PaymentFacts>): PriorInvoice => {
    const { previous } = stored({ status: 'open' })
    assert.ok(previous !== null)
    return stored({}, { previous: { ...previous, payment: completePaymentFacts(previous.invoice, facts) } })
  }
  const withoutFacts = paid({})
  const cases: readonly [what: string, before: PriorInvoice | null, fields: Fields, words: string | null][] =
    [
      ['an invoice that is not stored', null, { status: 'open' }, 'new, open'],
      ['a deleted invoice that returns', deleted(), { status: 'draft' }, 'new, draft'],
      ['an unchanged invoice', stored({ status: 'open' }), { status: 'open' }, null],
      [
        'changed fields',
        stored(),
        { display_name: 'X', total_cents: 5 },
        'changed: total_cents, amount_due_cents, amount_paid_cents',
      ],
      [
        'a changed status',
        stored({ status: 'paid', total_cents: 0 }),
        { status: 'void', total_cents: 0 },
        'paid → void',
      ],
      [
        'a changed status and number',
        stored({ status: 'open' }),
        { status: 'void', number: '2' },
        'open → void; changed: number, amount_remaining_cents',
      ],
      ['a changed due date', paid({ due_date: '2026-05-01' }), { status: 'open' }, 'changed: due_date'],
      [
        'facts that were not stored before',
        withoutFacts.previous && { ...withoutFacts, previous: { ...withoutFacts.previous, payment: null } },
        { status: 'open' },
        null,
      ],
    ]
  for (const [what, before, fields, words] of cases)
    it(`is described as ${words} for ${what}`, () =>
      assert.equal(describeChange(before, recordOf(fields)), words))

  it('is described by a changed payment fact even when the new record has no payment facts', () => {
    const { payment, ...record } = recordOf({ status: 'open' })
    assert.equal(describeChange(stored({ status: 'open' }), record), null)
    assert.equal(describeChange(paid({ due_date: '2026-05-01' }), record), 'changed: due_date')
  })

  it('exists when the invoice or the claim of the new record differs', () => {
    const record = recordOf()
    const claimed = { ...record, claim: { ...noClaim, ix_id: 7 } }
    const imported = stored({ total_cents: 1 }, { claim: null })
    const found = [null, deleted(), deleted({ claim: null }), stored(), stored({ number: '2' }), imported]
    assert.deepEqual(
      found.map(before => isDifferent(before, record)),
      [true, true, true, false, true, false],
    )
    assert.ok(isDifferent(stored(), claimed))
  })
})

describe('a completed record', () => {
  it('equals the given record when no earlier record is stored', () => {
    const { invoice, lines, payment, claim, unread } = told()
    const noDocument = { ix_sync_state: 'not_synced', ix_id: null, ix_status: null, ix_created_at: null }
    const whole = { invoice: { ...invoice, ...noDocument }, lines, payment }
    assert.deepEqual(completeRecord({ invoice, lines, payment, unread }, null), whole)
    assert.deepEqual(completeRecord(told(), null), { ...whole, claim })
    assert.deepEqual(nothingUnread, { customer: false, rate: false, payments: false })
  })

  it('has only the platform’s claim', () => {
    const { claim, ...rest } = told()
    const before = stored().previous
    assert.deepEqual(completeRecord({ ...rest, claim: { ...noClaim, ix_id: 7 } }, before).claim?.ix_id, 7)
    assert.deepEqual(Object.keys(completeRecord(rest, before)), ['invoice', 'lines', 'payment'])
    assert.deepEqual(Object.keys(completeRecord({ ...rest, claim: noClaim }, before)), [
      ...['invoice', 'lines', 'payment', 'claim'],
    ])
  })

  it('has the platform’s facts when no facts are stored', () => {
    const { previous } = stored()
    assert.ok(previous !== null)
    const given = told({}, { payments: true })
    assert.deepEqual(completeRecord(given, { ...previous, payment: null }).payment, given.payment)
  })

  it('has a new tax rate when the tax differs and the total is the same', () => {
    const unread = told({ tax_cents: 23, total_cents: 123, tax_percent: 22.9 }, { rate: true })
    const { previous } = stored({ tax_cents: 22, total_cents: 123, tax_percent: 23 })
    assert.equal(completeRecord(unread, previous).invoice.tax_percent, 22.9)
  })
})

describe('taxes by rate', () => {
  const tax = (rate_percent: number | null, base_cents: number, reason: string | null = null): TaxByRate => {
    return { rate_percent, base_cents, tax_cents: base_cents / 10, reason }
  }
  const known = [tax(6, 100), tax(23, 200)]
  const cases: readonly [
    what: string,
    now: TaxByRate[] | null,
    before: TaxByRate[] | null,
    kept: 'now' | 'before',
  ][] = [
    ['come from the answer when none are stored', [tax(null, 100)], null, 'now'],
    ['are removed when the answer has none', null, known, 'now'],
    ['come from the answer when all its rates are known', [tax(7, 100), tax(24, 200)], known, 'now'],
    ['stay as stored when a rate can no longer be read', [tax(6, 100), tax(null, 200)], known, 'before'],
    ['stay as stored in any order', [tax(null, 200), tax(null, 100)], known, 'before'],
    ['come from the answer when amounts differ', [tax(6, 100), tax(null, 300)], known, 'now'],
    ['come from the answer when a reason differs', [tax(6, 100), tax(null, 200, 'exempt')], known, 'now'],
    ['come from the answer when it has one more tax', [...known, tax(null, 300)], known, 'now'],
  ]
  for (const [what, now, before, kept] of cases)
    it(what, () => {
      const given = told()
      const { previous } = stored()
      assert.ok(previous?.payment)
      const record = completeRecord(
        { ...given, payment: { ...given.payment, taxes: now } },
        { ...previous, payment: { ...previous.payment, taxes: before } },
      )
      assert.deepEqual(record.payment?.taxes, kept === 'now' ? now : before)
    })
})

it('only set-aside records of the kinds refused and outdated count as refused', () => {
  const kinds = ['refused', 'outdated', 'invoice', 'waiting', 'overlapped', 'document', '']
  assert.deepEqual(kinds.filter(isRefusedKind), ['refused', 'outdated'])
  assert.equal(noId, '')
})
