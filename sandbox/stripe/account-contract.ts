import type { OrderedIds } from '../ordered-ids.ts'
import type { ChangeKind } from './changes.ts'
import type { StripeCustomer, StripeEvent, StripeInvoice, StripeTaxRate } from './objects.ts'

export interface AccountOptions {
  seed?: number
  invoices?: number
  customers?: number
  /** Start of the simulated clock, in seconds since 1970. */
  now?: number
  /** Age of the oldest invoice in days. Default: two years. */
  days?: number
  /** Number of lines of each new invoice. By default a few, and sometimes very many. */
  lines?: number
}

export interface StripeAccount {
  /** The simulated time in seconds since 1970. */
  clock: number
  /** Includes deleted customers, because Stripe still answers requests for them. */
  readonly customers: Map<string, StripeCustomer>
  /** Invoices with all lines, their customer's id and the path of their PDF. An invoice object is replaced, never modified. */
  readonly invoices: Map<string, StripeInvoice>
  readonly taxRates: Map<string, StripeTaxRate>
  /** Events, oldest first. Invoices that exist from the start have no events. */
  readonly events: StripeEvent[]
  /** Ids of the invoices, oldest first. */
  readonly order: OrderedIds
  /** Moves the clock and makes the changes of that time. Several small steps give the same changes as one large step. */
  advance(seconds: number): void
  /** Changes the given invoice, or one that fits the change. Returns its id. Throws when the invoice's status does not allow the change. */
  change(kind: ChangeKind, invoiceId?: string): string
  /**
   * Creates a draft that will be paid at once and in one payment. `daysUntilDue` counts from the finalization. Returns the invoice's id.
   */
  createInvoice(customerId: string, daysUntilDue: number): string
  /** Drafts take the new name. Finalized invoices keep the old one. */
  renameCustomer(customerId: string, name: string): void
  /** Merges metadata entries as Stripe does. An empty text removes an entry. A change creates an event. */
  setMetadata(invoiceId: string, entries: Record<string, string>): void
}
