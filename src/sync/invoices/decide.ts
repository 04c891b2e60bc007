/**
 * Decides what the platform's answer about one invoice changes in the store. Pure: no store, no network, no clock.
 *
 * Each answer has two stamps, from before its question and from after its arrival. Its content was true at some moment between the
 * two. An answer that was asked for after the stored answer had arrived is newer. Of two answers that overlap, either may be newer.
 * If they differ, the platform is asked again, and the new answer is newer than both.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Claim } from '../../domain/document.ts'
import { type Invoice, type InvoiceKey, type InvoiceRecord, invoiceFields } from '../../domain/invoice.ts'
import { changedFacts, completePaymentFacts } from '../../domain/payment.ts'
import { completeRecord, type PlatformInvoice, type Previous } from '../../sources/platform-invoice.ts'
import type { InvoiceAnswer } from '../../sources/source.ts'
import type { RefusalReason } from '../../store/connector-store.ts'

export interface StampedAnswer extends InvoiceAnswer {
  askedAt: number
  answeredAt: number
}

/** An invoice as it is stored under one customer. */
export interface PriorInvoice extends InvoiceKey {
  /** Null when the invoice was deleted. */
  previous: Previous | null
  /** Null when the invoice did not come from the payment platform. */
  claim: Claim | null
  /** The part of the API's JSON that describes the invoice's document. */
  document: string | null
  answeredAt: number
}

export type Decision =
  | {
      action: 'save'
      record: InvoiceRecord
      before: PriorInvoice | null
      formerly: readonly PriorInvoice[]
    }
  | { action: 'delete'; key: InvoiceKey; before: PriorInvoice | null }
  /** The answer is not stored. A stored invoice stays as it is. */
  | { action: 'refuse'; reason: RefusalReason; key: InvoiceKey | null; isStored: boolean; why: string }
  | { action: 'overlap'; key: InvoiceKey }
  | { action: 'nothing' }

/** `stored`: the invoice under each customer that ever had it. */
export function decide(answer: StampedAnswer, stored: readonly PriorInvoice[]): Decision {
  const { id, found } = answer
  const customer_id = ownerOf(answer, stored)
  if (customer_id === null)
    return found === null
      ? { action: 'nothing' }
      : { action: 'refuse', reason: 'no_customer', key: null, isStored: false, why: 'it has no customer' }
  const key = { customer_id, id }
  const own = stored.find(each => each.customer_id === customer_id) ?? null
  if (stored.some(({ answeredAt }) => answer.askedAt < answeredAt))
    return showsTheSame(answer, stored) ? { action: 'nothing' } : { action: 'overlap', key }
  if (found === null) return decideGone(key, own)
  if ('refusal' in found) {
    const isStored = stored.some(({ previous }) => previous !== null)
    return { action: 'refuse', reason: found.refusal, key, isStored, why: `none of ours: ${found.refusal}` }
  }
  const formerly = stored.filter(each => each.customer_id !== customer_id && each.previous !== null)
  const record = recordOf(found, customer_id, own)
  const [former] = formerly
  // The document's fields move with the invoice to the new customer.
  if (former?.previous) record.invoice = { ...record.invoice, ...documentFieldsOf(former.previous.invoice) }
  return { action: 'save', record, before: own, formerly }
}

/**
 * Returns the customer of an answer. For a deleted invoice, the platform
 * may name no customer or a later one, so the stored customer counts.
 */
function ownerOf({ customer_id, found }: StampedAnswer, stored: readonly PriorInvoice[]): string | null {
  const known = stored.findLast(({ previous }) => previous !== null)?.customer_id ?? null
  return found === null ? (known ?? customer_id) : (customer_id ?? known)
}

/**
 * Only a draft can be deleted. When another invoice is not found, the API key is wrong or may not see it.
 * An invoice that was never stored counts as a draft, so that its tombstone refuses late answers about it.
 */
function decideGone(key: InvoiceKey, before: PriorInvoice | null): Decision {
  const status = before?.previous?.invoice.status ?? 'draft'
  if (status === 'draft') return { action: 'delete', key, before }
  const why = `not found, though it is ${status}: only a draft can be deleted`
  return { action: 'refuse', reason: 'missing', key, isStored: true, why }
}

/**
 * Whether an answer surely shows the invoice as it is stored. Lines are not
 * compared. The lines of a draft may change, so the result for a draft is false.
 */
function showsTheSame({ customer_id, found }: StampedAnswer, stored: readonly PriorInvoice[]): boolean {
  const [known, ...others] = stored.filter(({ previous }) => previous !== null)
  if (found === null || known === undefined) return found === null && known === undefined
  if ('refusal' in found || known.customer_id !== (customer_id ?? known.customer_id) || others.length > 0)
    return false
  const record = recordOf(found, known.customer_id, known)
  return record.invoice.status !== 'draft' && !isDifferent(known, record)
}

/** Builds the record to store under this customer, even when the platform no longer names a customer. */
function recordOf(found: PlatformInvoice, customer_id: string, own: PriorInvoice | null): InvoiceRecord {
  const { invoice, ...rest } = found
  return completeRecord({ ...rest, invoice: { ...invoice, customer_id } }, own?.previous ?? null)
}

/**
 * Whether a record differs from the stored invoice. Lines are not compared.
 * A stored invoice that did not come from the platform never differs.
 */
export function isDifferent(before: PriorInvoice | null, record: InvoiceRecord): boolean {
  if (before === null || before.previous === null) return true
  if (before.claim === null) return false
  return describeChange(before, record) !== null || !isDeepStrictEqual(before.claim, record.claim)
}

/** Describes a change in words. Null when nothing differs except lines. */
export function describeChange(
  stored: PriorInvoice | null,
  { invoice, payment }: InvoiceRecord,
): string | null {
  const before = stored?.previous ?? null
  if (before === null) return `new, ${invoice.status}`
  const facts = payment ?? completePaymentFacts(invoice)
  const names = [
    ...invoiceFields.filter(name => before.invoice[name] !== invoice[name]),
    ...changedFacts(before.payment ?? facts, facts),
  ]
  if (names.length === 0) return null
  const others = names.filter(name => name !== 'status').join(', ')
  const status =
    before.invoice.status === invoice.status ? '' : `${before.invoice.status} → ${invoice.status}`
  return [status, others && `changed: ${others}`].filter(Boolean).join('; ')
}

function documentFieldsOf({ ix_sync_state, ix_id, ix_status, ix_created_at }: Invoice) {
  return { ix_sync_state, ix_id, ix_status, ix_created_at }
}
