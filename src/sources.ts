/** What the API asks of the two upstream systems while a client waits. The connectors implement it. */
import type { Document, DocumentType } from './document.ts'
import type { Invoice, InvoiceRecord, Line } from './invoice.ts'

/** A PDF on its way. The reader destroys `body` when the client goes away. */
export interface Pdf {
  body: NodeJS.ReadableStream
  /** In bytes, when the upstream tells. */
  size: number | null
}

export interface PaymentPlatform {
  /** All the lines of an invoice, in order; null when the platform does not know the invoice. Rejects with a `SourceError`. */
  fetchLines(invoiceId: string, signal: AbortSignal): Promise<readonly Line[] | null>
  /** The invoice's PDF as the platform has it now. Rejects with a `SourceError`. */
  openPdf(invoiceId: string, signal: AbortSignal): Promise<Pdf>
}

/** An invoice as the platform had it at one moment, not yet one of ours. */
export interface Observation {
  id: string
  /** Whose it is; null when the platform does not say, as of an invoice that is gone. */
  customer_id: string | null
  /**
   * Makes it a record, given what is stored of it; or says in a word why it is none of ours. Null when the platform no
   * longer has the invoice.
   */
  map: ((previous: Invoice | null) => InvoiceRecord | { refusal: string }) | null
}

export interface ObservationPage {
  observations: readonly Observation[]
  /** Where the next page begins; null on the last. */
  next: string | null
  /** When the last of the page was created, by the platform's clock, in seconds; 0 on an empty page. */
  reached: number
}

/** Something happened to an invoice, or to a customer and so to all of the customer's invoices. */
export interface Notification {
  /** The event's own id: the same event may come twice. */
  id: string
  /** The platform's own word, such as invoice.paid. */
  type: string
  /** When it happened by the platform's clock, in seconds. */
  created: number
  invoice_id: string | null
  customer_id: string | null
}

export interface NotificationPage {
  notifications: readonly Notification[]
  next: string | null
  /** What the platform's clock said, in seconds. */
  now: number
}

/** What the connector asks of a payment platform. Each call is paced and retried; what remains is a `SourceError`. */
export interface BillingSource {
  /** Invoices of the whole account, newest first; of one customer when one is given. Lines are complete, or null. */
  listInvoices(after: string | null, customerId?: string): Promise<ObservationPage>
  fetchInvoice(id: string, customerId: string | null): Promise<Observation>
  /** About when the first invoice was created, in seconds: enough to tell how far a list has come. Null without any. */
  estimateFirst(): Promise<number | null>
  /** What happened since a moment of the platform's clock, newest first. */
  listNotifications(since: number, after: string | null): Promise<NotificationPage>
}

/** Which documents a list is to hold. Those of every certifying type; of every status unless some are given. */
export interface DocumentQuery {
  /** Days as YYYY-MM-DD, both inclusive, of the date that a document carries. */
  from?: string
  to?: string
  /** In the list's own words: what a document calls `final`, the list calls `sent`. */
  statuses?: readonly string[]
  /** Those that were put away: no other list holds them. */
  isArchived?: boolean
}

/** A record that does not fit what it should be. */
export interface Misfit {
  /** Null when not even this can be read. */
  id: number | null
  reason: string
}

export interface DocumentPage {
  documents: readonly Document[]
  misfits: readonly Misfit[]
  /** How many pages there are, and how many documents on all of them. */
  pages: number
  total: number
}

/** Whom a document is made out to. */
export interface DocumentClient {
  id: number
  tax_id: string | null
}

/**
 * What the connector asks of an invoicing system. Each call is paced and retried; what remains is a `SourceError`. Null
 * is a successful answer that there is no such thing, and never a failure.
 */
export interface DocumentSource {
  /** `page` counts from 1. A document that was just made may be missing from a list for some seconds. */
  listDocuments(query: DocumentQuery, page: number): Promise<DocumentPage>
  /** Asks for every type in turn when the type is not known. */
  fetchDocument(id: number, type: DocumentType | null): Promise<Document | null>
  fetchClient(id: number): Promise<DocumentClient | null>
}

export interface InvoicingSystem {
  /** The certified document's PDF. Rejects with a `SourceError`. */
  openPdf(ixId: number, signal: AbortSignal): Promise<Pdf>
}

/** Why a source gave no answer: the same four outcomes whatever the upstream. */
export type SourceFailure = 'missing' | 'not_ready' | 'timeout' | 'failed'

/** What a failure is about: the one record that was asked for, what the key may see, or the source as a whole. */
export type FailureScope = 'record' | 'access' | 'source'

export class SourceError extends Error {
  readonly failure: SourceFailure
  readonly scope: FailureScope
  /** With `not_ready`: after how many seconds it may be ready. */
  readonly retryAfter: number | undefined

  constructor(
    failure: SourceFailure,
    message: string,
    options: { cause?: unknown; retryAfter?: number; scope?: FailureScope } = {},
  ) {
    super(message, { cause: options.cause })
    this.failure = failure
    this.scope = options.scope ?? 'source'
    this.retryAfter = options.retryAfter
  }
}
