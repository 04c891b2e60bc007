/** Data that linking reads from the store, and the names by which the store finds this data. */
import type { Claim, Document, Relations } from '../document.ts'
import type { Invoice } from '../invoice.ts'

export interface KnownDocument {
  id: number
  /** The document as last seen. Null when it was never seen. */
  document: Document | null
  /** Number of consecutive answers that there is no such document. */
  misses: number
  observed_stamp: number
  /**
   * Tax ID of the client on the document. If the document has none, the tax ID of the client's record when the document was issued. Null
   * when there is none or it was not read.
   */
  client_tax_id: string | null
  /** The document's QR code and related documents. Null or absent when they were not read. */
  relations?: Relations | null
}

/** An invoice of the payment platform, with what the platform records of its document. */
export interface Claimed {
  invoice: Invoice
  claim: Claim
  payments: readonly string[]
}

export interface TiedNames {
  documents: readonly number[]
  invoices: readonly string[]
}

/** Names by which the store finds invoices: claimed or linked documents, invoice IDs, payments and numbers. */
export interface InvoiceNames extends TiedNames {
  payments: readonly string[]
  numbers: readonly string[]
}

export interface DocumentNames {
  ids: readonly number[]
  /** Texts to find in the references and `proprietary_uid`s of documents. */
  references: readonly string[]
}
