/** Answers of the platform about one invoice, and what was stored of it before. */
import { noClaim } from '../../../src/domain/document.ts'
import { completePaymentFacts } from '../../../src/domain/payment.ts'
import { nothingUnread, type PlatformInvoice, type Unread } from '../../../src/sources/platform-invoice.ts'
import type { PriorInvoice, StampedAnswer } from '../../../src/sync/invoices/decide.ts'
import { makeInvoice } from './records.ts'

export type Fields = Partial<ReturnType<typeof makeInvoice>>

export function told(fields: Fields = {}, unread: Partial<Unread> = {}): PlatformInvoice {
  const { ix_sync_state, ix_id, ix_status, ix_created_at, ...invoice } = makeInvoice({
    id: 'in_1',
    number: '1',
    ...fields,
  })
  return {
    invoice,
    lines: [],
    claim: noClaim,
    payment: completePaymentFacts(invoice),
    unread: { ...nothingUnread, ...unread },
  }
}

export function answer(
  given: Partial<StampedAnswer> & { fields?: Fields; unread?: Partial<Unread> } = {},
): StampedAnswer {
  const { fields = {}, unread, ...rest } = given
  const customer_id = fields.customer_id ?? 'cus_a'
  const found = told({ ...fields, customer_id }, unread)
  return { id: 'in_1', customer_id, found, askedAt: 20, answeredAt: 21, ...rest }
}

/** Asked for before 10, and answered at 10. */
export function stored(fields: Fields = {}, more: Partial<PriorInvoice> = {}): PriorInvoice {
  const customer_id = fields.customer_id ?? 'cus_a'
  const invoice = makeInvoice({ id: 'in_1', number: '1', ...fields, customer_id })
  const previous = { invoice, payment: completePaymentFacts(invoice) }
  return { customer_id, id: 'in_1', previous, claim: noClaim, document: null, answeredAt: 10, ...more }
}

export const gone = (more: Partial<StampedAnswer> = {}) => answer({ found: null, ...more })
export const deleted = (more: Partial<PriorInvoice> = {}) => stored({}, { previous: null, ...more })
