/** The contracts of the two upstream systems, for the API and for the connector. */
import type { Document, DocumentType, Relations } from '../domain/document.ts'
import type { InvoiceStatus, Line } from '../domain/invoice.ts'
import type { PlatformInvoice } from './platform-invoice.ts'

/** A PDF on its way. The reader destroys `body` when the client goes away. */
export interface Pdf {
  body: NodeJS.ReadableStream
  /** Bytes; null when the upstream does not name them. */
  size: number | null
}

/** Limits that the API obeys. */
interface Guarded {
  /** Maximum of calls a second, for lines and for PDFs each. Absent: unlimited. */
  perSecond?: number
  /** The reason for which it is not called right now: it asked for a pause, or failed too often. Then no request queues. */
  refusal?(): SourceError | null
}

export interface PaymentPlatform extends Guarded {
  /** All the lines of an invoice, in order; null when the platform does not know the invoice. Rejects with a `SourceError`. */
  fetchLines(invoiceId: string, signal: AbortSignal): Promise<readonly Line[] | null>
  /** The invoice's PDF as the platform has it now. Rejects with a `SourceError`. */
  openPdf(invoiceId: string, signal: AbortSignal): Promise<Pdf>
  /**
   * Address of the platform's own page where the invoice can be paid; null when it cannot be. It holds a secret: never
   * stored or logged. Rejects with a `SourceError`.
   */
  findPaymentPage(invoiceId: string, signal: AbortSignal): Promise<string | null>
}

/** The reason for which an invoice of the platform is left out. */
export type Refusal = 'preview' | 'no_customer' | 'invalid_customer' | 'unknown_status'

/** The platform's answer about one invoice, mapped whole. */
export interface InvoiceAnswer {
  id: string
  /** Its customer; null when the platform names none, as of an invoice that is gone. */
  customer_id: string | null
  /** The invoice, or the reason for leaving it out. Null when the platform no longer has it. */
  found: PlatformInvoice | { refusal: Refusal } | null
}

/** A record of the platform's that does not fit what an invoice is: it may when it is asked for again. */
export interface Unfit {
  id: string
  reason: string
}

/** The filter of a list of invoices. Empty: all of the account. */
export interface ListFilter {
  customerId?: string
  status?: InvoiceStatus
  /** Bounds of the creation, the second exclusive, by the platform's clock in seconds. */
  from?: number
  before?: number
}

/** The order of calls: for new events first, for lists next, for repeated lists last and slowly. */
export type Urgency = 'now' | 'soon' | 'slowly'

export interface AnswerPage {
  answers: readonly InvoiceAnswer[]
  /** Records of the page that do not fit. When none fits, the call fails: the platform is at fault. */
  unfit: readonly Unfit[]
  /** Number of records of the page without an id. Default: 0. */
  nameless?: number
  /** The cursor of the next page; null on the last. */
  next: string | null
  /** Creation of the page's first and last record, by the platform's clock, in seconds; 0 on an empty page. */
  began: number
  reached: number
}

/** Something happened to an invoice, or to a customer and so to all of the customer's invoices. */
export interface Notification {
  /** The event's own id: the same event may come twice. */
  id: string
  /** The platform's own word, such as invoice.paid. */
  type: string
  /** Its time by the platform's clock, in seconds. */
  created: number
  invoice_id: string | null
  customer_id: string | null
  /** Of a customer's event: only drafts may have changed. Absent: all of the customer's invoices. */
  only?: 'draft'
}

export interface NotificationPage {
  notifications: readonly Notification[]
  next: string | null
  /** The `created` of the newest event on the page, in seconds; null without events. Events that notify of nothing count. */
  newest: number | null
}

/** The names of an upstream system. */
export interface SourceIdentity {
  /** The name for people, such as "Stripe". */
  name: string
  /** The key under which its account and records are stored, such as `stripe`. */
  system: string
  /** The prefix of its streams' names. */
  streamPrefix: string
}

/** A payment platform, for the connector. Each call is paced and retried, and then rejects with a `SourceError`. */
export interface BillingSource extends SourceIdentity {
  /** Days for which the platform keeps events. */
  eventsKeptDays: number
  /** Interval of listing everything again, where events may miss changes. Default: a day. */
  relistEveryMs?: number
  /** The permissions that the key lacks, as a sentence; null when no call was refused for one. */
  lacks?(): string | null
  /** Invoices, newest first. Lines are complete, or null. */
  listInvoices(after: string | null, filter?: ListFilter, urgency?: Urgency): Promise<AnswerPage>
  /** Rejects with an `UnfitRecord` when the platform's record does not fit. */
  fetchInvoice(id: string, customerId: string | null, urgency?: Urgency): Promise<InvoiceAnswer>
  /** Events since a moment of the platform's clock, newest first. */
  listNotifications(since: number, after: string | null): Promise<NotificationPage>
  /** The account of these invoices. */
  identify(): Promise<BillingAccount>
}

/** An account of a payment platform. A field that the key may not read is null. */
export interface BillingAccount {
  id: string | null
  mode: 'live' | 'test' | null
}

/** The filter of a list of documents of all certifying types. */
export interface DocumentQuery {
  /** Days as YYYY-MM-DD, both inclusive, of the date that a document carries. */
  from?: string
  to?: string
  /** In the list's own words: `final` of a document is `sent` in the list. Absent: all. */
  statuses?: readonly string[]
  /** Whether to list archived documents: no other list holds them. */
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
  /** Number of pages, and of documents on all of them. */
  pages: number
  total: number
}

/** The client that a document is made out to. */
export interface DocumentClient {
  id: number
  tax_id: string | null
}

/**
 * An invoicing system, for the connector. Each call is paced and retried, and then rejects with a `SourceError`. Null is a
 * successful answer that there is no such record, and never a failure.
 */
export interface DocumentSource extends SourceIdentity {
  /** `page` counts from 1. A document that was just made may be missing from a list for some seconds. */
  listDocuments(query: DocumentQuery, page: number): Promise<DocumentPage>
  /** Tries every type in turn when the type is not known. */
  fetchDocument(id: number, type: DocumentType | null): Promise<Document | null>
  fetchClient(id: number): Promise<DocumentClient | null>
  /** The QR code is asked for unless it is known to be there. */
  fetchRelations(id: number, hasQr: boolean): Promise<Relations | null>
}

export interface InvoicingSystem extends Guarded {
  /** The certified document's PDF. Rejects with a `SourceError`. */
  openPdf(ixId: number, signal: AbortSignal): Promise<Pdf>
  /** The image of the document's QR code. Rejects with a `SourceError`. Absent: there are none. */
  openQr?(ixId: number, signal: AbortSignal): Promise<Pdf & { type: string }>
}

/** The failures of a source: the same four for every upstream. */
export type SourceFailure = 'missing' | 'not_ready' | 'timeout' | 'failed'

/** The scope of a failure: the requested record, the key's permissions, or the source as a whole. */
export type FailureScope = 'record' | 'access' | 'source'

type FailureOptions = { retryAfter?: number; scope?: FailureScope }

export class SourceError extends Error {
  readonly failure: SourceFailure
  readonly scope: FailureScope
  /** Seconds until a retry makes sense; undefined when it does not pass by itself, or when is not known. */
  readonly retryAfter: number | undefined

  constructor(failure: SourceFailure, message: string, options: FailureOptions = {}) {
    super(message)
    this.failure = failure
    this.scope = options.scope ?? 'source'
    this.retryAfter = options.retryAfter
  }
}

/** The platform answered, and a record does not fit. */
export class UnfitRecord extends SourceError {
  /** Whether the same question may bring another answer: the record was not the one that was asked for. */
  readonly mayPass: boolean

  constructor(message: string, mayPass = false) {
    super('failed', message)
    this.mayPass = mayPass
  }
}

/** Null when the source has no such record. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof SourceError && error.failure === 'missing') return null
    throw error
  }
}
