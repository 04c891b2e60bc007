/** Which document an invoice is tied to: one test for each row of the table, each guard, and what metadata may hold. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { linkRulesOf, settingGroups } from '../../../src/cli/settings/connections.ts'
import { readSettings } from '../../../src/cli/settings/read-settings.ts'
import { type Claim, type Document, noClaim } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import type { Claimed } from '../../../src/domain/link/known.ts'
import { defaultRules, type LinkRules } from '../../../src/domain/link/link.ts'
import { defaultKeys, mapClaim } from '../../../src/sources/stripe/map-claim.ts'
import { anyCharacter } from '../../support/clients/any-character.ts'
import {
  type Case,
  derive,
  id,
  idOf,
  nothing,
  seen,
  stateOf,
  templates,
  unseen,
} from '../../support/worlds/linking.ts'
import { makeInvoice, withDocument } from '../../support/worlds/records.ts'

const creating = { state: 'creating', attempted_at: '2026-03-10T11:30:00.000Z' } as const
const overdue = { state: 'creating', attempted_at: '2026-03-10T10:59:59.999Z' } as const

test('every state without a document has its reason', () => {
  const zero = { invoice: { total_cents: 0 }, rules: { ignoreZero: true } }
  const early = { invoice: { issued_at: '2026-03-01T00:00:00.000Z' }, rules: { ignoreBefore: '2026-03-02' } }
  const reasons: readonly [Case, string][] = [
    [{ claim: { state: 'ignored' } }, 'it is recorded as ignored'],
    [zero, 'its total is zero'],
    [early, 'it was issued before 2026-03-02'],
    [{ claim: overdue }, `it has been creating since ${overdue.attempted_at}, which is too long`],
    [{ claim: creating }, `it is recorded as creating since ${creating.attempted_at}`],
    [{ claim: { state: 'creating' } }, 'it is recorded as creating since an unknown time'],
    [
      { claim: { ix_id: 10 }, known: [seen({}, 2)] },
      'document 10 is recorded, but the invoicing system no longer has it',
    ],
    [{ rules: { isConnected: false } }, 'no invoicing system is connected; the last known state stays'],
    [
      { claim: { ix_id: 10 }, rules: { isConnected: false } },
      'document 10 is recorded, but was not seen yet',
    ],
    [{}, 'no document claims it, and none is recorded'],
  ]
  for (const [given, why] of reasons) assert.equal(derive(given).why, why)
})

describe('the table, row by row', () => {
  it('1. a document with the recorded id, whatever it refers to: synced', () => {
    const { fields, why, candidates } = derive({ claim: { ix_id: 10 }, known: [seen({ reference: 'X' })] })
    assert.deepEqual(fields, {
      ix_sync_state: 'synced',
      ix_id: 10,
      ix_status: 'final',
      ix_created_at: '2026-03-03T00:00:00.000Z',
    })
    assert.match(why, /claimed as 10.*final/)
    assert.deepEqual(candidates, [])
  })
  it('1. a document that refers to it, with nothing recorded: synced', () => {
    const { fields, why } = derive({ known: [seen()] })
    assert.deepEqual([fields.ix_sync_state, fields.ix_id], ['synced', 10])
    assert.match(why, /referring to in_link/)
  })
  it('1. canceled stays synced', () => {
    const { fields } = derive({ known: [seen({ status: 'canceled' })] })
    assert.deepEqual([fields.ix_sync_state, fields.ix_status], ['synced', 'canceled'])
  })
  it('1. a status nobody heard of is passed on as it is', () => {
    assert.equal(derive({ known: [seen({ status: 'second_copy' })] }).fields.ix_status, 'second_copy')
  })
  it('2. recorded as ignored: ignored', () => {
    assert.deepEqual(derive({ claim: { state: 'ignored' } }).fields, { ix_sync_state: 'ignored', ...nothing })
  })
  it('2. a total of zero, when those are ignored: ignored, and only then', () => {
    assert.equal(stateOf({ invoice: { total_cents: 0 }, rules: { ignoreZero: true } }), 'ignored')
    assert.equal(stateOf({ invoice: { total_cents: 0 } }), 'not_synced')
    for (const total_cents of [1, -1])
      assert.equal(stateOf({ invoice: { total_cents }, rules: { ignoreZero: true } }), 'not_synced')
  })
  it('2. issued before the day from which on documents are made: ignored, and not on that day', () => {
    const rules = { ignoreBefore: '2026-03-02' }
    assert.equal(stateOf({ invoice: { issued_at: '2026-03-01T23:59:59.999Z' }, rules }), 'ignored')
    assert.equal(stateOf({ invoice: { issued_at: '2026-03-02T00:00:00.000Z' }, rules }), 'not_synced')
  })
  it('3. recorded as failed: failed, with the reason', () => {
    const { fields, why } = derive({ claim: { state: 'failed', error: 'no series' } })
    assert.deepEqual(fields, { ix_sync_state: 'failed', ...nothing })
    assert.match(why, /no series/)
    assert.match(derive({ claim: { state: 'failed' } }).why, /no reason given/)
  })
  it('4. recorded as creating: creating', () => {
    assert.deepEqual(derive({ claim: creating }).fields, { ix_sync_state: 'creating', ...nothing })
  })
  it('4. creating for longer than is allowed: failed; for exactly as long: creating', () => {
    assert.equal(stateOf({ claim: overdue }), 'failed')
    assert.equal(stateOf({ claim: { ...creating, attempted_at: '2026-03-10T11:00:00.000Z' } }), 'creating')
    assert.equal(stateOf({ claim: overdue, rules: { creatingTimeoutMs: 2 * 3_600_000 } }), 'creating')
  })
  it('4. creating since nobody knows when, or since a moment to come: creating', () => {
    assert.equal(stateOf({ claim: { state: 'creating' } }), 'creating')
    assert.equal(stateOf({ claim: { ...creating, attempted_at: '2027-01-01T00:00:00.000Z' } }), 'creating')
  })
  it('5. recorded, but the system says it has none: failed, and the link is cleared', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    for (const known of [seen({}, 2), seen({ status: 'deleted' }), unseen(10, 2)])
      for (const claim of [{ ix_id: 10 }, { ix_id: 10, state: 'synced' }] as const)
        assert.deepEqual(derive({ invoice, claim, known: [known] }).fields, {
          ix_sync_state: 'failed',
          ...nothing,
        })
  })
  it('the last document was not read yet: it stays, though another one that is recorded is gone', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(idOf({ invoice, claim: { ix_id: 9 }, known: [unseen(9, 2)] }), 10)
  })
  it('6. otherwise: not_synced', () => {
    assert.deepEqual(derive({}).fields, { ix_sync_state: 'not_synced', ...nothing })
    assert.equal(stateOf({ claim: { state: 'synced' } }), 'not_synced')
  })
  it('6. recorded, and not seen yet: not_synced', () => {
    assert.match(derive({ claim: { ix_id: 10, state: 'synced' } }).why, /10 is recorded, but was not seen/)
    assert.equal(stateOf({ claim: { ix_id: 10 }, known: [unseen(10, 1)] }), 'not_synced')
  })
})

describe('the first rule that fits decides', () => {
  // Each fits one rule alone; of two, the one that stands first must win.
  const rules = { ignoreZero: true }
  const zero = { total_cents: 0 }
  const gone = [seen({ id: 9, reference: null }, 2)]
  const pairs: [name: string, given: Case, state: string][] = [
    ['1 before 2 (recorded)', { claim: { state: 'ignored' }, known: [seen()] }, 'synced'],
    ['1 before 2 (rule)', { invoice: zero, rules, known: [seen()] }, 'synced'],
    ['1 before 3', { claim: { state: 'failed' }, known: [seen()] }, 'synced'],
    ['1 before 4', { claim: creating, known: [seen()] }, 'synced'],
    ['1 before 4 (too long)', { claim: overdue, known: [seen()] }, 'synced'],
    ['1 before 5', { claim: { ix_id: 9 }, known: [...gone, seen()] }, 'synced'],
    ['2 before 3', { invoice: zero, rules, claim: { state: 'failed' } }, 'ignored'],
    ['2 before 4', { invoice: zero, rules, claim: overdue }, 'ignored'],
    ['2 before 5', { claim: { state: 'ignored', ix_id: 9 }, known: gone }, 'ignored'],
    ['2 before 6', { invoice: zero, rules }, 'ignored'],
    ['3 before 5', { claim: { state: 'failed', error: 'E', ix_id: 9 }, known: gone }, 'failed'],
    ['4 before 5', { claim: { ...creating, ix_id: 9 }, known: gone }, 'creating'],
    ['5 before 6', { claim: { ix_id: 9 }, known: gone }, 'failed'],
  ]
  for (const [name, given, state] of pairs) it(name, () => assert.equal(stateOf(given), state))
  it('3 before 5 gives the reason recorded', () =>
    assert.match(derive({ claim: { state: 'failed', error: 'E', ix_id: 9 }, known: gone }).why, /E$/))
})

describe('guards', () => {
  it('never by similar references', () => {
    for (const reference of ['IN_LINK', 'in_link ', ' in_link', 'in_lin', 'in_link2', 'x in_link', '', null])
      assert.equal(stateOf({ known: [seen({ reference })] }), 'not_synced', String(reference))
  })
  it('two misses before it loses its document: one of a document that was seen changes nothing', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    const known = [seen({ status: 'settled' }, 1)]
    assert.equal(stateOf({ invoice, claim: { ix_id: 10 }, known }), 'synced')
    assert.equal(stateOf({ invoice, claim: { ix_id: 10 }, known: [seen({}, 2)] }), 'failed')
    assert.equal(stateOf({ invoice, known: [seen({}, 2)] }), 'not_synced')
  })
  it('one miss of a document that was never seen keeps what was known of it', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    const { fields, why } = derive({ invoice, claim: { state: 'failed' }, known: [unseen(10, 1)] })
    assert.deepEqual(fields, { ...withDocument, ix_id: 10 })
    assert.match(why, /missed once/)
  })
  it('nothing looked at yet keeps what was known', () => {
    for (const claim of [{}, { state: 'failed' }, { state: 'ignored' }, { ix_id: 5 }] as const) {
      const { fields, why } = derive({ invoice: withDocument, claim })
      assert.deepEqual(fields, withDocument)
      assert.match(why, /4711 was not read yet/)
    }
  })
  it('deleted is believed at once', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(stateOf({ invoice, known: [seen({ status: 'deleted' })] }), 'not_synced')
    assert.equal(stateOf({ invoice, claim: { ix_id: 10 }, known: [seen({ status: 'deleted' })] }), 'failed')
  })
  it('a document that no longer refers to it, and is not recorded, is given up', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(stateOf({ invoice, known: [seen({ reference: 'in_other' })] }), 'not_synced')
  })
  it('without an invoicing system, all that was known stays', () => {
    const rules = { isConnected: false }
    const imported = { ix_sync_state: 'synced', ix_status: 'settled' } as const
    assert.deepEqual(derive({ invoice: imported, rules }).fields, {
      ix_sync_state: 'synced',
      ix_id: null,
      ix_status: 'settled',
      ix_created_at: null,
    })
    assert.equal(stateOf({ invoice: imported, rules, claim: { state: 'failed' } }), 'failed')
    assert.deepEqual(derive({ invoice: withDocument, rules }).fields, withDocument)
  })
})

describe('a document’s proprietary_uid', () => {
  const withUid = (fields: Partial<Document>, rules: Partial<LinkRules> = {}) =>
    derive({ known: [seen({ uid: id, ...fields })], rules })

  it('names an invoice exactly, where the reference names none', () => {
    for (const reference of [null, 'Stripe', `${id} `]) {
      const { fields, why } = withUid({ reference })
      assert.deepEqual([fields.ix_sync_state, fields.ix_id], ['synced', 10])
      assert.match(why, /whose proprietary_uid is in_link/)
    }
    for (const uid of [`${id} `, ` ${id}`, `x-${id}`, 'pi_1'])
      assert.equal(withUid({ uid, reference: null }).fields.ix_id, null, uid)
  })

  it('counts for nothing against a reference that names another invoice, by the convention or as a plain id', () => {
    const rules = templates('Nº {id}')
    assert.equal(withUid({ reference: 'in_other' }).fields.ix_id, null)
    assert.equal(withUid({ reference: 'Nº in_other' }, rules).fields.ix_id, null)
    assert.equal(withUid({ reference: 'in_other' }, rules).fields.ix_id, null)
    assert.equal(withUid({ reference: null }, rules).fields.ix_id, 10)
  })
})

describe('a document has one owner', () => {
  const claim = { ix_id: 10 }
  const claiming = (fields: Partial<Invoice>, ix_id = 10): Claimed => ({
    invoice: makeInvoice({ id: 'in_other', customer_id: 'cus_other', ...fields }),
    claim: { ...noClaim, ix_id },
    payments: [],
  })
  const free = (client_tax_id: string | null = null) => ({ ...seen({ reference: 'PO 12' }), client_tax_id })

  it('the invoice that its reference names: any other that claims it has failed', () => {
    for (const [reference, rules] of [
      ['in_other', {}],
      ['Stripe in_other', templates('Stripe {id}')],
      ['in_other', templates('Stripe {id}')],
    ] as const) {
      const { fields, why, refusal } = derive({ claim, known: [seen({ reference })], rules })
      assert.deepEqual(fields, { ix_sync_state: 'failed', ...nothing })
      assert.equal(why, 'document 10 is recorded, but its reference names in_other')
      assert.equal(refusal?.kind, 'claim_contradicted')
    }
  })
  it('an invoice that was tied to it by its claim loses it', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(stateOf({ invoice, claim, known: [seen({ reference: 'in_other' })] }), 'failed')
  })
  it('the document that refers to an invoice is taken in place of one that is claimed and names another', () => {
    const known = [seen({ reference: 'in_other' }), seen({ id: 11 })]
    assert.equal(idOf({ claim, known }), 11)
  })
  it('of several that claim one that names none, the one that was issued first; else the lowest id', () => {
    const issued_at = '2026-03-01T00:00:00.000Z'
    const invoice = { issued_at }
    const stateBeside = (fields: Partial<Invoice>, ix_id?: number) =>
      stateOf({ invoice, claim, known: [free()], others: [claiming({ issued_at, ...fields }, ix_id)] })
    assert.equal(stateBeside({ issued_at: '2026-02-28T23:59:59.999Z' }), 'failed')
    assert.equal(stateBeside({ issued_at: '2026-03-01T00:00:00.001Z' }), 'synced')
    assert.equal(stateBeside({ id: 'in_a' }), 'failed')
    assert.equal(stateBeside({ id: 'in_z' }), 'synced')
    assert.equal(stateBeside({ id: 'in_a' }, 11), 'synced', 'it claims another')
    const { why, refusal } = derive({ claim, known: [free()], others: [claiming({ issued_at: '2025' })] })
    assert.equal(why, 'document 10 is recorded for in_other too, which was issued first')
    assert.equal(refusal?.kind, 'claimed_twice')
  })
  it('none whose customer has another tax ID than the client of the document, where both are known', () => {
    const stateFor = (customer_tax_id: string | null, client: string | null) =>
      stateOf({ invoice: { customer_tax_id }, claim, known: [free(client)] })
    assert.equal(stateFor('PT123456789', '509442013'), 'failed')
    for (const [ours, theirs] of [
      ['PT123456789', '123 456 789'],
      [null, '509442013'],
      ['PT123456789', null],
      ['PT123456789', '999999990'],
      ['PT123456789', 'PT 999 999 990'],
      ['999999990', '509442013'],
      ['GR094259216', 'EL094259216'],
      ['XX1', 'XX1'],
      ['509442013', 'PT509442013'],
    ] as const)
      assert.equal(stateFor(ours, theirs), 'synced', `${ours} ${theirs}`)
    for (const [customer_tax_id, client] of [
      ['ES509442013', 'PT509442013'],
      ['X1234567', 'X12AB34567'],
      ['X12AB34567', 'X1234567'],
    ] as const) {
      const { refusal } = derive({ invoice: { customer_tax_id }, claim, known: [free(client)] })
      assert.deepEqual(refusal, {
        kind: 'claim_contradicted',
        why: 'document 10 is recorded, but its client has another tax ID',
      })
    }
    const other = claiming({ issued_at: '2020-01-01T00:00:00.000Z', customer_tax_id: 'PT509442013' })
    const invoice = { customer_tax_id: 'PT123456789' }
    assert.equal(stateOf({ invoice, claim, known: [free('123456789')], others: [other] }), 'synced')
  })
  it('a recorded state of failed, creating or ignored says why before that', () => {
    const known = [seen({ reference: 'in_other' })]
    assert.equal(stateOf({ claim: { ...claim, state: 'ignored' }, known }), 'ignored')
    assert.equal(stateOf({ claim: { ...claim, ...creating }, known }), 'creating')
    assert.match(derive({ claim: { ...claim, state: 'failed', error: 'E' }, known }).why, /E$/)
  })
})

describe('several documents', () => {
  it('the recorded id first, even when it is canceled', () => {
    const known = [seen({ id: 3 }), seen({ id: 7, status: 'canceled' }), seen({ id: 5 })]
    const { fields, candidates } = derive({ claim: { ix_id: 7 }, known })
    assert.deepEqual([fields.ix_id, fields.ix_status], [7, 'canceled'])
    assert.deepEqual(candidates, [7, 3, 5])
  })
  it('else the lowest that is not canceled', () => {
    const known = [seen({ id: 12 }), seen({ id: 2, status: 'canceled' }), seen({ id: 5 }), seen({ id: 100 })]
    assert.deepEqual(derive({ known }).candidates, [5, 12, 100, 2])
    assert.equal(idOf({ known, claim: { ix_id: 99 } }), 5)
  })
  it('else the lowest', () => {
    assert.equal(idOf({ known: [9, 8].map(id => seen({ id, status: 'canceled' })) }), 8)
  })
  it('all of them are named, from two on', () => {
    const candidatesOf = (...ids: number[]) => derive({ known: ids.map(id => seen({ id })) }).candidates
    assert.deepEqual(candidatesOf(10, 11), [10, 11])
    assert.deepEqual(candidatesOf(10), [])
  })
  it('those that are gone are none of them', () => {
    const known = [seen({ id: 1, status: 'deleted' }), seen({ id: 2 }, 2), seen({ id: 3 })]
    const { fields, candidates } = derive({ known })
    assert.deepEqual([fields.ix_id, candidates], [3, []])
  })
  it('a second copy is none beside its original, whatever the original’s status', () => {
    const copy = seen({ id: 1, status: 'second_copy', series_number: 'G/6' })
    for (const status of ['final', 'settled', 'canceled']) {
      const { fields, candidates } = derive({ known: [copy, seen({ id: 2, status, series_number: 'G/6' })] })
      assert.deepEqual([fields.ix_id, fields.ix_status, candidates], [2, status, []])
    }
  })
  it('a second copy comes after documents of other numbers, and before canceled ones', () => {
    const copy = seen({ id: 1, status: 'second_copy', series_number: 'G/6' })
    const other = seen({ id: 2, series_number: 'G/7' })
    const canceled = seen({ id: 3, status: 'canceled', series_number: 'G/8' })
    assert.deepEqual(derive({ known: [canceled, copy, other] }).candidates, [2, 1, 3])
    assert.equal(idOf({ known: [copy] }), 1)
  })
  it('a recorded second copy stays the invoice’s document', () => {
    const known = [seen({ id: 1, status: 'second_copy' }), seen({ id: 2 })]
    const { fields } = derive({ claim: { ix_id: 1 }, known })
    assert.deepEqual([fields.ix_id, fields.ix_status], [1, 'second_copy'])
  })
  it('the order in which they are known does not matter', () => {
    const all = [1, 2, 3, 4, 5].map(id => seen({ id, status: id % 2 ? 'canceled' : 'final' }))
    const expected = derive({ known: all })
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), known => {
        assert.deepEqual(derive({ known }), expected)
      }),
    )
  })
})

describe('ix_created_at', () => {
  const created_at = '2026-03-04T05:06:07.890Z'
  const createdOf = (claim: Partial<Claim>, date: string | null) =>
    derive({ claim, known: [seen({ date })] }).fields.ix_created_at
  it('from the metadata', () => assert.equal(createdOf({ created_at }, '2026-03-03'), created_at))
  it("else the document's day", () => assert.equal(createdOf({}, '2026-03-03'), '2026-03-03T00:00:00.000Z'))
  it('else null', () => assert.equal(createdOf({}, null), null))
  it('null without a document, whatever is recorded', () =>
    assert.equal(derive({ claim: { created_at, state: 'failed' } }).fields.ix_created_at, null))
})

describe('the reference', () => {
  it('may be another text around the id, and then is that and no other', () => {
    const rules = templates('Stripe {id}.')
    assert.equal(stateOf({ known: [seen({ reference: 'Stripe in_link.' })], rules }), 'synced')
    for (const reference of [id, 'Stripe in_link', 'in_link.', 'stripe in_link.'])
      assert.equal(stateOf({ known: [seen({ reference })], rules }), 'not_synced', reference)
  })
  it('when it was changed, a document by the old one is kept only if it is recorded', () => {
    const [invoice, rules] = [{ ...withDocument, ix_id: 10 }, templates('new {id}')]
    const without = derive({ invoice, rules, known: [seen()] })
    assert.equal(without.fields.ix_sync_state, 'not_synced')
    assert.equal(without.why, 'document 10 names in_link, but DOCUMENT_REFERENCE allows no plain ID')
    assert.equal(stateOf({ invoice, rules, known: [seen()], claim: { ix_id: 10 } }), 'synced')
  })
})

test('whatever is known, a state other than synced has no document', () => {
  const known = fc.record({
    id: fc.integer({ min: 1, max: 4 }),
    status: fc.constantFrom('draft', 'final', 'canceled', 'deleted'),
    reference: fc.constantFrom(id, 'in_other', null),
    misses: fc.integer({ min: 0, max: 3 }),
    isSeen: fc.boolean(),
  })
  const claim = fc.record({
    state: fc.constantFrom('creating', 'synced', 'failed', 'ignored', null),
    ix_id: fc.constantFrom(1, 2, null),
  })
  fc.assert(
    fc.property(fc.uniqueArray(known, { selector: ({ id }) => id }), claim, (given, claim) => {
      const documents = given.map(({ isSeen, misses, ...fields }) =>
        isSeen ? seen(fields, misses) : unseen(fields.id, misses),
      )
      const { fields } = derive({ claim, known: documents })
      const { ix_sync_state, ...rest } = fields
      if (ix_sync_state !== 'synced') return assert.deepEqual(rest, nothing)
      const tied = documents.find(({ id }) => id === fields.ix_id)
      assert.ok(tied?.document && tied.misses < 2 && tied.document.status !== 'deleted')
      assert.ok(
        tied.document.reference === id || (tied.id === claim.ix_id && tied.document.reference === null),
      )
      // What was derived once is derived again.
      assert.deepEqual(derive({ claim, known: documents, invoice: fields }).fields, fields)
    }),
  )
})

describe('mapClaim', () => {
  const read = (metadata: Record<string, unknown> | null | undefined) =>
    mapClaim(metadata as Record<string, string>, defaultKeys)
  const cases: [name: string, key: string, field: keyof Claim, values: [given: unknown, told: unknown][]][] =
    [
      [
        'a state',
        'ix_state',
        'state',
        [
          ['creating', 'creating'],
          [' synced ', 'synced'],
          ['failed', 'failed'],
          ['ignored', 'ignored'],
          ['Synced', null],
          ['not_synced', null],
          ['done', null],
          ['', null],
          [1, null],
          [{}, null],
          ['constructor', null],
        ],
      ],
      [
        'an id',
        'ix_id',
        'ix_id',
        [
          ['42', 42],
          [' 42 ', 42],
          ['9007199254740991', Number.MAX_SAFE_INTEGER],
          ['9007199254740992', null],
          ['99999999999999999999999', null],
          ['042', null],
          ['0', null],
          ['-1', null],
          ['4.2', null],
          ['4e2', null],
          ['0x10', null],
          ['٤٢', null],
          ['42; DROP', null],
          [42, null],
        ],
      ],
      [
        'a type',
        'ix_type',
        'ix_type',
        [
          ['InvoiceReceipt', 'InvoiceReceipt'],
          ['CreditNote', null],
          ['Receipt', null],
          ['invoice', null],
        ],
      ],
      [
        'a moment',
        'ix_created_at',
        'created_at',
        [
          ['2026-03-02T09:30:00.000Z', '2026-03-02T09:30:00.000Z'],
          ['2026-03-02T09:30Z', '2026-03-02T09:30:00.000Z'],
          ['2026-03-02T09:30:00+01:00', '2026-03-02T08:30:00.000Z'],
          ['2026-03-02T23:30:00-0330', '2026-03-03T03:00:00.000Z'],
          ['2026-03-02T09:30:00.123456789Z', '2026-03-02T09:30:00.123Z'],
          ['2026-03-02T09:30:00', null],
          ['2026-03-02', null],
          ['2026-02-30T00:00:00Z', null],
          ['2026-13-01T00:00:00Z', null],
          ['2026-03-02T25:00:00Z', null],
          ['2026-03-02T09:30:00+99:99', null],
          ['0000-01-01T00:00:00+14:00', null],
          ['9999-12-31T23:59:00-01:00', null],
          ['1772443800', null],
          ['yesterday', null],
          [1772443800, null],
        ],
      ],
      [
        'an error',
        'ix_error',
        'error',
        [
          [' Client is invalid ', 'Client is invalid'],
          ['a\0b', 'ab'],
          ['\ud800x', '\ufffdx'],
          ['   ', null],
          ['\0', null],
          [null, null],
        ],
      ],
    ]
  for (const [name, key, field, values] of cases)
    it(`reads ${name}, and nothing else for one`, () => {
      for (const [given, told] of values)
        assert.deepEqual(read({ [key]: given }), { ...noClaim, [field]: told }, JSON.stringify(given))
    })
  it('reads the moment of an attempt in the same way', () => {
    const { attempted_at } = read({ ix_attempted_at: '2026-03-02T10:30:00+01:00' })
    assert.equal(attempted_at, '2026-03-02T09:30:00.000Z')
  })
  it('finds nothing where nothing is', () => {
    for (const metadata of [null, undefined, {}, { state: 'synced', IX_ID: '4' }])
      assert.deepEqual(read(metadata), noClaim)
  })
  it('reads other keys when told so', () => {
    const keys = { ...defaultKeys, state: 'doc_state', ix_id: 'doc' }
    const claim = mapClaim({ doc_state: 'synced', doc: '7', ix_state: 'failed', ix_error: 'E' }, keys)
    assert.deepEqual(claim, { ...noClaim, state: 'synced', ix_id: 7, error: 'E' })
  })
  it('never fails, and tells only what fits, whatever is in the metadata', () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('synced', '7', '2026-03-02T09:30Z'),
    )
    const metadata = fc.dictionary(fc.constantFrom(...Object.values(defaultKeys), '__proto__'), text)
    fc.assert(
      fc.property(metadata, given => {
        const { ix_id, created_at, attempted_at, error } = read(given)
        assert.ok(ix_id === null || (Number.isSafeInteger(ix_id) && ix_id > 0))
        for (const moment of [created_at, attempted_at])
          assert.ok(moment === null || new Date(moment).toISOString() === moment)
        assert.ok(error === null || (error !== '' && error.isWellFormed() && !error.includes('\0')))
      }),
    )
  })
})

describe('the settings', () => {
  const readLinkRules = (isConnected: boolean) =>
    linkRulesOf(readSettings({}, settingGroups.link, { envFile: false }), isConnected)
  const readMetadataKeys = () =>
    readSettings({}, ['LINK_METADATA_KEYS'], { envFile: false }).LINK_METADATA_KEYS
  const set = (t: TestContext, env: Record<string, string>) => {
    for (const [name, value] of Object.entries(env)) process.env[name] = value
    t.after(() => {
      for (const name of Object.keys(env)) delete process.env[name]
    })
  }
  it('are the usual rules and keys when nothing is set', () => {
    assert.deepEqual(readLinkRules(true), defaultRules)
    assert.deepEqual(readLinkRules(false), { ...defaultRules, isConnected: false })
    assert.deepEqual(readMetadataKeys(), defaultKeys)
  })
  it('say what the convention is', t => {
    set(t, {
      DOCUMENT_REFERENCE: 'Stripe {id}, Order #{payment}',
      LINK_IGNORE_ZERO: 'on',
      LINK_IGNORE_BEFORE: '2026-01-01',
      LINK_CREATING_TIMEOUT: '2d',
      LINK_METADATA_KEYS: 'state=doc_state, ix_id=doc',
    })
    assert.deepEqual(readLinkRules(true), {
      ...templates('Stripe {id}', 'Order #{payment}'),
      ignoreZero: true,
      ignoreBefore: '2026-01-01',
      creatingTimeoutMs: 172_800_000,
      isConnected: true,
    })
    assert.deepEqual(readMetadataKeys(), { ...defaultKeys, state: 'doc_state', ix_id: 'doc' })
  })
  for (const references of [
    ',',
    'Stripe',
    '{id},Stripe',
    '{id},{id}',
    '{id}{payment}',
    '{id},',
    'Order {order}',
  ])
    it(`refuse references that cannot be: ${references}`, t => {
      set(t, { DOCUMENT_REFERENCE: references })
      assert.throws(
        () => readLinkRules(true),
        /DOCUMENT_REFERENCE must be different texts [^\n]+ like \{id\},Order #/,
      )
    })
  for (const keys of [
    'state',
    'state=',
    'state=a=b',
    'status=a',
    'state=a,state=b',
    'state=a,ix_id=a',
    'state=ix_id',
    'state=a[b]',
    `state=${'a'.repeat(41)}`,
    '__proto__=a',
    'state=a,',
  ])
    it(`refuse keys that cannot be: ${keys}`, t => {
      set(t, { LINK_METADATA_KEYS: keys })
      assert.throws(readMetadataKeys, /^Error: LINK_METADATA_KEYS must be pairs like [^\n]+$/)
    })
})
