/** What an answer of the platform changes: one test for each rule, and lives at random. Without a store, a network or a clock. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { InvoiceStatus } from '../../src/domain/invoice.ts'
import { completePaymentFacts } from '../../src/domain/payment.ts'
import { completeRecord, type Unread } from '../../src/sources/platform-invoice.ts'
import {
  type Decision,
  decide,
  type PriorInvoice,
  type StampedAnswer,
} from '../../src/sync/invoices/decide.ts'
import { answer, deleted, type Fields, gone, stored, told } from '../support/worlds/answers.ts'

function saved(decision: Decision) {
  assert.equal(decision.action, 'save')
  return (decision as Extract<Decision, { action: 'save' }>).record.invoice
}

describe('an answer that was asked for after the stored answer arrived', () => {
  it('is saved, whether the invoice is new, unchanged or changed', () => {
    for (const known of [[], [stored()], [stored({ status: 'draft' })], [deleted()]])
      assert.equal(saved(decide(answer({ fields: { status: 'paid' } }), known)).status, 'paid')
  })

  it('is saved even when it returns the invoice to an earlier state', () => {
    assert.equal(
      saved(decide(answer({ fields: { status: 'open' } }), [stored({ status: 'paid' })])).status,
      'open',
    )
  })

  it('moves the invoice from its former customer, together with its document’s fields', () => {
    const former = stored({ customer_id: 'cus_b', ix_sync_state: 'synced', ix_id: 7 })
    const decision = decide(answer(), [former])
    assert.deepEqual([saved(decision).customer_id, saved(decision).ix_id], ['cus_a', 7])
    assert.deepEqual(decision.action === 'save' && decision.formerly, [former])
  })

  it('deletes a draft that no longer exists, under its stored customer', () => {
    const draft = stored({ customer_id: 'cus_b', status: 'draft' })
    const decision = decide(gone({ customer_id: 'cus_a' }), [draft])
    assert.deepEqual(decision, { action: 'delete', key: { customer_id: 'cus_b', id: 'in_1' }, before: draft })
  })

  it('deletes no invoice other than a draft, and is refused instead', () => {
    for (const status of ['open', 'paid', 'void', 'uncollectible'] as const) {
      const decision = decide(gone(), [stored({ status })])
      assert.deepEqual(decision.action === 'refuse' && [decision.reason, decision.isStored], [
        'missing',
        true,
      ])
    }
  })

  it('is refused with the reason of its mapping, and the stored invoice counts as outdated', () => {
    for (const [known, isStored] of [
      [[], false],
      [[deleted()], false],
      [[stored()], true],
    ] as const) {
      const decision = decide(answer({ found: { refusal: 'unknown_status' } }), known)
      assert.deepEqual(decision.action === 'refuse' && [decision.reason, decision.isStored], [
        'unknown_status',
        isStored,
      ])
    }
  })

  it('is refused without a customer and without any stored invoice, and changes nothing', () => {
    const decision = decide(answer({ customer_id: null }), [])
    assert.equal(decision.action === 'refuse' && decision.reason, 'no_customer')
    assert.equal(decide(gone({ customer_id: null }), []).action, 'nothing')
  })

  it('belongs to the stored customer when the platform names no customer any more', () => {
    const decision = decide(answer({ customer_id: null, fields: { status: 'void' } }), [
      stored({ customer_id: 'cus_b' }),
    ])
    assert.deepEqual([saved(decision).customer_id, saved(decision).status], ['cus_b', 'void'])
  })
})

describe('an answer that overlaps in time with the stored answer', () => {
  const early = { askedAt: 9 }

  it('changes nothing when both answers are equal', () => {
    assert.equal(decide(answer(early), [stored()]).action, 'nothing')
    assert.equal(decide(gone(early), [deleted()]).action, 'nothing')
  })

  it('is asked for again when both answers differ', () => {
    for (const status of ['draft', 'paid', 'void'] as const)
      assert.equal(
        decide(answer({ ...early, fields: { status } }), [stored({ status: 'open' })]).action,
        'overlap',
      )
    assert.equal(decide(gone(early), [stored({ status: 'draft' })]).action, 'overlap')
    assert.equal(decide(answer(early), [deleted()]).action, 'overlap')
    assert.equal(decide(answer(early), [stored({ customer_id: 'cus_b' })]).action, 'overlap')
    assert.equal(decide(answer({ ...early, found: { refusal: 'preview' } }), [stored()]).action, 'overlap')
  })

  it('is asked for again for a draft, because the lines are not compared', () => {
    const fields = { status: 'draft' } as const
    assert.equal(decide(answer({ ...early, fields }), [stored(fields)]).action, 'overlap')
  })

  it('is recognized even when the stored answer belongs to another customer', () => {
    const tombstone = deleted({ customer_id: 'cus_b' })
    assert.equal(decide(answer(early), [tombstone]).action, 'overlap')
  })

  it('counts as newer from the moment at which the stored answer arrived', () => {
    assert.equal(decide(answer({ askedAt: 10, fields: { status: 'paid' } }), [stored()]).action, 'save')
  })
})

describe('the completion of an answer with stored values', () => {
  const previous = (fields: Fields) => stored(fields).previous

  it('keeps the customer name of an issued invoice, and takes the new name for a draft', () => {
    const renamed = told({ display_name: 'New', status: 'open' })
    assert.equal(
      completeRecord(renamed, previous({ display_name: 'Old', status: 'open' })).invoice.display_name,
      'Old',
    )
    assert.equal(
      completeRecord(renamed, previous({ display_name: 'Old', status: 'draft' })).invoice.display_name,
      'New',
    )
    assert.equal(completeRecord(renamed, null).invoice.display_name, 'New')
  })

  it('keeps both stored names when the customer is deleted', () => {
    const unread = told({ display_name: 'cus_a', company_name: null }, { customer: true })
    const { invoice } = completeRecord(
      unread,
      previous({ display_name: 'Ana', company_name: 'Ana, Lda', status: 'draft' }),
    )
    assert.deepEqual([invoice.display_name, invoice.company_name], ['Ana', 'Ana, Lda'])
  })

  it('keeps the stored tax rate while the amounts are unchanged', () => {
    const unread = told({ tax_cents: 23, total_cents: 123, tax_percent: 22.9 }, { rate: true })
    const percentOf = (before: Fields) =>
      completeRecord(unread, previous({ tax_percent: 23, ...before })).invoice.tax_percent
    assert.equal(percentOf({ tax_cents: 23, total_cents: 123 }), 23)
    assert.equal(percentOf({ tax_cents: 23, total_cents: 124 }), 22.9)
    const read = told({ tax_cents: 23, total_cents: 123, tax_percent: 6 })
    assert.equal(
      completeRecord(read, previous({ tax_cents: 23, total_cents: 123, tax_percent: 23 })).invoice
        .tax_percent,
      6,
    )
  })

  it('keeps the stored payments when the platform no longer shows them', () => {
    const before = { id: 'pi_1', amount_cents: 5, paid_at: null }
    const known = previous({}) ?? assert.fail()
    const payment = { ...completePaymentFacts(known.invoice), payments: [before] }
    const idsOf = (unread: Partial<Unread>) =>
      completeRecord(told({}, unread), { ...known, payment }).payment?.payments.map(({ id }) => id)
    assert.deepEqual([idsOf({ payments: true }), idsOf({})], [['pi_1'], []])
  })

  it('leaves the document’s fields unchanged', () => {
    const { invoice } = completeRecord(
      told(),
      previous({ ix_sync_state: 'synced', ix_id: 7, ix_status: 'final' }),
    )
    assert.deepEqual([invoice.ix_sync_state, invoice.ix_id, invoice.ix_status], ['synced', 7, 'final'])
    assert.equal(completeRecord(told(), null).invoice.ix_sync_state, 'not_synced')
  })
})

/** A moment of an invoice's life: its status, or null once it is gone, and whose it is. */
interface Moment {
  at: number
  status: InvoiceStatus | null
  customer_id: string
}

interface Question {
  askedAt: number
  answeredAt: number
  /** When the answer is true: between the two. */
  trueAt: number
  /** Answers wait for each other before they are stored. */
  storedAt: number
}

const someLife = fc.record({
  statuses: fc.constantFrom<(InvoiceStatus | null)[]>(
    ['draft', 'open', 'paid'],
    ['draft', null],
    ['draft', 'open', 'uncollectible', 'paid'],
    ['draft', 'open', 'void'],
    ['open', 'paid'],
  ),
  pauses: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 4, maxLength: 4 }),
  moves: fc.boolean(),
  questions: fc.array(fc.tuple(fc.nat(40), fc.nat(12), fc.nat(12), fc.nat(12)), {
    minLength: 1,
    maxLength: 12,
  }),
  delays: fc.array(fc.tuple(fc.nat(6), fc.nat(6)), { minLength: 1, maxLength: 5 }),
})
type Life = typeof someLife extends fc.Arbitrary<infer T> ? T : never

/** Stores whatever is answered, and asks again as it is decided. Returns what is stored in the end, and how often was decided. */
function live({ statuses, pauses, moves, questions: drawn, delays }: Life) {
  let at = 0
  const life = statuses.map((status, i): Moment => {
    at += pauses[i] ?? 1
    return { at: i === 0 ? 0 : at, status, customer_id: moves && i > 0 ? 'cus_b' : 'cus_a' }
  })
  const last = life.at(-1) as Moment
  // Once at least after the last change.
  const open = [...drawn, [last.at + 1, 3, 1, 2] as const].map(
    ([askedAt, takes, trueAfter, waits]): Question => {
      const answeredAt = askedAt + takes
      return {
        askedAt,
        answeredAt,
        trueAt: Math.min(askedAt + trueAfter, answeredAt),
        storedAt: answeredAt + waits,
      }
    },
  )
  const store = new Map<string, PriorInvoice>()
  let decisions = 0
  while (open.length > 0) {
    open.sort((a, b) => a.storedAt - b.storedAt)
    const question = open.shift() as Question
    const moment = life.findLast(({ at }) => at <= question.trueAt) as Moment
    const { customer_id, status } = moment
    const stamps = { askedAt: 2 * question.askedAt, answeredAt: 2 * question.answeredAt + 1 }
    const given =
      status === null
        ? gone({ customer_id, ...stamps })
        : answer({ fields: { customer_id, status }, ...stamps })
    const decision = decide(given, [...store.values()])
    decisions++
    apply(store, decision, given)
    if (decision.action !== 'overlap') continue
    const [takes = 0, waits = 0] = delays[decisions % delays.length] ?? []
    const askedAt = question.storedAt + 1
    const answeredAt = askedAt + takes
    open.push({ askedAt, answeredAt, trueAt: askedAt + (takes >> 1), storedAt: answeredAt + waits })
  }
  return { stored: [...store.values()].filter(({ previous }) => previous !== null), last, decisions }
}

function apply(store: Map<string, PriorInvoice>, decision: Decision, { answeredAt }: StampedAnswer): void {
  if (decision.action === 'delete')
    store.set(decision.key.customer_id, { ...deleted({ answeredAt }), customer_id: decision.key.customer_id })
  if (decision.action !== 'save') return
  for (const { customer_id } of decision.formerly) store.delete(customer_id)
  const { invoice, payment = null } = decision.record
  store.set(invoice.customer_id, {
    ...stored({}, { answeredAt }),
    customer_id: invoice.customer_id,
    previous: { invoice, payment },
  })
}

it('100,000 random answers in any order and overlap end with the last state of each invoice', () => {
  let decisions = 0
  fc.assert(
    fc.property(someLife, life => {
      const end = live(life)
      decisions += end.decisions
      assert.deepEqual(
        end.stored.map(({ customer_id, previous }) => [customer_id, previous?.invoice.status]),
        end.last.status === null ? [] : [[end.last.customer_id, end.last.status]],
      )
    }),
    { numRuns: 14_000, seed: 2026 },
  )
  assert.ok(decisions >= 100_000, `${decisions}`)
})
