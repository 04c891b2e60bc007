/** The part of the store's contract for documents, their links to invoices, and the journal. The API has no access to it. */
import type { Claim, Document, DocumentType, Relations } from '../domain/document.ts'
import type { Invoice, InvoiceDocument, InvoiceKey } from '../domain/invoice.ts'
import type { Claimed, DocumentNames, InvoiceNames, KnownDocument, TiedNames } from '../domain/link/known.ts'
import type { PaymentFacts } from '../domain/payment.ts'

/** A document of an invoice whose relations have to be read. */
export interface RelationsKey extends DocumentKey {
  hasQr: boolean
  /** True when only lists have returned the document. Lists omit some fields. */
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
  /** Number of consecutive answers without the document. Null when it was never asked for and never seen. */
  misses: number | null
  observed_stamp: number
}

/** One event in the history of an invoice. Times are in milliseconds. */
export interface JournalEntry extends InvoiceKey {
  /** Key of the entry, such as an event's ID. An entry with the same key is stored only once. */
  cause: string
  type: string
  /** Time by the clock of the system where the event happened. Null when unknown. */
  happened_at: number | null
  /** Time when the connector looked at the event. */
  at: number
  outcome: JournalOutcome
  detail: string
}

export const journalOutcomes = ['applied', 'unchanged', 'overlapped', 'ignored'] as const
export type JournalOutcome = (typeof journalOutcomes)[number]

/** An invoice with everything that is known of its document. */
export interface LinkedInvoice extends InvoiceKey {
  summary: string
  payment: PaymentFacts
  observed_stamp: number
  /** Null for an invoice that did not come from the payment platform, such as an imported invoice. */
  claim: Claim | null
  document: KnownDocument | null
  /** Tax ID of the client on the document. Undefined when the client was not read. */
  client_tax_id: string | null | undefined
}

/** A document that is dated in a given period, with the invoices linked to it. */
export interface DatedDocument {
  document: Document
  /** True when the invoicing system answered often enough that there is no such document. */
  isGone: boolean
  /** The document's QR code and related documents. Null when they were not read. */
  relations: Relations | null
  client_tax_id: string | null
  invoices: readonly Invoice[]
}

/**
 * A document with the documents that refer to it. A store returns it when one of them seems to be dated in the requested month, so the
 * caller checks their dates.
 */
export interface RelatedDocuments extends Omit<DatedDocument, 'isGone' | 'invoices'> {
  relations: Relations
  invoices: readonly { invoice: Invoice; payment: PaymentFacts }[]
}

/** A saved document. `before` is null when it was not stored before. */
export interface ReplacedDocument {
  before: Document | null
  after: Document
}

export interface DocumentWrites {
  /**
   * Saves documents. A document that was observed later stays unchanged, and so do fields that are not given. The relations of a changed
   * document are read again. Returns the documents that were new or differed from the stored ones.
   */
  saveDocuments(documents: readonly Document[], observedAt: number): Promise<ReplacedDocument[]>
  /**
   * Records the answer that there is no such document, which counts as a miss. Counts no miss when the document was already missed after
   * the stamp `unlessSince`.
   */
  missDocument(id: number, observedAt: number, unlessSince?: number): Promise<void>
  saveClient(id: number, taxId: string | null, observedAt: number): Promise<void>
  /**
   * Keeps the tax ID of a client that was read for the first time. Documents issued so far keep this tax ID, even when the client is edited
   * later.
   */
  keepClientTaxId(clientId: number, taxId: string | null): Promise<void>
  /** Returns null when the client was never asked for. `observed_stamp` is 0 until the client was read. */
  findClient(id: number): Promise<{ tax_id: string | null; observed_stamp: number } | null>
  /** Marks clients to be read, if they were not read yet. */
  askForClients(ids: readonly number[]): Promise<void>
  /** Records that relations were read. Null keeps the stored relations. */
  saveRelations(id: number, relations: Relations | null, observedAt: number): Promise<void>
  /** Returns documents and locks them until the transaction ends. No other transaction can decide about their owners meanwhile. */
  findDocuments(wanted: DocumentNames): Promise<KnownDocument[]>
  findClaimants(wanted: Omit<InvoiceNames, 'invoices'>): Promise<Claimed[]>
  /** Returns deleted invoices with one of these IDs, of any customer. */
  findTombstones(ids: readonly string[]): Promise<InvoiceKey[]>
  /** Returns the invoices of the payment platform that have one of the names. */
  findLinked(wanted: Partial<InvoiceNames>): Promise<InvoiceKey[]>
  /** Replaces the document's part of stored invoices, and nothing else. */
  saveDerivedLinks(invoices: readonly Relinked[]): Promise<void>
  /** Saves journal entries. Only the newest fifty entries of each invoice are kept. */
  saveEntries(entries: readonly JournalEntry[]): Promise<void>
}

export interface DocumentReads {
  /**
   * Returns documents that may still change, or documents dated in a period, last observed before a stamp. Sorted by ID, starting behind
   * `after`.
   */
  readDocuments(
    which: 'open' | { from: string; to: string },
    observedBefore: number,
    after: number,
    limit: number,
  ): Promise<DocumentKey[]>
  /** Returns the documents that invoices claim or are linked to, sorted by ID, starting behind `after`. */
  readClaimed(after: number, limit: number): Promise<ClaimedDocument[]>
  /** Returns clients that are marked to be read and were not read since `readBefore`, sorted by ID, starting behind `after`. */
  readClients(readBefore: number, after: number, limit: number): Promise<number[]>
  /**
   * Returns issued documents of invoices whose relations were not read since `readBefore`. Changed documents come first, then the newest.
   */
  readDueRelations(readBefore: number, limit: number): Promise<RelationsKey[]>
  /** Returns invoices whose document is recorded as being created. */
  readCreating(after: InvoiceKey | null, limit: number): Promise<InvoiceKey[]>
  /** Returns the day of the very first invoice in milliseconds. Null without any invoice. */
  readFirstIssued(): Promise<number | null>
  /** Returns invoices with what is known of their documents, sorted by key. A given `customerId` limits them to one customer. */
  readLinked(after: InvoiceKey | null, limit: number, customerId: string | null): Promise<LinkedInvoice[]>
  findLinkedById(invoiceId: string): Promise<LinkedInvoice[]>
  /** Returns committed documents by their IDs and references, sorted by ID. */
  findDocuments(wanted: DocumentNames): Promise<KnownDocument[]>
  /** Returns the invoices of the payment platform that claim one of the documents, or have one of the payments or numbers. */
  findClaimants(wanted: Omit<InvoiceNames, 'invoices'>): Promise<Claimed[]>
  /** Returns the documents of a client, sorted by ID, starting behind `after`. */
  readOfClient(clientId: number, after: number, limit: number): Promise<Document[]>
  /** Returns documents in force, sorted by ID, starting behind `after`. When `days` is given, only documents of these days are returned. */
  readInForce(
    after: number,
    limit: number,
    days: { from: string; to: string } | null,
  ): Promise<KnownDocument[]>
  /** Returns documents of a period with any status, sorted by day and ID, starting behind `after`. */
  readDated(
    days: { from: string; to: string },
    after: Pick<Document, 'date' | 'id'> | null,
    limit: number,
  ): Promise<DatedDocument[]>
  /**
   * Returns documents to which another document dated in the month refers. The month is written YYYY-MM. Sorted by ID, starting behind
   * `after`.
   */
  readRelated(month: string, after: number, limit: number): Promise<RelatedDocuments[]>
  /**
   * Returns which of the given documents are claimed by or linked to an invoice, and which of the given invoices came from the payment
   * platform.
   */
  findTied(wanted: TiedNames): Promise<TiedNames>
  /** Returns the journal of an invoice, the newest entry first. */
  readJournal(key: InvoiceKey): Promise<JournalEntry[]>
  /** Returns the key of a deleted invoice and the stamp of its deletion. Null when the invoice was not seen deleted. */
  findTombstone(invoiceId: string): Promise<(InvoiceKey & { observed_stamp: number }) | null>
}
