/** Fetches single invoices, or lists those of a customer: because of a notification, or to check what is stored. */
import type { InvoiceKey } from '../invoice.ts'
import { type Notification, UnfitRecord, unlessMissing } from '../sources.ts'
import type { JournalEntry } from '../store/document-store.ts'
import { eventApplied } from '../telemetry.ts'
import { type Applied, addApplied, type Cause, nothingApplied } from './apply.ts'
import { coalesce, forEachConcurrently } from './concurrency.ts'
import { listAndCommit } from './list-ranges.ts'
import type { SyncContext } from './sync-context.ts'

export type Refetch = ReturnType<typeof createRefetch>

const fetchesAtOnce = 16
const parallel = 8
/** Events remembered as applied: they come by webhook and in the list, and again when they are read twice. */
const rememberedEvents = 20_000

interface FetchCause {
  customerId: string | null
  notifications: readonly Notification[]
  /** Whether a list of everything did not have it. */
  isRecheck: boolean
}

export function createRefetch(context: SyncContext) {
  const { source, store, calls, corrections, signal } = context
  const handled = rememberEvents()

  const fetchOne = coalesce(async (id: string, causes: readonly FetchCause[]) => {
    signal.throwIfAborted()
    const customerId = causes.find(cause => cause.customerId !== null)?.customerId ?? null
    const notifications = causes.flatMap(cause => cause.notifications)
    const isRecheck = causes.every(cause => cause.isRecheck)
    const why = isRecheck ? 'recheck' : causeOf(notifications, id)
    try {
      const { askedAt, ...observation } = await calls.ask(() =>
        source.fetchInvoice(id, customerId, notifications.length > 0 ? 'now' : 'soon'),
      )
      return await calls.commit([{ askedAt, observations: [observation] }], why)
    } catch (error) {
      if (!(error instanceof UnfitRecord)) throw error
      const unfit = [{ id, reason: error.message }]
      return calls.commit([{ askedAt: calls.nextStamp(), observations: [], unfit }])
    }
  }, nothingApplied)

  const listCustomer = coalesce(async (customerId: string, causes: readonly (readonly Notification[])[]) => {
    const notifications = causes.flat()
    const isDraftsOnly = notifications.every(({ only }) => only === 'draft')
    const filter = { customerId, ...(isDraftsOnly && { status: 'draft' as const }) }
    // A customer that is gone has no invoices.
    const why = causeOf(notifications, null)
    const listed = await unlessMissing(listAndCommit(context, { parallel, filter, why }))
    return listed?.applied ?? nothingApplied
  }, nothingApplied)

  async function apply(notifications: readonly Notification[]): Promise<Applied> {
    const [first] = notifications
    if (first === undefined) return nothingApplied
    const { invoice_id, customer_id: customerId } = first
    if (invoice_id !== null) return fetchOne(invoice_id, { customerId, notifications, isRecheck: false })
    return customerId === null ? nothingApplied : listCustomer(customerId, notifications)
  }

  const applying = new Map<string, Promise<unknown>>()

  return {
    handled,
    /** Applies notifications of one invoice or one customer; the change is committed once it resolves. */
    async applyNotifications(notifications: readonly Notification[]): Promise<Applied> {
      // An event that comes again needs no second fetch.
      const repeated = notifications.flatMap(({ id }) => applying.get(id) ?? [])
      const fresh = notifications.filter(({ id }) => !handled.has(id) && !applying.has(id))
      const applied = apply(fresh)
      for (const { id } of fresh) applying.set(id, applied)
      try {
        await Promise.all([applied, ...repeated])
        await corrections.announce(fresh)
        for (const { id } of fresh) handled.add(id)
        return await applied
      } finally {
        for (const { id } of fresh) applying.delete(id)
      }
    },
    /** Fetches each of these; without a `customer_id`, the stored one is used. */
    async fetchEach(
      keys: readonly (Pick<InvoiceKey, 'id'> & Partial<InvoiceKey>)[],
      isRecheck = false,
    ): Promise<Applied> {
      let total = nothingApplied
      await forEachConcurrently(keys, fetchesAtOnce, async ({ id, customer_id }) => {
        // The platform does not return the customer of a deleted invoice.
        const customerId = customer_id ?? (await store.findLinkedById(id))[0]?.customer_id ?? null
        const applied = await fetchOne(id, { customerId, notifications: [], isRecheck })
        total = addApplied(total, applied)
      })
      return total
    },
  }
}

/** The newest notification is the cause; the journal keeps the others as read together with it. */
function causeOf(notifications: readonly Notification[], invoiceId: string | null): Cause | null {
  const [newest, ...others] = notifications.toSorted((a, b) => b.created - a.created)
  if (newest === undefined) return null
  const { id: cause, type, created } = newest
  const merged = invoiceId === null ? [] : mergedEntries(cause, others)
  return { cause, type, happened_at: created * 1000, others: merged }
}

/** Journal entries of notifications that needed no fetch of their own. */
export function mergedEntries(newest: string, others: readonly Notification[]): JournalEntry[] {
  const at = Date.now()
  return others.flatMap(({ id: cause, type, created, invoice_id, customer_id }): JournalEntry[] => {
    if (invoice_id === null || customer_id === null || cause === newest) return []
    const detail = `read together with ${newest}: the invoice was fetched once, as it is now`
    const happened_at = created * 1000
    return [{ customer_id, id: invoice_id, cause, type, happened_at, at, outcome: 'ignored', detail }]
  })
}

function rememberEvents() {
  const ids = new Set<string>()
  return {
    has: (id: string) => ids.has(id),
    add(id: string) {
      if (!ids.delete(id) && eventApplied.hasSubscribers) eventApplied.publish(null)
      ids.add(id)
      if (ids.size > rememberedEvents) ids.delete(ids.values().next().value as string)
    },
  }
}
