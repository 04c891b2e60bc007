/** Looks at one invoice, or at those of one customer: on account of a notification, or on our own. */
import { type ListFilter, type Notification, UnfitRecord, type Urgency } from '../sources.ts'
import type { JournalEntry } from '../store/document-store.ts'
import { type Applied, addApplied, type Cause, nothingApplied } from './apply.ts'
import { coalesce } from './coalesce.ts'
import { isMissing, type ListOptions, listRanges } from './list-ranges.ts'
import { wholeList } from './ranges.ts'
import type { World } from './world.ts'

export interface Looks {
  /** Applies what notifications of one invoice or one customer tell of; once it resolves, the change is committed. */
  follow(notifications: readonly Notification[]): Promise<Applied>
  /** Fetches one invoice, whatever told of it. */
  lookAt(id: string, customerId: string | null, urgency: Urgency): Promise<Applied>
  /** Lists the invoices near one: its customer's, and those created within the same hour; of each, so many pages at most. */
  lookAround(customerId: string, created: number | null): Promise<Applied>
}

/** How many parts of one customer's list are read at once. */
const parallel = 8
/** How many pages of invoices near another are read. */
const pagesAround = 10
/** How many events are remembered as applied: they come by webhook and in the list, and again when they are read twice. */
const rememberedEvents = 20_000

interface InvoiceCause {
  customerId: string | null
  urgency: Urgency
  /** None: nobody told, it is looked at on our own account. */
  notifications: readonly Notification[]
}

export interface HandledEvents {
  has(id: string): boolean
  add(id: string): void
}

export function createLooks(world: World, handled: HandledEvents): Looks {
  const { source, answers, signal } = world

  const fetchOne = coalesce(async (id: string, causes: readonly InvoiceCause[]) => {
    signal.throwIfAborted()
    const customerId = causes.find(cause => cause.customerId !== null)?.customerId ?? null
    const isUrgent = causes.some(({ urgency }) => urgency === 'now')
    const told = causes.flatMap(({ notifications }) => notifications)
    const cause = tell(told, id)
    try {
      const { askedAt, ...observation } = await answers.ask(() =>
        source.fetchInvoice(id, customerId, isUrgent ? 'now' : 'soon'),
      )
      return await answers.commit([{ askedAt, observations: [observation] }], cause)
    } catch (error) {
      if (!(error instanceof UnfitRecord)) throw error
      const unfit = [{ id, reason: error.message }]
      return answers.commit([{ askedAt: answers.nextStamp(), observations: [], unfit }])
    }
  }, nothingApplied)

  async function list(
    filter: ListFilter,
    how: Pick<ListOptions, 'parallel' | 'urgency' | 'pagesAtMost'>,
    cause: Cause | null = null,
  ): Promise<Applied> {
    let total = nothingApplied
    try {
      await listRanges({
        ...world,
        ...how,
        filter,
        ranges: [wholeList],
        async store(pages) {
          total = addApplied(total, await answers.commit(pages, cause))
        },
      })
    } catch (error) {
      // The customer is gone, and has nothing.
      if (!isMissing(error)) throw error
    }
    return total
  }

  const listCustomer = coalesce(async (customerId: string, causes: readonly (readonly Notification[])[]) => {
    const notifications = causes.flat()
    const cause = tell(notifications, null)
    const isDraftsOnly = notifications.every(({ only }) => only === 'draft')
    return list({ customerId, ...(isDraftsOnly && { status: 'draft' }) }, { parallel }, cause)
  }, nothingApplied)

  /** Events that are being applied. */
  const following = new Map<string, Promise<unknown>>()

  async function apply(notifications: readonly Notification[]): Promise<Applied> {
    const [{ invoice_id, customer_id } = nobody] = notifications
    if (invoice_id !== null)
      return fetchOne(invoice_id, { customerId: customer_id, urgency: 'now', notifications })
    return customer_id === null ? nothingApplied : listCustomer(customer_id, notifications)
  }

  return {
    async follow(notifications) {
      // The same event again adds nothing to what is seen after it.
      const again = notifications.flatMap(({ id }) => following.get(id) ?? [])
      const fresh = notifications.filter(({ id }) => !handled.has(id) && !following.has(id))
      const applying = apply(fresh)
      for (const { id } of fresh) following.set(id, applying)
      try {
        await Promise.all([applying, ...again])
        for (const { id } of fresh) handled.add(id)
        return await applying
      } finally {
        for (const { id } of fresh) following.delete(id)
      }
    },
    lookAt: (id, customerId, urgency) => fetchOne(id, { customerId, urgency, notifications: [] }),
    async lookAround(customerId, created) {
      const how = { parallel: 1, urgency: 'slowly', pagesAtMost: pagesAround } as const
      const ofCustomer = await list({ customerId }, how)
      if (created === null) return ofCustomer
      const from = created - (created % 3_600)
      return addApplied(ofCustomer, await list({ from, before: from + 3_600 }, how))
    },
  }
}

const nobody = { invoice_id: null, customer_id: null }

/** The newest is told as the cause; the others, that they were read together with it. */
function tell(notifications: readonly Notification[], invoiceId: string | null): Cause | null {
  const [newest, ...others] = notifications.toSorted((a, b) => b.created - a.created)
  if (newest === undefined) return null
  const { id, type, created } = newest
  return { id, type, happened_at: created * 1000, others: invoiceId === null ? [] : tellMerged(id, others) }
}

export function tellMerged(newest: string, others: readonly Notification[]): JournalEntry[] {
  const at = Date.now()
  return others.flatMap(({ id: cause, type, created, invoice_id, customer_id }): JournalEntry[] => {
    if (invoice_id === null || customer_id === null || cause === newest) return []
    const detail = `read together with ${newest}: the invoice was fetched once, as it is now`
    const happened_at = created * 1000
    return [{ customer_id, id: invoice_id, cause, type, happened_at, at, outcome: 'ignored', detail }]
  })
}

export function rememberEvents(): HandledEvents {
  const ids = new Set<string>()
  return {
    has: id => ids.has(id),
    add(id) {
      ids.delete(id)
      ids.add(id)
      if (ids.size > rememberedEvents) ids.delete(ids.values().next().value as string)
    },
  }
}

/** Runs a step for each, several at once. When one fails, no further one is begun. */
export async function eachOf<T>(
  items: readonly T[],
  atOnce: number,
  step: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items]
  let isFailed = false
  const work = async () => {
    for (let item = queue.shift(); item !== undefined && !isFailed; item = queue.shift())
      await step(item).catch(error => {
        isFailed = true
        throw error
      })
  }
  const results = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, work))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
