/** Where the payment platform and the invoicing system disagree about an invoice. Pure. */
import { type Claim, type Document, noClaim } from '../document.ts'
import type { Invoice, InvoiceKey } from '../invoice.ts'
import type { LinkedInvoice } from '../store/document-store.ts'
import { ignoredBecause, type LinkRules } from './link.ts'
import { currencyOf, isSameAmount, writeAmount } from './money.ts'

export const differenceKinds = [
  'paid_without_document',
  'document_on_void',
  'total_differs',
  'stuck_creating',
  'failed',
  'tax_id_differs',
] as const
export type DifferenceKind = (typeof differenceKinds)[number]

export interface Difference extends InvoiceKey {
  kind: DifferenceKind
  number: string | null
  issued_at: string
  /** The document concerned; null when there is none. */
  ix_id: number | null
  /** For people. */
  detail: string
}

/** All there are, in the order of the kinds. */
export function findDifferences(linked: LinkedInvoice, rules: LinkRules, now: number): Difference[] {
  const invoice = JSON.parse(linked.summary) as Invoice
  const claim = linked.claim ?? noClaim
  const { customer_id, id, number, issued_at, ix_id } = invoice
  const found: Difference[] = []
  const add = (kind: DifferenceKind, detail: string | null) => {
    if (detail !== null) found.push({ kind, customer_id, id, number, issued_at, ix_id, detail })
  }
  const document = ix_id !== null && linked.document?.id === ix_id ? linked.document.document : null
  add('paid_without_document', findMissing(invoice, claim, document, rules))
  add('document_on_void', findOnVoid(invoice, document))
  // A canceled document says nothing any more: its numbers need not be right.
  const isCounted = document !== null && document.status !== 'canceled' && document.status !== 'deleted'
  if (isCounted) add('total_differs', compareTotals(invoice, document))
  if (ignoredBecause(invoice, claim, rules) === null) {
    if (ix_id === null) add('stuck_creating', findStuck(invoice, claim, rules, now))
    add('failed', findFailure(invoice, claim))
  }
  if (isCounted) add('tax_id_differs', compareTaxIds(invoice, linked.client_tax_id))
  return found
}

function findMissing(
  invoice: Invoice,
  claim: Claim,
  document: Document | null,
  rules: LinkRules,
): string | null {
  const { status, ix_sync_state, ix_id } = invoice
  if (status !== 'paid') return null
  if (ix_sync_state === 'synced') {
    const itsStatus = document?.status ?? invoice.ix_status
    const name = ix_id === null ? 'its document' : `document ${ix_id}`
    if (itsStatus === 'draft') return `paid, but ${name} is a draft`
    return itsStatus === 'canceled' || itsStatus === 'deleted' ? `paid, but ${name} is ${itsStatus}` : null
  }
  if (ix_sync_state !== 'not_synced' || ignoredBecause(invoice, claim, rules) !== null) return null
  return claim.ix_id === null
    ? 'paid, and there is no document'
    : `paid; document ${claim.ix_id} is recorded, but was never seen`
}

function findOnVoid({ status, ix_id, ix_status }: Invoice, document: Document | null): string | null {
  const itsStatus = document?.status ?? ix_status
  if (status !== 'void' || ix_id === null || itsStatus === 'canceled' || itsStatus === 'deleted') return null
  return `void, but document ${ix_id} is ${itsStatus ?? 'there'}`
}

function compareTotals({ total_cents, currency }: Invoice, document: Document): string | null {
  const both = `${writeAmount(total_cents, currency)} ${currency} at Stripe, ${[document.total, document.currency].filter(Boolean).join(' ')} on the document`
  const other = currencyOf(document.currency)
  if (other !== null && other !== currency) return `${both}: another currency`
  const isSame = isSameAmount(total_cents, currency, document.total)
  return isSame === null ? `${both}: the latter cannot be read` : isSame ? null : both
}

function findStuck(invoice: Invoice, claim: Claim, rules: LinkRules, now: number): string | null {
  if (claim.state !== 'creating') return null
  const since = claim.attempted_at ?? invoice.issued_at
  if (now - Date.parse(since) <= rules.creatingAtMost) return null
  return claim.attempted_at === null
    ? `in the making since nobody knows when; issued ${since}`
    : `in the making since ${since}`
}

function findFailure({ ix_sync_state }: Invoice, claim: Claim): string | null {
  if (ix_sync_state !== 'failed' || claim.state === 'creating') return null
  return claim.state === 'failed' || claim.ix_id === null
    ? (claim.error ?? 'no reason is recorded')
    : `document ${claim.ix_id} is recorded, but the invoicing system no longer has it`
}

function compareTaxIds({ customer_tax_id }: Invoice, other: string | null | undefined): string | null {
  if (!customer_tax_id || other === undefined || isSameTaxId(customer_tax_id, other ?? '')) return null
  return `${customer_tax_id} at Stripe, ${other || 'none'} of the document's client`
}

/** Whatever the separators and case; a country before it may be left out on one side, but not be another. */
export function isSameTaxId(a: string, b: string): boolean {
  const [left, right] = [bare(a), bare(b)]
  const without = (text: string) => text.replace(/^[A-Z]{2}(?=.)/, '')
  return left === right || without(left) === right || left === without(right)
}

function bare(text: string): string {
  return text
    .normalize('NFKC')
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
}
