/** Differences between the two systems, planted for reconciliations to find. */

import { integer, letters, pick } from '../random.ts'
import type { StripeInvoice } from '../stripe/objects.ts'
import { type Ledger, nothing } from './ledger.ts'
import type { IxDocument } from './objects.ts'
import { fittingStatus, recordCreating, recordFailed } from './states.ts'

export const differenceKinds = [
  /** A paid invoice without a document or a claim. */
  'paid_without_document',
  /** A document in force of a void invoice. */
  'live_document_of_void',
  /** A total that is too high by the smallest unit of the currency. */
  'total_by_smallest_unit',
  'total',
  /** An attempt of three days ago that never ended. */
  'stuck_creating',
  /** An attempt that failed, with its reason. */
  'failed',
  /** A client with another tax id than the invoice. */
  'tax_id',
  /** A paid invoice whose document is only final. */
  'paid_not_settled',
  /** A second document in force for one invoice. */
  'several_documents',
  /** A document in force that refers to an invoice which never was. */
  'document_of_unknown_invoice',
  /** A document in force that refers to nothing. */
  'document_without_invoice',
] as const
export type DifferenceKind = (typeof differenceKinds)[number]

export interface Planted {
  kind: DifferenceKind
  /** Null when the difference is that there is none. */
  invoice_id: string | null
  document_id: number | null
}

/** Returns the place of the difference, if it is not at the invoice and its document. */
type Plant = (
  ledger: Ledger,
  invoice: StripeInvoice,
  document: IxDocument,
) => Pick<Planted, 'invoice_id' | 'document_id'> | undefined

const threeDays = 3 * 86_400_000

const plants: Record<DifferenceKind, Plant> = {
  paid_without_document(ledger, invoice, document) {
    unlink(ledger, invoice, document)
  },
  live_document_of_void(ledger, _invoice, document) {
    ledger.put({ ...document, status: 'final' })
  },
  paid_not_settled(ledger, _invoice, document) {
    ledger.put({ ...document, status: 'final' })
  },
  several_documents(ledger, invoice, { status }) {
    ledger.issue(invoice, { status })
  },
  document_of_unknown_invoice(ledger, invoice) {
    const reference = `in_1${letters(ledger.random, 24)}`
    return { invoice_id: reference, document_id: ledger.issue(invoice, { status: 'settled', reference }).id }
  },
  document_without_invoice(ledger, invoice) {
    const { id } = ledger.issue(invoice, { status: 'settled', reference: null })
    return { invoice_id: null, document_id: id }
  },
  total_by_smallest_unit(ledger, _invoice, document) {
    ledger.raise(document, 1)
  },
  total(ledger, _invoice, document) {
    ledger.raise(document, integer(ledger.random, 500, 9_999))
  },
  stuck_creating(ledger, invoice, document) {
    unlink(ledger, invoice, document)
    recordCreating(ledger, invoice, threeDays)
  },
  failed(ledger, invoice, document) {
    unlink(ledger, invoice, document)
    recordFailed(ledger, invoice)
  },
  tax_id(ledger, invoice, document) {
    // A client of its own, so that the customer's other documents stay right.
    const client = ledger.addClient(invoice)
    const fiscal_id = String(integer(ledger.random, 200_000_000, 299_999_999))
    ledger.clients.set(client.id, { ...client, fiscal_id })
    ledger.put({ ...document, client: { ...document.client, id: client.id, fiscal_id } })
  },
}

function unlink(ledger: Ledger, invoice: StripeInvoice, document: IxDocument): void {
  ledger.remove(document.id)
  ledger.ofInvoice.delete(invoice.id)
  ledger.record(invoice.id, nothing)
}

/** Whether the difference can be planted there. */
function fits(kind: DifferenceKind, invoice: StripeInvoice): boolean {
  if (kind === 'live_document_of_void') return invoice.status === 'void'
  if (kind === 'tax_id') return invoice.status !== 'void' && (invoice.customer_tax_ids ?? []).length > 0
  if (kind === 'paid_without_document' || kind === 'paid_not_settled') return invoice.status === 'paid'
  return invoice.status !== 'void' && invoice.status !== 'draft'
}

/** Plants one at the given invoice, or at any where it fits and nothing differs yet (`isOrdinary`). */
export function plantDifference(
  ledger: Ledger,
  kind: DifferenceKind,
  isOrdinary: (invoiceId: string) => boolean,
  invoiceId?: string,
): Planted {
  const { account, random, ofInvoice, documents } = ledger
  const found: [StripeInvoice, IxDocument][] = []
  for (const id of invoiceId === undefined ? ofInvoice.keys() : [invoiceId]) {
    const invoice = account.invoices.get(id)
    const document = documents.get(ofInvoice.get(id) ?? 0)
    if (invoice === undefined || document === undefined || !isOrdinary(id)) continue
    if (fits(kind, invoice) && document.status === fittingStatus(invoice)) found.push([invoice, document])
  }
  if (found.length === 0)
    throw new Error(`There is no ${invoiceId ?? 'invoice'} with a matching document where ${kind} fits.`)
  const [invoice, document] = pick(random, found)
  const elsewhere = plants[kind](ledger, invoice, document)
  if (elsewhere !== undefined) return { kind, ...elsewhere }
  return { kind, invoice_id: invoice.id, document_id: documents.has(document.id) ? document.id : null }
}
