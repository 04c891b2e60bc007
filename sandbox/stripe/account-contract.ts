/** What the sandbox's Stripe account holds and takes. */
import type { OrderedIds } from '../ordered-ids.ts'
import type { ChangeKind } from './changes.ts'
import type { StripeCustomer, StripeEvent, StripeInvoice, StripeTaxRate } from './objects.ts'

export interface AccountOptions {
  seed?: number
  invoices?: number
  customers?: number
  /** Seconds since 1970 of the simulated clock. */
  now?: number
  /** The age of the oldest invoice; two years when not given. */
  days?: number
  /** Lines of each new invoice; a few, and now and then very many, when not given. */
  lines?: number
}

export interface StripeAccount {
  /** Seconds since 1970, simulated. */
  clock: number
  /** A deleted customer stays, as Stripe answers for it. */
  readonly customers: Map<string, StripeCustomer>
  /** Each with all of its lines, its customer's id, and the path of its PDF. Never changed, only replaced. */
  readonly invoices: Map<string, StripeInvoice>
  readonly taxRates: Map<string, StripeTaxRate>
  /** Oldest first. The first invoices have no events. */
  readonly events: StripeEvent[]
  /** The invoices in their order, oldest first. */
  readonly order: OrderedIds
  /** Moves the clock, with the changes of that time: the same in one step or in many. */
  advance(seconds: number): void
  /** Changes the given invoice, or any that the change fits. Returns its id; throws when its status does not allow it. */
  change(kind: ChangeKind, invoiceId?: string): string
  /** A draft for this customer, to be paid at once and in one piece within so many days of its finalization. Returns its id. */
  createInvoice(customerId: string, daysUntilDue: number): string
  /** Drafts follow; finalized invoices keep the name. */
  renameCustomer(customerId: string, name: string): void
  /** Merges entries, as Stripe does; an empty text removes one. A change makes an event. */
  setMetadata(invoiceId: string, entries: Record<string, string>): void
}
