/** What is known of documents and invoices when they are linked: what the store finds, and what it is asked for. */
import type { Claim, Document, Relations } from '../document.ts'
import type { Invoice } from '../invoice.ts'

export interface KnownDocument {
  id: number
  /** As it was last seen; null when it never was. */
  document: Document | null
  /** Number of answers in a row that there is no such document. */
  misses: number
  observed_stamp: number
  /**
   * Tax ID of the client that it is made out to: the document's own, else its client's when it was issued, as far as that was seen.
   * Null when there is none, or it was not read.
   */
  client_tax_id: string | null
  /** Null or absent when they were not read. */
  relations?: Relations | null
}

/** An invoice from the payment platform, and what is recorded there of its document. */
export interface Claimed {
  invoice: Invoice
  claim: Claim
  /** IDs of its payments. */
  payments: readonly string[]
}

export interface TiedNames {
  documents: readonly number[]
  invoices: readonly string[]
}

/** What invoices are found by: documents that they claim or are tied to, their IDs, their payments and their numbers. */
export interface InvoiceNames extends TiedNames {
  payments: readonly string[]
  numbers: readonly string[]
}

export interface DocumentNames {
  ids: readonly number[]
  /** Texts of references and of `proprietary_uid`s. */
  references: readonly string[]
}
