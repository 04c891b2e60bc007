/** An invoice, what is known of its documents and of other invoices, and the link that follows. */
import { type Claim, type Document, noClaim } from '../../../src/domain/document.ts'
import type { Invoice } from '../../../src/domain/invoice.ts'
import { deriveLink } from '../../../src/domain/link/derive-link.ts'
import type { Claimed, KnownDocument } from '../../../src/domain/link/known.ts'
import { defaultRules, type LinkRules } from '../../../src/domain/link/link.ts'
import { readTemplate, type Template } from '../../../src/domain/link/reference.ts'
import { makeInvoice } from './records.ts'

export const now = Date.parse('2026-03-10T12:00:00.000Z')
export const id = 'in_link'

export function makeDocument(fields: Partial<Document> = {}): Document {
  return {
    id: 10,
    type: 'Invoice',
    status: 'final',
    reference: id,
    number: '6/G',
    date: '2026-03-03',
    total: '123.00',
    currency: 'Euro',
    client_id: null,
    ...fields,
  }
}

export const seen = (fields: Partial<Document> = {}, misses = 0): KnownDocument => {
  const document = makeDocument(fields)
  return { id: document.id, document, misses, observed_stamp: 1, client_tax_id: null }
}
export const unseen = (id: number, misses: number): KnownDocument => ({
  id,
  document: null,
  misses,
  observed_stamp: 1,
  client_tax_id: null,
})

export interface Case {
  invoice?: Partial<Invoice>
  claim?: Partial<Claim>
  known?: readonly KnownDocument[]
  rules?: Partial<LinkRules>
  /** IDs of its payments. */
  payments?: readonly string[]
  /** Other invoices that claim one of the documents, or have a payment or a number that one names. */
  others?: readonly Claimed[]
}

export function derive({
  invoice = {},
  claim = {},
  known = [],
  rules = {},
  payments = [],
  others = [],
}: Case) {
  const own = { invoice: makeInvoice({ id, ...invoice }), claim: { ...noClaim, ...claim }, payments }
  return deriveLink(own, known, { ...defaultRules, ...rules }, now, others)
}

export const templates = (...texts: string[]) => ({
  references: texts.map(text => readTemplate(text) as Template),
})

export const stateOf = (given: Case) => derive(given).fields.ix_sync_state
export const idOf = (given: Case) => derive(given).fields.ix_id
export const nothing = { ix_id: null, ix_status: null, ix_created_at: null }
