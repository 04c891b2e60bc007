/** Fetches single invoices, or lists the invoices of a customer. The reason is a notification or a check of the stored data. */
import type { InvoiceKey } from '../../domain/invoice.ts'
import { eventApplied } from '../../sources/calls/telemetry.ts'
import { type Notification, UnfitRecord, type Urgency, unlessMissing } from '../../sources/source.ts'
import type { JournalEntry } from '../../store/document-store.ts'
import { coalesce, forEachConcurrently } from '../concurrency.ts'
import { type Applied, addApplied, nothingApplied } from './apply-answers.ts'
import type { Committed, Recheck } from './commit-answers.ts'
import { listAndCommit } from './list-ranges.ts'
import type { Cause } from './outcomes.ts'
import type { SyncContext } from './sync-context.ts'

const fetchesAtOnce = 16
const parallel = 8
/** Number of applied events that are remembered. The same event arrives by webhook and in the list of events, and may be read twice. */
const rememberedEvents = 20_000

interface FetchCause {
  customerId: string | null
  notifications: readonly Notification[]
  recheck: Recheck
}

export class Refetch {
  readonly handled = new HandledEvents()
  private readonly context: SyncContext
  /** Events that are being applied now, by event id. */
  private readonly applying = new Map<string, Promise<unknown>>()
  /** Calls for the same invoice that arrive during a fetch share one later fetch. */
  private readonly fetchOne = coalesce(
    (id: string, causes: readonly FetchCause[]) => this.fetchNow(id, causes),
    nothingApplied,
  )
  private readonly listCustomer = coalesce(
    (customerId: string, causes: readonly (readonly Notification[])[]) =>
      this.listNow(customerId, causes.flat()),
    nothingApplied,
  )

  constructor(context: SyncContext) {
    this.context = context
  }

  /** Applies notifications of one invoice or one customer. Resolves after the change is committed. */
  async applyNotifications(notifications: readonly Notification[]): Promise<Applied> {
    // An event that arrives twice needs only one fetch.
    const repeated = notifications.flatMap(({ id }) => this.applying.get(id) ?? [])
    const fresh = notifications.filter(({ id }) => !this.handled.has(id) && !this.applying.has(id))
    const applied = this.apply(fresh)
    for (const { id } of fresh) this.applying.set(id, applied)
    try {
      await Promise.all([applied, ...repeated])
      await this.context.corrections.announce(fresh)
      for (const { id } of fresh) this.handled.add(id)
      return await applied
    } finally {
      for (const { id } of fresh) this.applying.delete(id)
    }
  }

  /** Fetches each invoice. A key without `customer_id` uses the stored customer. */
  async fetchEach(
    keys: readonly (Pick<InvoiceKey, 'id'> & Partial<InvoiceKey>)[],
    recheck: Recheck,
  ): Promise<Applied> {
    const { store } = this.context
    let total = nothingApplied
    await forEachConcurrently(keys, fetchesAtOnce, async ({ id, customer_id }) => {
      // The platform does not return the customer of a deleted invoice.
      const customerId = customer_id ?? (await store.findLinkedById(id))[0]?.customer_id ?? null
      const applied = await this.fetchOne(id, { customerId, notifications: [], recheck })
      total = addApplied(total, applied)
    })
    return total
  }

  /** Fetches the invoices of a list again whose answers overlapped with other answers and differed. */
  async fetchOverlaps({ applied, overlaps }: Committed, recheck: Recheck): Promise<Applied> {
    const keys = [...new Set(overlaps)].map(id => ({ id }))
    return addApplied(applied, await this.fetchEach(keys, recheck))
  }

  private async apply(notifications: readonly Notification[]): Promise<Applied> {
    const [first] = notifications
    if (first === undefined) return nothingApplied
    const { invoice_id, customer_id: customerId } = first
    if (invoice_id !== null) return this.fetchOne(invoice_id, { customerId, notifications, recheck: null })
    return customerId === null ? nothingApplied : this.listCustomer(customerId, notifications)
  }

  private async fetchNow(id: string, causes: readonly FetchCause[]): Promise<Applied> {
    const { commits, signal } = this.context
    const customerId = causes.find(cause => cause.customerId !== null)?.customerId ?? null
    const notifications = causes.flatMap(cause => cause.notifications)
    const why = causes.every(({ recheck }) => recheck !== null) ? 'recheck' : causeOf(notifications, id)
    const urgency = notifications.length > 0 ? 'now' : 'soon'
    let total = nothingApplied
    // An answer that overlaps with another answer and differs decides nothing. The invoice is fetched until no answer overlaps.
    for (let isOver = false; !isOver; ) {
      signal.throwIfAborted()
      const page = await commits.ask(() => this.askFor(id, customerId, urgency))
      const { applied, overlaps } = await commits.commit([page], why)
      total = addApplied(total, applied)
      isOver = overlaps.length === 0
    }
    return total
  }

  /** Returns a page with one answer, or without an answer when the record fails the checks. */
  private async askFor(id: string, customerId: string | null, urgency: Urgency) {
    try {
      return { answers: [await this.context.source.fetchInvoice(id, customerId, urgency)], unfit: [] }
    } catch (error) {
      if (!(error instanceof UnfitRecord)) throw error
      return { answers: [], unfit: [{ id, reason: error.message }] }
    }
  }

  private async listNow(customerId: string, notifications: readonly Notification[]): Promise<Applied> {
    const isDraftsOnly = notifications.every(({ only }) => only === 'draft')
    const filter = { customerId, ...(isDraftsOnly && { status: 'draft' as const }) }
    const why = causeOf(notifications, null)
    // A customer that is missing at the platform has no invoices.
    const listed = await unlessMissing(listAndCommit(this.context, { parallel, filter, why }))
    return listed === null ? nothingApplied : this.fetchOverlaps(listed, null)
  }
}

/** Returns the newest notification as the cause. The journal describes the others as read together with it. */
function causeOf(notifications: readonly Notification[], invoiceId: string | null): Cause | null {
  const [newest, ...others] = notifications.toSorted((a, b) => b.created - a.created)
  if (newest === undefined) return null
  const { id: cause, type, created } = newest
  const merged = invoiceId === null ? [] : mergedEntries(cause, others)
  return { cause, type, happened_at: created * 1000, others: merged }
}

/** Returns journal entries for notifications that shared the fetch of a newer notification. */
export function mergedEntries(newest: string, others: readonly Notification[]): JournalEntry[] {
  const at = Date.now()
  return others.flatMap(({ id: cause, type, created, invoice_id, customer_id }): JournalEntry[] => {
    if (invoice_id === null || customer_id === null || cause === newest) return []
    const detail = `read together with ${newest}: the invoice was fetched once, as it is now`
    const happened_at = created * 1000
    return [{ customer_id, id: invoice_id, cause, type, happened_at, at, outcome: 'ignored', detail }]
  })
}

/** Ids of the events that were applied last. */
class HandledEvents {
  private readonly ids = new Set<string>()

  has(id: string): boolean {
    return this.ids.has(id)
  }

  add(id: string): void {
    if (!this.ids.delete(id) && eventApplied.hasSubscribers) eventApplied.publish(null)
    this.ids.add(id)
    if (this.ids.size > rememberedEvents) this.ids.delete(this.ids.values().next().value as string)
  }
}
