/** The domain: the certified document of an invoice, and what ties the two together. */

/** The types that certify an invoice; credit and debit notes and receipts are about one, and are none. */
export const documentTypes = [
  'Invoice',
  'InvoiceReceipt',
  'SimplifiedInvoice',
  'VatMossInvoice',
  'CashInvoice',
] as const
export type DocumentType = (typeof documentTypes)[number]

/** A document as the invoicing system had it at one moment. */
export interface Document {
  id: number
  type: DocumentType
  /** The system's own word; `deleted` when the document is known to be gone. */
  status: string
  /** What it refers to: an invoice's id, when it was made by the convention. */
  reference: string | null
  /** What its maker calls it, where its maker does: some put the invoice's id here. */
  uid?: string
  /** As printed, such as "6/G"; null before it is issued. */
  number: string | null
  /** The day it carries, as YYYY-MM-DD. */
  date: string | null
  /** Decimal text in the currency's major unit, such as "12.34". */
  total: string
  /** The currency's name, such as "Euro". */
  currency: string | null
  client_id: number | null
}

export const claimedStates = ['creating', 'synced', 'failed', 'ignored'] as const
export type ClaimedState = (typeof claimedStates)[number]

/** What whoever creates documents recorded beside the invoice. Null where nothing, or nothing readable, is recorded. */
export interface Claim {
  state: ClaimedState | null
  ix_id: number | null
  ix_type: DocumentType | null
  /** ISO 8601, UTC, with milliseconds. */
  created_at: string | null
  attempted_at: string | null
  error: string | null
}

export const noClaim: Claim = {
  state: null,
  ix_id: null,
  ix_type: null,
  created_at: null,
  attempted_at: null,
  error: null,
}

/** A document of these certifies nothing: a draft not yet, a canceled one no longer. */
export const notInForce: readonly string[] = ['draft', 'canceled', 'deleted']

export function isInForce({ status }: Document): boolean {
  return !notInForce.includes(status)
}

/** So often in a row a document is missed before it counts as gone. */
export const missesToBelieve = 2

/** Those that still change, in the lists' words; any other is looked at again only now and then. */
export const openInLists = ['draft', 'sent'] as const

/** The same as documents may have them: `sent` is the lists' word for `final`. */
export const openDocumentStatuses = ['draft', 'final', 'sent'] as const
