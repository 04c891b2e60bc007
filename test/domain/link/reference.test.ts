/** References as companies write them: an invoice's ID, a payment of it, or its number, in the forms of the templates. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Claim, noClaim } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import type { Claimed } from '../../../src/domain/link/known.ts'
import {
  defaultTemplates,
  namesIn,
  namesOf,
  readTemplate,
  referencesTo,
} from '../../../src/domain/link/reference.ts'
import { derive, id, idOf, nothing, seen, templates } from '../../support/worlds/linking.ts'
import { makeInvoice } from '../../support/worlds/records.ts'

const other = (
  fields: Partial<Invoice>,
  payments: readonly string[] = [],
  claim: Partial<Claim> = {},
): Claimed => ({
  invoice: makeInvoice({ id: 'in_other', customer_id: 'cus_other', ...fields }),
  claim: { ...noClaim, ...claim },
  payments,
})

describe('a reference to a payment', () => {
  const payments = ['pi_0', 'pi_1']
  const paid = (reference: string | null, uid?: string) => [
    seen({ reference, ...(uid !== undefined && { uid }) }),
  ]

  it('ties the document to the only invoice that has this payment', () => {
    for (const reference of payments) {
      const { fields, why } = derive({ payments, known: paid(reference) })
      assert.equal(fields.ix_id, 10)
      assert.equal(why, `there is a document referring to ${reference}, its payment, and it is final`)
    }
    const byUid = derive({ payments, known: paid('PO 17', 'pi_1') })
    assert.equal(byUid.fields.ix_id, 10)
    assert.match(byUid.why, /whose proprietary_uid is pi_1, its payment/)
  })
  it('must match a template exactly', () => {
    const rules = templates('{id}', 'Order #{payment}')
    const tieOf = (reference: string, given = rules) =>
      idOf({ payments, known: paid(reference), rules: given })
    assert.equal(tieOf('Order #pi_1'), 10)
    for (const reference of [
      'pi_1',
      'order #pi_1',
      'Order #pi_1 ',
      'Order pi_1',
      'Order #pi_11',
      'Order #pi_',
      'Order #PI_1',
    ])
      assert.equal(tieOf(reference), null, reference)
    assert.equal(tieOf('pi_1', templates('{id}')), null)
    assert.equal(tieOf('pi_1', templates('{id}', 'Order #{payment}', '{payment}')), 10)
  })
  it('ties the document to no invoice when several invoices have the payment, and gives this reason', () => {
    for (const [others, words] of [
      [[other({}, ['pi_1'])], 'in_other has'],
      [[other({}, ['pi_1']), other({ id: 'in_a' }, ['pi_1', 'pi_9'])], 'in_a and in_other have'],
    ] as const) {
      const { fields, why } = derive({ payments, known: paid('pi_1'), others })
      assert.deepEqual(fields, { ix_sync_state: 'not_synced', ...nothing })
      assert.equal(why, `document 10 names payment pi_1, which ${words} too: it is tied to none of them`)
    }
    assert.equal(idOf({ payments, known: paid('pi_1'), others: [other({}, ['pi_2'])] }), 10)
  })
  it('ties the document to the invoice that records it, when several invoices have the payment', () => {
    const claim = { ix_id: 10 }
    const known = paid('pi_1')
    assert.equal(idOf({ payments, claim, known, others: [other({}, ['pi_1'])] }), 10)
    assert.equal(idOf({ payments, known, others: [other({}, ['pi_1'], claim)] }), null)
    const earlier = other({ issued_at: '2020-01-01T00:00:00.000Z' }, ['pi_1'], claim)
    const { fields, refusal } = derive({ payments, claim, known, others: [earlier] })
    assert.deepEqual([fields.ix_sync_state, refusal?.kind], ['failed', 'claimed_twice'])
    const stranger = other({ issued_at: '2020-01-01T00:00:00.000Z' }, [], claim)
    assert.equal(idOf({ payments, claim, known, others: [stranger, other({ id: 'in_b' }, ['pi_1'])] }), 10)
  })
  it('wins over an invoice that records the document but has another payment', () => {
    const { fields, why, refusal } = derive({
      claim: { ix_id: 10 },
      known: paid('pi_1'),
      others: [other({}, ['pi_1'])],
    })
    assert.equal(fields.ix_sync_state, 'failed')
    assert.equal(why, 'document 10 is recorded, but its reference names payment pi_1 of in_other')
    assert.equal(refusal?.kind, 'claim_contradicted')
  })
  it('leaves the document to the invoice that records it, when no invoice has the payment', () => {
    assert.equal(idOf({ payments, known: paid('pi_unknown') }), null)
    assert.equal(idOf({ payments, claim: { ix_id: 10 }, known: paid('pi_unknown') }), 10)
  })
  it('is ignored when the reference or the proprietary_uid has an invoice ID', () => {
    assert.equal(idOf({ payments, known: paid('pi_1', 'in_other') }), null)
    assert.equal(idOf({ payments, known: paid('in_other', 'pi_1') }), null)
    assert.equal(idOf({ payments: [], known: paid('pi_9', id), others: [other({}, ['pi_9'])] }), 10)
  })
  it('beside another payment in the proprietary_uid ties the document only to an invoice that has both', () => {
    assert.equal(idOf({ payments, known: paid('pi_0', 'pi_1') }), 10)
    assert.equal(idOf({ payments, known: paid('pi_0', 'pi_9'), others: [other({}, ['pi_9'])] }), null)
    assert.equal(idOf({ payments, known: paid('pi_0', 'pi_unknown') }), 10)
  })
})

describe('a reference to an invoice number', () => {
  const rules = templates('{id}', '{payment}', '{number}')
  const invoice = { number: 'ABCD-0001', customer_tax_id: 'PT509442013' }
  const numbered = (reference: string | null, client_tax_id: string | null = '509442013', uid?: string) => [
    { ...seen({ reference, ...(uid !== undefined && { uid }) }), client_tax_id },
  ]

  it('ties the document when the customer is the document’s client and a template contains {number}', () => {
    const { fields, why } = derive({ invoice, rules, known: numbered('ABCD-0001') })
    assert.equal(fields.ix_id, 10)
    assert.equal(why, 'there is a document referring to ABCD-0001, its number, and it is final')
    assert.equal(idOf({ invoice, known: numbered('ABCD-0001') }), null)
    assert.equal(idOf({ invoice, rules, known: numbered('PO 17', '509442013', 'ABCD-0001') }), 10)
    for (const reference of ['abcd-0001', 'ABCD-0001 ', 'ABCD-00011', 'ABCD-000', '0001'])
      assert.equal(idOf({ invoice, rules, known: numbered(reference) }), null, reference)
    assert.equal(
      idOf({ invoice, rules: templates('Fatura {number}.'), known: numbered('Fatura ABCD-0001.') }),
      10,
    )
  })
  it('never ties a document of another client, and gives the reason', () => {
    const cases: [customer: string | null, client: string | null, why: string][] = [
      ['PT509442013', '123456789', "its client's tax ID is not the customer's"],
      ['PT509442013', null, "its client's tax ID is not known"],
      [null, '509442013', 'the customer has no tax ID to compare'],
      ['PT509442013', '999999990', 'its client is anonymous'],
      ['999999990', '999999990', 'its client is anonymous'],
      ['PT999999990', 'PT999999990', 'its client is anonymous'],
    ]
    for (const [customer_tax_id, client, why] of cases) {
      const derived = derive({
        invoice: { ...invoice, customer_tax_id },
        rules,
        known: numbered('ABCD-0001', client),
      })
      assert.deepEqual(derived.fields, { ix_sync_state: 'not_synced', ...nothing })
      assert.equal(derived.why, `document 10 names number ABCD-0001, but ${why}`)
    }
  })
  it('ties the document unless two invoices of the same client have this number', () => {
    const known = numbered('ABCD-0001')
    const stranger = other({ number: 'ABCD-0001', customer_tax_id: 'PT123456789' })
    assert.equal(idOf({ invoice, rules, known, others: [stranger] }), 10)
    const twin = other({ number: 'ABCD-0001', customer_tax_id: '509 442 013' })
    const { fields, why } = derive({ invoice, rules, known, others: [twin] })
    assert.equal(fields.ix_id, null)
    assert.match(why, /names number ABCD-0001, which in_other has too/)
    assert.equal(idOf({ invoice, rules, known, claim: { ix_id: 10 }, others: [twin] }), 10)
  })
  it('is ignored when an invoice has the payment that the proprietary_uid names', () => {
    const known = numbered('ABCD-0001', '509442013', 'pi_9')
    assert.equal(idOf({ invoice, rules, known }), 10)
    const { fields, why } = derive({ invoice, rules, known, others: [other({}, ['pi_9'])] })
    assert.equal(fields.ix_id, null)
    assert.equal(
      why,
      'document 10 names number ABCD-0001, but its proprietary_uid names payment pi_9 of in_other',
    )
  })
  it('ties the document to the invoice of either number when the reference fits two templates', () => {
    const both = templates('Nº {number}', '{number}')
    for (const number of ['7', 'Nº 7'])
      assert.equal(idOf({ invoice: { ...invoice, number }, rules: both, known: numbered('Nº 7') }), 10)
    const twin = other({ number: 'Nº 7', customer_tax_id: '509442013' })
    assert.equal(
      idOf({ invoice: { ...invoice, number: '7' }, rules: both, known: numbered('Nº 7'), others: [twin] }),
      null,
    )
  })
})

describe('the templates of references', () => {
  it('have exactly one name in braces, with any other text around it', () => {
    assert.deepEqual(readTemplate('Order #{payment}'), {
      text: 'Order #{payment}',
      kind: 'payment',
      before: 'Order #',
      after: '',
    })
    for (const text of ['{id}', '{payment}', '{number}', 'Nº {number}/x'])
      assert.equal(readTemplate(text)?.text, text)
    for (const text of [
      '',
      'Stripe',
      '{}',
      '{ID}',
      '{id}{id}',
      '{id} {payment}',
      '{id} {',
      '{{id}}',
      '{invoice}',
      '{id}\n',
    ])
      assert.equal(readTemplate(text), null, text)
  })
  it('lead from an invoice to its references, and from each reference back to the invoice', () => {
    const given = templates('Nº {id}', '{payment}', 'Order #{payment}', '{number}').references
    const named = { invoice: { id: 'in_A-b_9', number: 'N-1' }, payments: ['pi_1', 'ch_2'] }
    const references = referencesTo(namesOf(named), given)
    assert.deepEqual(references.toSorted(), ['N-1', 'Nº in_A-b_9', 'Order #pi_1', 'in_A-b_9', 'pi_1'])
    for (const reference of references)
      for (const fields of [{ reference }, { reference: null, uid: reference }])
        assert.ok(
          namesIn(fields, given).some(({ value }) => ['in_A-b_9', 'pi_1', 'N-1'].includes(value)),
          reference,
        )
  })
  it('find no invoice and no payment in a text that fits no template', () => {
    for (const reference of [null, '', 'in_', 'in', '6/G', 'in_a b', 'Stripe', 'pi_', 'ch_1'])
      assert.deepEqual(namesIn({ reference }, defaultTemplates), [], String(reference))
  })
  it('find nothing in a reference where the texts before and after the name overlap', () => {
    const given = templates('a-{number}-b', 'aa{number}aa').references
    for (const reference of ['a-b', 'a--b', 'aa', 'aaa', 'aaaa'])
      assert.deepEqual(namesIn({ reference }, given), [], reference)
    assert.equal(namesIn({ reference: 'aaaaa' }, given)[0]?.value, 'a')
  })
})
