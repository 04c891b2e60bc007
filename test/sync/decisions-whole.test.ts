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

describe('a decision', () => {
  it('of an invoice without a customer names none', () => {
    const why = 'it has no customer'
    const refused = { action: 'refuse', reason: 'no_customer', key: null, isStored: false, why }
    assert.deepEqual(decide(answer({ customer_id: null }), []), refused)
  })

  it('of a refused invoice tells why', () => {
    const why = 'none of ours: preview'
    assert.deepEqual(decide(answer({ found: { refusal: 'preview' } }), []), {
      ...{ action: 'refuse', reason: 'preview', key, isStored: false, why },
    })
  })

  it('of an issued invoice that is gone tells why', () => {
    const why = 'not found, though it is paid: only a draft can be deleted'
    assert.deepEqual(decide(gone(), [stored({ status: 'paid' })]), {
      ...{ action: 'refuse', reason: 'missing', key, isStored: true, why },
    })
  })

  it('of one that is gone, and was deleted or never seen, keeps that it is gone', () => {
    for (const before of [null, deleted()])
      assert.deepEqual(decide(gone(), before === null ? [] : [before]), { action: 'delete', key, before })
  })

  it('compares with the invoice of its own customer, and takes it from those that have it', () => {
    const [own, other, left] = [
      stored({ status: 'open' }),
      stored({ customer_id: 'cus_c' }),
      deleted({ customer_id: 'cus_b' }),
    ]
    const decision = decide(answer(), [left, own, other])
    assert.ok(decision.action === 'save')
    assert.deepEqual([decision.before, decision.formerly], [own, [other]])
  })

  it('belongs to the customer who has it, where another one had it before', () => {
    const known = [stored({ customer_id: 'cus_b' }), deleted({ customer_id: 'cus_c' })]
    const decision = decide(answer({ customer_id: null }), known)
    assert.ok(decision.action === 'save')
    assert.equal(decision.record.invoice.customer_id, 'cus_b')
  })

  it('about an overlap is none while two customers have the invoice', () => {
    const known = [stored(), stored({ customer_id: 'cus_b' })]
    assert.deepEqual(decide(answer({ askedAt: 9 }), known), { action: 'overlap', key })
  })
})

const recordOf = (fields: Fields = {}) =>
  completeRecord(told({ customer_id: 'cus_a', ...fields }), stored().previous)

describe('a change', () => {
  const paid = (facts: Partial<PaymentFacts>): PriorInvoice => {
    const { previous } = stored({ status: 'open' })
    assert.ok(previous !== null)
    return stored({}, { previous: { ...previous, payment: completePaymentFacts(previous.invoice, facts) } })
  }
  const withoutFacts = paid({})
  const cases: readonly [what: string, before: PriorInvoice | null, fields: Fields, words: string | null][] =
    [
      ['of what is not stored', null, { status: 'open' }, 'new, open'],
      ['of what was deleted', deleted(), { status: 'draft' }, 'new, draft'],
      ['of nothing', stored({ status: 'open' }), { status: 'open' }, null],
      [
        'of fields',
        stored(),
        { display_name: 'X', total_cents: 5 },
        'changed: total_cents, amount_due_cents, amount_paid_cents',
      ],
      [
        'of the status alone',
        stored({ status: 'paid', total_cents: 0 }),
        { status: 'void', total_cents: 0 },
        'paid → void',
      ],
      [
        'of the status and more',
        stored({ status: 'open' }),
        { status: 'void', number: '2' },
        'open → void; changed: number, amount_remaining_cents',
      ],
      ['of what is owed', paid({ due_date: '2026-05-01' }), { status: 'open' }, 'changed: due_date'],
      [
        'of facts that were not stored is none',
        withoutFacts.previous && { ...withoutFacts, previous: { ...withoutFacts.previous, payment: null } },
        { status: 'open' },
        null,
      ],
    ]
  for (const [what, before, fields, words] of cases)
    it(`${what} is told in words`, () => assert.equal(describeChange(before, recordOf(fields)), words))

  it('is told as well where the record brings no facts', () => {
    const { payment, ...record } = recordOf({ status: 'open' })
    assert.equal(describeChange(stored({ status: 'open' }), record), null)
    assert.equal(describeChange(paid({ due_date: '2026-05-01' }), record), 'changed: due_date')
  })

  it('makes an invoice different, and so does its claim; one that the platform did not bring may be anything', () => {
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

describe('a record', () => {
  it('is complete by itself where nothing is stored', () => {
    const { invoice, lines, payment, claim, unread } = told()
    const noDocument = { ix_sync_state: 'not_synced', ix_id: null, ix_status: null, ix_created_at: null }
    const whole = { invoice: { ...invoice, ...noDocument }, lines, payment }
    assert.deepEqual(completeRecord({ invoice, lines, payment, unread }, null), whole)
    assert.deepEqual(completeRecord(told(), null), { ...whole, claim })
    assert.deepEqual(nothingUnread, { customer: false, rate: false, payments: false })
  })

  it('has the claim of the platform alone', () => {
    const { claim, ...rest } = told()
    const before = stored().previous
    assert.deepEqual(completeRecord({ ...rest, claim: { ...noClaim, ix_id: 7 } }, before).claim?.ix_id, 7)
    assert.deepEqual(Object.keys(completeRecord(rest, before)), ['invoice', 'lines', 'payment'])
    assert.deepEqual(Object.keys(completeRecord({ ...rest, claim: noClaim }, before)), [
      ...['invoice', 'lines', 'payment', 'claim'],
    ])
  })

  it('has the facts that the platform tells where none are stored', () => {
    const { previous } = stored()
    assert.ok(previous !== null)
    const given = told({}, { payments: true })
    assert.deepEqual(completeRecord(given, { ...previous, payment: null }).payment, given.payment)
  })

  it('computes the rate anew where the tax is another one, and the total the same', () => {
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
    ['are those of the answer where none are stored', [tax(null, 100)], null, 'now'],
    ['are gone where the answer has none', null, known, 'now'],
    ['are those of the answer where all are known', [tax(7, 100), tax(24, 200)], known, 'now'],
    ['stay where some can no longer be read', [tax(6, 100), tax(null, 200)], known, 'before'],
    ['stay whatever their order', [tax(null, 200), tax(null, 100)], known, 'before'],
    ['are those of the answer where amounts differ', [tax(6, 100), tax(null, 300)], known, 'now'],
    ['are those of the answer where a reason differs', [tax(6, 100), tax(null, 200, 'exempt')], known, 'now'],
    ['are those of the answer where one more came', [...known, tax(null, 300)], known, 'now'],
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

it('refused are the kinds that no repetition stores', () => {
  const kinds = ['refused', 'outdated', 'invoice', 'waiting', 'overlapped', 'document', '']
  assert.deepEqual(kinds.filter(isRefusedKind), ['refused', 'outdated'])
  assert.equal(noId, '')
})
