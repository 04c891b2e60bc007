/** Compares the credit notes of an invoice with the credit notes of its document. Pure. */
import { type Document, nameDocument, type Relations } from '../../domain/document.ts'
import { creditedCents, describeInvoiceDocument, isFullyCredited } from '../../domain/document-json.ts'
import type { Invoice } from '../../domain/invoice.ts'
import { writeAmount } from '../../domain/money.ts'
import { type PaymentFacts, toPayCents } from '../../domain/payment.ts'
import { scaleOf } from './compare-taxes.ts'
import type { Finding } from './difference-kinds.ts'

/** Whether credit notes in force cover the whole document. */
export function isCredited(invoice: Invoice, document: Document, relations: Relations | null): boolean {
  return isFullyCredited(describeInvoiceDocument(invoice, document, relations), invoice.currency)
}

/**
 * Returns null when the document's credit notes were not read, or when their currency cannot be compared. `allowed`: the difference that
 * counts as rounding.
 */
export function compareCredits(
  invoice: Invoice,
  facts: PaymentFacts,
  document: Document,
  relations: Relations | null,
  allowed: number,
  platform: string,
): Finding | null {
  const { currency, status } = invoice
  const scale = scaleOf(invoice, document)
  if (relations === null || status === 'void' || scale === null) return null
  const there = creditedCents(describeInvoiceDocument(invoice, document, relations), currency)
  const own = facts.pre_payment_credit_cents + facts.post_payment_credit_cents
  const apart = Math.abs(own - there)
  if (apart <= scale.slack) return null
  const both = `credit notes of ${writeAmount(own, currency)} ${currency} at ${platform}, of ${writeAmount(there, currency)} in force about ${nameDocument(document)}`
  if (apart <= allowed + scale.slack) return ['rounding', both]
  if (own > there) return ['credit_note_missing', both]
  const toPay = toPayCents(invoice, facts)
  if (toPay === 0 || !isCredited(invoice, document, relations)) return ['credit_note_unmatched', both]
  const rest = `${writeAmount(toPay, currency)} ${currency}`
  return ['open_credited', `open with ${rest} to pay, but ${nameDocument(document)} is credited in full`]
}
