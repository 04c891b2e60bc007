/** What the API asks of the two upstream systems while a client waits. The connectors implement it. */
import type { Document, DocumentType } from './document.ts'
import type { Invoice, InvoiceRecord, InvoiceStatus, Line } from './invoice.ts'

/** A PDF on its way. The reader destroys `body` when the client goes away. */
export interface Pdf {
  body: NodeJS.ReadableStream
  /** In bytes, when the upstream tells. */
  size: number | null
}

/** What the API heeds before it asks. */
interface Guarded {
  /** How often it may be asked within a second, for lines and for PDFs each; as often as needed when not given. */
  perSecond?: number
  /** Why nothing is asked of it right now: it wanted a pause, or failed too often. Then nobody need wait for a turn. */
  refusal?(): SourceError | null
}

export interface PaymentPlatform extends Guarded {
  /** All the lines of an invoice, in order; null when the platform does not know the invoice. Rejects with a `SourceError`. */
  fetchLines(invoiceId: string, signal: AbortSignal): Promise<readonly Line[] | null>
  /** The invoice's PDF as the platform has it now. Rejects with a `SourceError`. */
  openPdf(invoiceId: string, signal: AbortSignal): Promise<Pdf>
}

/** Why an invoice of the platform's is none of ours. */
export type Refusal = 'preview' | 'no_customer' | 'invalid_customer' | 'unknown_status'

/** An invoice as the platform had it at one moment, not yet one of ours. */
export interface Observation {
  id: string
  /** Whose it is; null when the platform does not say, as of an invoice that is gone. */
  customer_id: string | null
  /** When it was created, by the platform's clock in seconds; absent for an invoice that is gone. */
  created?: number
  /**
   * Makes it a record, given what is stored of it; or says in a word why it is none of ours. Null when the platform no
   * longer has the invoice.
   */
  map: ((previous: Invoice | null) => InvoiceRecord | { refusal: Refusal }) | null
}

/** A record of the platform's that does not fit what an invoice is: it may when it is asked for again. */
export interface Unfit {
  id: string
  reason: string
}

/** Which invoices a list is to hold: all of the account when nothing is given. */
export interface ListFilter {
  customerId?: string
  status?: InvoiceStatus
  /** Created from this moment on, and before that one, by the platform's clock in seconds. */
  from?: number
  before?: number
}

/** What happened just now goes before what is merely listed; what is looked through again goes last, and slowly. */
export type Urgency = 'now' | 'soon' | 'slowly'

export interface ObservationPage {
  observations: readonly Observation[]
  /** Those on the page that do not fit. When none fits, the call fails instead: that says more of the platform. */
  unfit: readonly Unfit[]
  /** How many records on the page have no id to keep them by; none when not given. */
  nameless?: number
  /** Where the next page begins; null on the last. */
  next: string | null
  /** When the first and the last of the page were created, by the platform's clock, in seconds; 0 on an empty page. */
  began: number
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
  /** Of a customer: only drafts follow what changed. All of the customer's invoices may, when not given. */
  only?: 'draft'
}

export interface NotificationPage {
  notifications: readonly Notification[]
  next: string | null
  /** What the platform's clock said, in seconds. */
  now: number
}

/** How an upstream system is called. */
export interface SourceIdentity {
  /** For people, as in "Stripe". */
  name: string
  /** What its account and its records are stored under, such as `stripe`. */
  system: string
  /** What the names of its streams begin with. */
  streamPrefix: string
}

export interface SourceIdentities {
  billing: SourceIdentity
  documents: SourceIdentity
}

/** What the connector asks of a payment platform. Each call is paced and retried; what remains is a `SourceError`. */
export interface BillingSource extends SourceIdentity {
  /** For how many days the platform keeps what happened. */
  eventsKeptDays: number
  /** How often everything is to be listed again, in milliseconds, where events may pass changes over; once a day when not given. */
  relistEveryMs?: number
  /** What the key should be allowed to and is not, as a sentence; null when nothing lacks, as far as it was asked for. */
  lacks?(): string | null
  /** Invoices, newest first. Lines are complete, or null. */
  listInvoices(after: string | null, filter?: ListFilter, urgency?: Urgency): Promise<ObservationPage>
  /** Rejects with an `UnfitRecord` when what the platform sent is none. */
  fetchInvoice(id: string, customerId: string | null, urgency?: Urgency): Promise<Observation>
  /** What happened since a moment of the platform's clock, newest first. */
  listNotifications(since: number, after: string | null): Promise<NotificationPage>
  /** Whose invoices these are. */
  identify(): Promise<BillingAccount>
}

/** An account of a payment platform. What the key may not read is null. */
export interface BillingAccount {
  id: string | null
  mode: 'live' | 'test' | null
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
export interface DocumentSource extends SourceIdentity {
  /** `page` counts from 1. A document that was just made may be missing from a list for some seconds. */
  listDocuments(query: DocumentQuery, page: number): Promise<DocumentPage>
  /** Asks for every type in turn when the type is not known. */
  fetchDocument(id: number, type: DocumentType | null): Promise<Document | null>
  fetchClient(id: number): Promise<DocumentClient | null>
}

export interface InvoicingSystem extends Guarded {
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
  /** After how many seconds a new try makes sense; undefined when it does not pass by itself, or nobody knows. */
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

/** The platform answered, and what it sent for one record does not fit. */
export class UnfitRecord extends SourceError {
  constructor(message: string) {
    super('failed', message)
  }
}

/** Null when the source does not know what was asked for. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof SourceError && error.failure === 'missing') return null
    throw error
  }
}
