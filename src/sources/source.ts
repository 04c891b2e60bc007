/** Interfaces of the two upstream systems, a payment platform and an invoicing system. The API and the connector have one of each. */
import type { Document, DocumentType, Relations } from '../domain/document.ts'
import type { InvoiceStatus, Line } from '../domain/invoice.ts'
import type { PlatformInvoice } from './platform-invoice.ts'

/** A PDF that is being downloaded. Whoever reads `body` destroys it when the client disconnects. */
export interface Pdf {
  body: NodeJS.ReadableStream
  /** Size in bytes. Null when the upstream does not declare it. */
  size: number | null
}

/** Limits of the API's calls to one upstream system. */
interface Guarded {
  /** Maximum number of calls per second, counted separately for lines and for PDFs. Absent: unlimited. */
  perSecond?: number
  /**
   * Returns the error with which every call fails while the system wants a pause or
   * fails too often. The API then refuses requests at once. Null when calls are sent.
   */
  refusal?(): SourceError | null
}

export interface PaymentPlatform extends Guarded {
  /** Returns all the lines of an invoice in order. Null when the platform does not know the invoice. Rejects with a `SourceError`. */
  fetchLines(invoiceId: string, signal: AbortSignal): Promise<readonly Line[] | null>
  /** Downloads the invoice's current PDF from the platform. Rejects with a `SourceError`. */
  openPdf(invoiceId: string, signal: AbortSignal): Promise<Pdf>
  /**
   * Returns the address of the platform's page where the invoice can be paid, or null when it cannot be paid. The address holds a secret
   * and is never stored or logged. Rejects with a `SourceError`.
   */
  findPaymentPage(invoiceId: string, signal: AbortSignal): Promise<string | null>
}

/** Why an invoice of the platform is not stored. */
export type Refusal = 'preview' | 'no_customer' | 'invalid_customer' | 'unknown_status'

export interface InvoiceAnswer {
  id: string
  /** Null when the platform names no customer, for example for a deleted invoice. */
  customer_id: string | null
  /** The invoice, or the reason for which it is not stored. Null when the platform no longer has the invoice. */
  found: PlatformInvoice | { refusal: Refusal } | null
}

/** An invoice whose record failed the checks. A later answer about the invoice may pass them. */
export interface Unfit {
  id: string
  reason: string
}

/** Filter of a list of invoices. An empty filter lists all invoices of the account. */
export interface ListFilter {
  customerId?: string
  status?: InvoiceStatus
  /** Bounds of the creation time, in seconds of the platform's clock. `from` is inclusive, `before` is exclusive. */
  from?: number
  before?: number
}

/** Priority of a call: `now` for new events, `soon` for lists, `slowly` for repeated lists, which may also have a lower rate. */
export type Urgency = 'now' | 'soon' | 'slowly'

export interface AnswerPage {
  answers: readonly InvoiceAnswer[]
  /** Records of the page that failed the checks. When all of many records fail, the call rejects, because the platform is at fault. */
  unfit: readonly Unfit[]
  /** Number of the page's records without an id. Default: 0. */
  nameless?: number
  /** Cursor of the following page. Null on the last page. */
  next: string | null
  /** Creation times of the page's first and last invoice, in seconds of the platform's clock. Both are 0 on an empty page. */
  began: number
  reached: number
}

/** An event about one invoice, or about a customer and therefore about all invoices of that customer. */
export interface Notification {
  /** The event's id at the platform. The same event may arrive twice. */
  id: string
  /** The platform's name of the event type, for example `invoice.paid`. */
  type: string
  /** Creation time of the event, in seconds of the platform's clock. */
  created: number
  invoice_id: string | null
  customer_id: string | null
  /** `draft`: only the customer's drafts may have changed. Absent: all of the customer's invoices. */
  only?: 'draft'
}

export interface NotificationPage {
  notifications: readonly Notification[]
  next: string | null
  /** `created` of the newest event on the page, in seconds. Null without events. Events that concern no invoice count as well. */
  newest: number | null
}

export interface SourceIdentity {
  /** Name for people, for example "Stripe". */
  name: string
  /** Key under which the store keeps the system's account and records, for example `stripe`. */
  system: string
  /** Prefix of the system's stream names, for example `ix` in `ix:all`. */
  streamPrefix: string
}

/** A payment platform as the connector uses it. Calls are paced and retried. A call that still fails rejects with a `SourceError`. */
export interface BillingSource extends SourceIdentity {
  eventsKeptDays: number
  /** Milliseconds between two full lists, for a platform whose events may miss changes. Default: a day. */
  relistEveryMs?: number
  /** Describes the permissions that the key lacks. Null when no call was refused for a missing permission. */
  lacks?(): string | null
  /** Lists invoices, newest first. The lines of each invoice are complete or null. */
  listInvoices(after: string | null, filter?: ListFilter, urgency?: Urgency): Promise<AnswerPage>
  /** Rejects with an `UnfitRecord` when the platform's record fails the checks. */
  fetchInvoice(id: string, customerId: string | null, urgency?: Urgency): Promise<InvoiceAnswer>
  /** Lists events, newest first. `since` is in seconds of the platform's clock. */
  listNotifications(since: number, after: string | null): Promise<NotificationPage>
  /** Returns the account to which the key belongs. */
  identify(): Promise<BillingAccount>
}

/** An account of a payment platform. A field that the key may not read is null. */
export interface BillingAccount {
  id: string | null
  mode: 'live' | 'test' | null
}

/** Filter of a list of documents of all certifying types. */
export interface DocumentQuery {
  /** The document's date lies between these two days, YYYY-MM-DD, or on one of them. */
  from?: string
  to?: string
  /** Statuses by their names in the filter of lists. For example, `sent` finds documents with the status `final`. Absent: all statuses. */
  statuses?: readonly string[]
  /** True lists only archived documents. Every other list leaves them out. */
  isArchived?: boolean
}

/** A document whose record failed the checks. */
export interface Misfit {
  /** Null when the record has no readable id. */
  id: number | null
  reason: string
}

export interface DocumentPage {
  documents: readonly Document[]
  misfits: readonly Misfit[]
  /** Size of the whole list, in pages and in documents. */
  pages: number
  total: number
}

export interface DocumentClient {
  id: number
  tax_id: string | null
}

/**
 * An invoicing system as the connector uses it. Calls are paced and retried. A call that still fails rejects with a `SourceError`. Null
 * means that the system answered that it has no such record.
 */
export interface DocumentSource extends SourceIdentity {
  /** Reads one page of a list. `page` counts from 1. A document that was just made may be missing from a list for some seconds. */
  listDocuments(query: DocumentQuery, page: number): Promise<DocumentPage>
  /** Tries every document type when `type` is null. */
  fetchDocument(id: number, type: DocumentType | null): Promise<Document | null>
  fetchClient(id: number): Promise<DocumentClient | null>
  /** Reads a document's related documents and whether it has a QR code. `hasQr`: the QR code is known to exist and is not requested. */
  fetchRelations(id: number, hasQr: boolean): Promise<Relations | null>
}

export interface InvoicingSystem extends Guarded {
  /** Downloads the PDF of a certified document. Rejects with a `SourceError`. */
  openPdf(ixId: number, signal: AbortSignal): Promise<Pdf>
  /** Downloads the image of a document's QR code. Rejects with a `SourceError`. Absent: the system has no QR codes. */
  openQr?(ixId: number, signal: AbortSignal): Promise<Pdf & { type: string }>
}

export type SourceFailure = 'missing' | 'not_ready' | 'timeout' | 'failed'

/** What a failure concerns: the requested record, the key's permissions, or the whole upstream system. */
export type FailureScope = 'record' | 'access' | 'source'

type FailureOptions = { retryAfter?: number; scope?: FailureScope }

export class SourceError extends Error {
  readonly failure: SourceFailure
  readonly scope: FailureScope
  /** Seconds after which a retry may succeed. Undefined when waiting does not help, or when the time is unknown. */
  readonly retryAfter: number | undefined

  constructor(failure: SourceFailure, message: string, options: FailureOptions = {}) {
    super(message)
    this.failure = failure
    this.scope = options.scope ?? 'source'
    this.retryAfter = options.retryAfter
  }
}

/** Thrown when the platform's record fails the checks. */
export class UnfitRecord extends SourceError {
  /** True when a retry may succeed, because the platform sent another record than the requested one. */
  readonly mayPass: boolean

  constructor(message: string, mayPass = false) {
    super('failed', message)
    this.mayPass = mayPass
  }
}

/** Resolves with null when the source has no such record. Rethrows every other failure. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof SourceError && error.failure === 'missing') return null
    throw error
  }
}
