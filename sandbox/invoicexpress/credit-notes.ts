/** Credit notes of documents. They repeat the invoice's credit notes at Stripe. */
import { decimalsOf } from '../../src/domain/money.ts'
import type { StripeInvoice } from '../stripe/objects.ts'
import type { Ledger } from './ledger.ts'
import { chargedBy, type IxDocument, shareOf, toCents, toPay } from './objects.ts'

/** Issues a credit note about a document. `cents` is its amount in the smallest unit of the invoice's currency. */
export function issueNote(
  ledger: Ledger,
  document: IxDocument,
  cents: number,
  { total }: StripeInvoice,
): IxDocument {
  const share = cents / total
  const { multicurrency } = document
  const parts = shareOf(document, share)
  // The credit note's total is exactly `cents`, so its taxes take the rounding difference.
  const charged = multicurrency === undefined ? cents / 100 : chargedBy(parts)
  const taxes = toCents(charged - parts.before_taxes) / 100
  const type = document.type === 'VatMossInvoice' ? 'VatMossCreditNote' : 'CreditNote'
  const note = ledger.put({
    ...parts,
    id: ledger.nextId(),
    type,
    status: 'final',
    sequence_number: ledger.number(type),
    reference: null,
    proprietary_uid: null,
    taxes,
    total: toPay({ ...parts, taxes }),
  })
  ledger.owners.set(note.id, document.id)
  return note
}

export function notesOf({ owners, documents }: Ledger, documentId: number): IxDocument[] {
  const ids = [...owners].flatMap(([id, owner]) => (owner === documentId ? id : []))
  const notes = ids.flatMap(id => documents.get(id) ?? [])
  return notes.filter(({ type, status }) => type.endsWith('CreditNote') && status !== 'canceled')
}

/**
 * Issues a credit note when Stripe has credited more than the document's credit notes. Its amount is the difference. Returns whether a
 * credit note was issued.
 */
export function followCredits(ledger: Ledger, invoice: StripeInvoice, document: IxDocument): boolean {
  const { pre_payment_credit_notes_amount: before, post_payment_credit_notes_amount: after } = invoice
  if (invoice.status === 'void' || before + after === 0 || !/^(final|settled)$/.test(document.status))
    return false
  const credited = notesOf(ledger, document.id).reduce((sum, note) => sum + creditedBy(note), 0)
  if (before + after <= credited) return false
  issueNote(ledger, document, before + after - credited, invoice)
  return true
}

/** Returns the credited amount in the smallest unit of the invoice's currency. */
function creditedBy(note: IxDocument): number {
  const { multicurrency } = note
  if (multicurrency === undefined) return toCents(chargedBy(note))
  return Math.round(multicurrency.total * 10 ** decimalsOf(multicurrency.code))
}
