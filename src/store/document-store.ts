/** The documents' part of the contract, out of the API's reach: documents, their ties to invoices, the journal. */
import type { Claim, Document, DocumentType, Relations } from '../domain/document.ts'
import type { Invoice, InvoiceDocument, InvoiceKey } from '../domain/invoice.ts'
import type { Claimed, DocumentNames, InvoiceNames, KnownDocument, TiedNames } from '../domain/link/known.ts'
import type { PaymentFacts } from '../domain/payment.ts'

/** A document of an invoice whose relations are to be read. */
export interface RelationsKey extends DocumentKey {
  hasQr: boolean
  /** Whether only lists brought it, and left fields out. */
  isPartial: boolean
}

export interface Relinked {
  invoice: Invoice
  document: InvoiceDocument | null
}

export interface DocumentKey {
  id: number
  type: DocumentType | null
}

export interface ClaimedDocument extends DocumentKey {
  /** How often in a row it was missed; null when it was never asked for, and never seen. */
  misses: number | null
  observed_stamp: number
}

/** One thing that happened to an invoice. Moments are in milliseconds. */
export interface JournalEntry extends InvoiceKey {
  /** Its key, such as an event's id: the same thing is kept once. */
  cause: string
  type: string
  /** Time by the clock of the system where it happened; null when not known. */
  happened_at: number | null
  /** When it was looked at here. */
  at: number
  outcome: JournalOutcome
  detail: string
}

export const journalOutcomes = ['applied', 'unchanged', 'overlapped', 'ignored'] as const
export type JournalOutcome = (typeof journalOutcomes)[number]

/** An invoice with all that is known of its document. */
export interface LinkedInvoice extends InvoiceKey {
  summary: string
  payment: PaymentFacts
  observed_stamp: number
  /** Null for an invoice that did not come from the payment platform, such as an imported one. */
  claim: Claim | null
  document: KnownDocument | null
  /** Tax ID of the client that the document is made out to; undefined when the client was not read. */
  client_tax_id: string | null | undefined
}

/** A document of a span of days, with the invoices that are tied to it. */
export interface DatedDocument {
  document: Document
  /** Whether the system answered often enough that there is no such document. */
  isGone: boolean
  /** Null when they were not read. */
  relations: Relations | null
  client_tax_id: string | null
  invoices: readonly Invoice[]
}

/** A document with others about it, of which one at least may carry a day of the asked month. */
export interface RelatedDocuments extends Omit<DatedDocument, 'isGone' | 'invoices'> {
  relations: Relations
  invoices: readonly { invoice: Invoice; payment: PaymentFacts }[]
}

/** `before` is null for one that was not stored. */
export interface ReplacedDocument {
  before: Document | null
  after: Document
}

export interface DocumentWrites {
  /**
   * A later observation stays, and so do fields that are not given. Relations of a changed document are due again. Returns those
   * that were new or not as they were stored.
   */
  saveDocuments(documents: readonly Document[], observedAt: number): Promise<ReplacedDocument[]>
  /** There is no such document. Not counted again when it was missed after `unlessSince` already. */
  missDocument(id: number, observedAt: number, unlessSince?: number): Promise<void>
  saveClient(id: number, taxId: string | null, observedAt: number): Promise<void>
  /** The tax ID of a client that was read for the first time: its documents issued so far keep it, whatever it becomes. */
  keepClientTaxId(clientId: number, taxId: string | null): Promise<void>
  /** Null when it is not wanted; without a moment when it was not read. */
  findClient(id: number): Promise<{ tax_id: string | null; observed_stamp: number } | null>
  /** Has clients read that were not yet. */
  askForClients(ids: readonly number[]): Promise<void>
  /** Null: those that are stored stay. */
  saveRelations(id: number, relations: Relations | null, observedAt: number): Promise<void>
  /** The documents are the transaction's alone until its end: no other decides at the same time whose they are. */
  findDocuments(wanted: DocumentNames): Promise<KnownDocument[]>
  findClaimants(wanted: Omit<InvoiceNames, 'invoices'>): Promise<Claimed[]>
  /** Deleted invoices with one of these IDs, of whatever customer. */
  findTombstones(ids: readonly string[]): Promise<InvoiceKey[]>
  /** The invoices from the payment platform that have one of the names. */
  findLinked(wanted: Partial<InvoiceNames>): Promise<InvoiceKey[]>
  /** Replaces the document's part of the invoices, and nothing else. Each is there already. */
  saveDerivedLinks(invoices: readonly Relinked[]): Promise<void>
  /** The newest fifty of an invoice are kept. */
  saveEntries(entries: readonly JournalEntry[]): Promise<void>
}

export interface DocumentReads {
  /** Documents that may still change, or of some days, last looked at before a stamp; in the order of their ids, after one. */
  readDocuments(
    which: 'open' | { from: string; to: string },
    observedBefore: number,
    after: number,
    limit: number,
  ): Promise<DocumentKey[]>
  /** The documents that invoices claim or are tied to, in the order of their ids, after one of them. */
  readClaimed(after: number, limit: number): Promise<ClaimedDocument[]>
  /** Clients that are wanted, not read since a moment; in the order of their ids, after one of them. */
  readClients(readBefore: number, after: number, limit: number): Promise<number[]>
  /** Issued documents of invoices whose relations were not read since a moment, those that changed first, then the newest. */
  readDueRelations(readBefore: number, limit: number): Promise<RelationsKey[]>
  /** Invoices whose document is claimed to be in the making. */
  readCreating(after: InvoiceKey | null, limit: number): Promise<InvoiceKey[]>
  /** The day of the first invoice of all, in milliseconds; null without any. */
  readFirstIssued(): Promise<number | null>
  /** Invoices with what is known of their documents, in the order of their keys; of one customer when one is given. */
  readLinked(after: InvoiceKey | null, limit: number, customerId: string | null): Promise<LinkedInvoice[]>
  findLinkedById(invoiceId: string): Promise<LinkedInvoice[]>
  /** Documents by their ids and their references, as committed, in the order of their ids. */
  findDocuments(wanted: DocumentNames): Promise<KnownDocument[]>
  /** The invoices from the payment platform that claim one of the documents, or have one of the payments or numbers. */
  findClaimants(wanted: Omit<InvoiceNames, 'invoices'>): Promise<Claimed[]>
  /** Documents of a client, in the order of their ids, after one of them. */
  readOfClient(clientId: number, after: number, limit: number): Promise<Document[]>
  /** Documents that are in force, in the order of their ids, after one of them; of a span of days when one is given. */
  readInForce(
    after: number,
    limit: number,
    days: { from: string; to: string } | null,
  ): Promise<KnownDocument[]>
  /** Documents of a span of days, of any status, in the order of their days and ids, after one of them. */
  readDated(
    days: { from: string; to: string },
    after: Pick<Document, 'date' | 'id'> | null,
    limit: number,
  ): Promise<DatedDocument[]>
  /** Documents about which another one is dated in a month, YYYY-MM, in the order of their ids, after one of them. */
  readRelated(month: string, after: number, limit: number): Promise<RelatedDocuments[]>
  /** Names of the documents that an invoice claims or is tied to, and of the invoices that came from the payment platform. */
  findTied(wanted: TiedNames): Promise<TiedNames>
  /** Newest first. */
  readJournal(key: InvoiceKey): Promise<JournalEntry[]>
  /** When an invoice was seen deleted; null when it was not. */
  findTombstone(invoiceId: string): Promise<(InvoiceKey & { observed_stamp: number }) | null>
}
