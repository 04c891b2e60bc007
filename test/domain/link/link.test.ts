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

test('each sync state without a document comes with its reason', () => {
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
    [{ rules: { isConnected: false } }, 'no invoicing system is connected, so the last known state stays'],
    [
      { claim: { ix_id: 10 }, rules: { isConnected: false } },
      'document 10 is recorded, but was not seen yet',
    ],
    [{}, 'no document claims it, and none is recorded'],
  ]
  for (const [given, why] of reasons) assert.equal(derive(given).why, why)
})

describe('the rows of the table of sync states', () => {
  it('row 1: an invoice is synced by the document with its recorded ID, whatever the document refers to', () => {
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
  it('row 1: an invoice without a recorded ID is synced by a document that refers to it', () => {
    const { fields, why } = derive({ known: [seen()] })
    assert.deepEqual([fields.ix_sync_state, fields.ix_id], ['synced', 10])
    assert.match(why, /referring to in_link/)
  })
  it('row 1: an invoice stays synced when its document is canceled', () => {
    const { fields } = derive({ known: [seen({ status: 'canceled' })] })
    assert.deepEqual([fields.ix_sync_state, fields.ix_status], ['synced', 'canceled'])
  })
  it('row 1: an unknown status of a document is passed on unchanged', () => {
    assert.equal(derive({ known: [seen({ status: 'second_copy' })] }).fields.ix_status, 'second_copy')
  })
  it('row 2: an invoice that is recorded as ignored is ignored', () => {
    assert.deepEqual(derive({ claim: { state: 'ignored' } }).fields, { ix_sync_state: 'ignored', ...nothing })
  })
  it('row 2: an invoice with a total of zero is ignored only with LINK_IGNORE_ZERO', () => {
    assert.equal(stateOf({ invoice: { total_cents: 0 }, rules: { ignoreZero: true } }), 'ignored')
    assert.equal(stateOf({ invoice: { total_cents: 0 } }), 'not_synced')
    for (const total_cents of [1, -1])
      assert.equal(stateOf({ invoice: { total_cents }, rules: { ignoreZero: true } }), 'not_synced')
  })
  it('row 2: an invoice is ignored when it was issued before the day of LINK_IGNORE_BEFORE', () => {
    const rules = { ignoreBefore: '2026-03-02' }
    assert.equal(stateOf({ invoice: { issued_at: '2026-03-01T23:59:59.999Z' }, rules }), 'ignored')
    assert.equal(stateOf({ invoice: { issued_at: '2026-03-02T00:00:00.000Z' }, rules }), 'not_synced')
  })
  it('row 3: an invoice that is recorded as failed is failed, with the recorded reason', () => {
    const { fields, why } = derive({ claim: { state: 'failed', error: 'no series' } })
    assert.deepEqual(fields, { ix_sync_state: 'failed', ...nothing })
    assert.match(why, /no series/)
    assert.match(derive({ claim: { state: 'failed' } }).why, /no reason given/)
  })
  it('row 4: an invoice that is recorded as creating is creating', () => {
    assert.deepEqual(derive({ claim: creating }).fields, { ix_sync_state: 'creating', ...nothing })
  })
  it('row 4: an invoice fails when it has been creating for longer than the time-out', () => {
    assert.equal(stateOf({ claim: overdue }), 'failed')
    assert.equal(stateOf({ claim: { ...creating, attempted_at: '2026-03-10T11:00:00.000Z' } }), 'creating')
    assert.equal(stateOf({ claim: overdue, rules: { creatingTimeoutMs: 2 * 3_600_000 } }), 'creating')
  })
  it('row 4: an invoice stays creating when its attempt has no date or a date in the future', () => {
    assert.equal(stateOf({ claim: { state: 'creating' } }), 'creating')
    assert.equal(stateOf({ claim: { ...creating, attempted_at: '2027-01-01T00:00:00.000Z' } }), 'creating')
  })
  it('row 5: an invoice fails and loses its link when its recorded document no longer exists', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    for (const known of [seen({}, 2), seen({ status: 'deleted' }), unseen(10, 2)])
      for (const claim of [{ ix_id: 10 }, { ix_id: 10, state: 'synced' }] as const)
        assert.deepEqual(derive({ invoice, claim, known: [known] }).fields, {
          ix_sync_state: 'failed',
          ...nothing,
        })
  })
  it('an invoice keeps its document when the invoice records another document that no longer exists', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(idOf({ invoice, claim: { ix_id: 9 }, known: [unseen(9, 2)] }), 10)
  })
  it('row 6: an invoice without a document and without a record is not_synced', () => {
    assert.deepEqual(derive({}).fields, { ix_sync_state: 'not_synced', ...nothing })
    assert.equal(stateOf({ claim: { state: 'synced' } }), 'not_synced')
  })
  it('row 6: an invoice is not_synced while its recorded document was never read', () => {
    assert.match(derive({ claim: { ix_id: 10, state: 'synced' } }).why, /10 is recorded, but was not seen/)
    assert.equal(stateOf({ claim: { ix_id: 10 }, known: [unseen(10, 1)] }), 'not_synced')
  })
})

describe('when two rows of the table of sync states fit an invoice', () => {
  // Each fits one rule alone; of two, the one that stands first must win.
  const rules = { ignoreZero: true }
  const zero = { total_cents: 0 }
  const gone = [seen({ id: 9, reference: null }, 2)]
  const pairs: [name: string, given: Case, state: string][] = [
    [
      'row 1 wins over row 2 with a recorded state',
      { claim: { state: 'ignored' }, known: [seen()] },
      'synced',
    ],
    ['row 1 wins over row 2 with a rule', { invoice: zero, rules, known: [seen()] }, 'synced'],
    ['row 1 wins over row 3', { claim: { state: 'failed' }, known: [seen()] }, 'synced'],
    ['row 1 wins over row 4', { claim: creating, known: [seen()] }, 'synced'],
    ['row 1 wins over row 4 after the time-out', { claim: overdue, known: [seen()] }, 'synced'],
    ['row 1 wins over row 5', { claim: { ix_id: 9 }, known: [...gone, seen()] }, 'synced'],
    ['row 2 wins over row 3', { invoice: zero, rules, claim: { state: 'failed' } }, 'ignored'],
    ['row 2 wins over row 4', { invoice: zero, rules, claim: overdue }, 'ignored'],
    ['row 2 wins over row 5', { claim: { state: 'ignored', ix_id: 9 }, known: gone }, 'ignored'],
    ['row 2 wins over row 6', { invoice: zero, rules }, 'ignored'],
    ['row 3 wins over row 5', { claim: { state: 'failed', error: 'E', ix_id: 9 }, known: gone }, 'failed'],
    ['row 4 wins over row 5', { claim: { ...creating, ix_id: 9 }, known: gone }, 'creating'],
    ['row 5 wins over row 6', { claim: { ix_id: 9 }, known: gone }, 'failed'],
  ]
  for (const [name, given, state] of pairs) it(name, () => assert.equal(stateOf(given), state))
  it('row 3 wins over row 5 and gives the recorded reason', () =>
    assert.match(derive({ claim: { state: 'failed', error: 'E', ix_id: 9 }, known: gone }).why, /E$/))
})

describe('the link of an invoice and its document', () => {
  it('is never made by a reference that is only similar to the invoice’s ID', () => {
    for (const reference of ['IN_LINK', 'in_link ', ' in_link', 'in_lin', 'in_link2', 'x in_link', '', null])
      assert.equal(stateOf({ known: [seen({ reference })] }), 'not_synced', String(reference))
  })
  it('ends after two misses of a document that was read before, not after one', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    const known = [seen({ status: 'settled' }, 1)]
    assert.equal(stateOf({ invoice, claim: { ix_id: 10 }, known }), 'synced')
    assert.equal(stateOf({ invoice, claim: { ix_id: 10 }, known: [seen({}, 2)] }), 'failed')
    assert.equal(stateOf({ invoice, known: [seen({}, 2)] }), 'not_synced')
  })
  it('is kept after one miss of a document that was never read', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    const { fields, why } = derive({ invoice, claim: { state: 'failed' }, known: [unseen(10, 1)] })
    assert.deepEqual(fields, { ...withDocument, ix_id: 10 })
    assert.match(why, /missed once/)
  })
  it('is kept while its document was not read yet', () => {
    for (const claim of [{}, { state: 'failed' }, { state: 'ignored' }, { ix_id: 5 }] as const) {
      const { fields, why } = derive({ invoice: withDocument, claim })
      assert.deepEqual(fields, withDocument)
      assert.match(why, /4711 was not read yet/)
    }
  })
  it('ends at once when the document has the status deleted', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(stateOf({ invoice, known: [seen({ status: 'deleted' })] }), 'not_synced')
    assert.equal(stateOf({ invoice, claim: { ix_id: 10 }, known: [seen({ status: 'deleted' })] }), 'failed')
  })
  it('ends when the document no longer refers to the invoice and is not recorded', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(stateOf({ invoice, known: [seen({ reference: 'in_other' })] }), 'not_synced')
  })
  it('is kept when no invoicing system is connected', () => {
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

  it('names an invoice only by its exact ID, when the reference names no invoice', () => {
    for (const reference of [null, 'Stripe', `${id} `]) {
      const { fields, why } = withUid({ reference })
      assert.deepEqual([fields.ix_sync_state, fields.ix_id], ['synced', 10])
      assert.match(why, /whose proprietary_uid is in_link/)
    }
    for (const uid of [`${id} `, ` ${id}`, `x-${id}`, 'pi_1'])
      assert.equal(withUid({ uid, reference: null }).fields.ix_id, null, uid)
  })

  it('is ignored when the reference names another invoice', () => {
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

  it('the invoice that the reference names owns the document, and another invoice’s claim fails', () => {
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
  it('an invoice that owns the document by a claim loses it when the reference names another invoice', () => {
    const invoice = { ...withDocument, ix_id: 10 }
    assert.equal(stateOf({ invoice, claim, known: [seen({ reference: 'in_other' })] }), 'failed')
  })
  it('an invoice gets the document that refers to it, not a claimed document that names another invoice', () => {
    const known = [seen({ reference: 'in_other' }), seen({ id: 11 })]
    assert.equal(idOf({ claim, known }), 11)
  })
  it('the claiming invoice that was issued first owns the document, and at equal times the lowest ID', () => {
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
  it('no invoice owns the document when its customer’s tax ID differs from the client’s', () => {
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
  it('an invoice with a contradicted claim keeps its recorded state of failed, creating or ignored', () => {
    const known = [seen({ reference: 'in_other' })]
    assert.equal(stateOf({ claim: { ...claim, state: 'ignored' }, known }), 'ignored')
    assert.equal(stateOf({ claim: { ...claim, ...creating }, known }), 'creating')
    assert.match(derive({ claim: { ...claim, state: 'failed', error: 'E' }, known }).why, /E$/)
  })
})

describe('when several documents belong to an invoice', () => {
  it('the recorded document is chosen first, even when it is canceled', () => {
    const known = [seen({ id: 3 }), seen({ id: 7, status: 'canceled' }), seen({ id: 5 })]
    const { fields, candidates } = derive({ claim: { ix_id: 7 }, known })
    assert.deepEqual([fields.ix_id, fields.ix_status], [7, 'canceled'])
    assert.deepEqual(candidates, [7, 3, 5])
  })
  it('the document with the lowest ID that is not canceled is chosen when none is recorded', () => {
    const known = [seen({ id: 12 }), seen({ id: 2, status: 'canceled' }), seen({ id: 5 }), seen({ id: 100 })]
    assert.deepEqual(derive({ known }).candidates, [5, 12, 100, 2])
    assert.equal(idOf({ known, claim: { ix_id: 99 } }), 5)
  })
  it('the document with the lowest ID is chosen when all documents are canceled', () => {
    assert.equal(idOf({ known: [9, 8].map(id => seen({ id, status: 'canceled' })) }), 8)
  })
  it('all candidates are named when there are two or more', () => {
    const candidatesOf = (...ids: number[]) => derive({ known: ids.map(id => seen({ id })) }).candidates
    assert.deepEqual(candidatesOf(10, 11), [10, 11])
    assert.deepEqual(candidatesOf(10), [])
  })
  it('documents that no longer exist are not candidates', () => {
    const known = [seen({ id: 1, status: 'deleted' }), seen({ id: 2 }, 2), seen({ id: 3 })]
    const { fields, candidates } = derive({ known })
    assert.deepEqual([fields.ix_id, candidates], [3, []])
  })
  it('a second copy is not a candidate beside its original, whatever the original’s status', () => {
    const copy = seen({ id: 1, status: 'second_copy', series_number: 'G/6' })
    for (const status of ['final', 'settled', 'canceled']) {
      const { fields, candidates } = derive({ known: [copy, seen({ id: 2, status, series_number: 'G/6' })] })
      assert.deepEqual([fields.ix_id, fields.ix_status, candidates], [2, status, []])
    }
  })
  it('a second copy is chosen after documents of other numbers and before canceled ones', () => {
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
  it('the choice does not depend on the order in which documents are read', () => {
    const all = [1, 2, 3, 4, 5].map(id => seen({ id, status: id % 2 ? 'canceled' : 'final' }))
    const expected = derive({ known: all })
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), known => {
        assert.deepEqual(derive({ known }), expected)
      }),
    )
  })
})

describe('the field ix_created_at', () => {
  const created_at = '2026-03-04T05:06:07.890Z'
  const createdOf = (claim: Partial<Claim>, date: string | null) =>
    derive({ claim, known: [seen({ date })] }).fields.ix_created_at
  it('is taken from the metadata first', () =>
    assert.equal(createdOf({ created_at }, '2026-03-03'), created_at))
  it('is the document’s day when the metadata has no moment', () =>
    assert.equal(createdOf({}, '2026-03-03'), '2026-03-03T00:00:00.000Z'))
  it('is null when neither the metadata nor the document has a day', () =>
    assert.equal(createdOf({}, null), null))
  it('is null without a document, even when the metadata has a moment', () =>
    assert.equal(derive({ claim: { created_at, state: 'failed' } }).fields.ix_created_at, null))
})

describe('the template of a reference', () => {
  it('may have other text around the ID, which must then match exactly', () => {
    const rules = templates('Stripe {id}.')
    assert.equal(stateOf({ known: [seen({ reference: 'Stripe in_link.' })], rules }), 'synced')
    for (const reference of [id, 'Stripe in_link', 'in_link.', 'stripe in_link.'])
      assert.equal(stateOf({ known: [seen({ reference })], rules }), 'not_synced', reference)
  })
  it('ends the links by an earlier template when it changes, except links to recorded documents', () => {
    const [invoice, rules] = [{ ...withDocument, ix_id: 10 }, templates('new {id}')]
    const without = derive({ invoice, rules, known: [seen()] })
    assert.equal(without.fields.ix_sync_state, 'not_synced')
    assert.equal(without.why, 'document 10 names in_link, but DOCUMENT_REFERENCE allows no plain ID')
    assert.equal(stateOf({ invoice, rules, known: [seen()], claim: { ix_id: 10 } }), 'synced')
  })
})

test('an invoice has a document only in the state synced', () => {
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
    it(`reads ${name} of the metadata, and rejects every other value`, () => {
      for (const [given, told] of values)
        assert.deepEqual(read({ [key]: given }), { ...noClaim, [field]: told }, JSON.stringify(given))
    })
  it('reads the time of an attempt in the same way as the time of creation', () => {
    const { attempted_at } = read({ ix_attempted_at: '2026-03-02T10:30:00+01:00' })
    assert.equal(attempted_at, '2026-03-02T09:30:00.000Z')
  })
  it('returns an empty claim for metadata without known keys', () => {
    for (const metadata of [null, undefined, {}, { state: 'synced', IX_ID: '4' }])
      assert.deepEqual(read(metadata), noClaim)
  })
  it('reads the keys that the settings name', () => {
    const keys = { ...defaultKeys, state: 'doc_state', ix_id: 'doc' }
    const claim = mapClaim({ doc_state: 'synced', doc: '7', ix_state: 'failed', ix_error: 'E' }, keys)
    assert.deepEqual(claim, { ...noClaim, state: 'synced', ix_id: 7, error: 'E' })
  })
  it('accepts any metadata without an error, and returns only valid values', () => {
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

describe('the settings of the link', () => {
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
  it('have the default rules and keys when no variable is set', () => {
    assert.deepEqual(readLinkRules(true), defaultRules)
    assert.deepEqual(readLinkRules(false), { ...defaultRules, isConnected: false })
    assert.deepEqual(readMetadataKeys(), defaultKeys)
  })
  it('read every rule from its variable', t => {
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
    it(`refuse the invalid templates ${references}`, t => {
      set(t, { DOCUMENT_REFERENCE: references })
      assert.throws(
        () => readLinkRules(true),
        /DOCUMENT_REFERENCE must be different texts [^\n]+ for example \{id\},Order #/,
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
    it(`refuse the invalid metadata keys ${keys}`, t => {
      set(t, { LINK_METADATA_KEYS: keys })
      assert.throws(readMetadataKeys, /^Error: LINK_METADATA_KEYS must be none or pairs such as [^\n]+$/)
    })
})
