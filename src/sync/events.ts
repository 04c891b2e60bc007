import { setTimeout as sleep } from 'node:timers/promises'
import { type Notification, SourceError } from '../sources.ts'
import type { JournalEntry } from '../store/document-store.ts'
import { StoreUnavailable, type Stream } from '../store/store.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { forEachConcurrently } from './concurrency.ts'
import { lateEventsMs } from './corrections.ts'
import type { AccountLists } from './list-account.ts'
import { mergedEntries, type Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

/** Events that become visible late: those shortly before the cursor are read again. */
const lateSeconds = lateEventsMs / 1_000
const dayMs = 24 * 60 * 60 * 1_000
const atOnce = 16

/**
 * The cursor is the `created` of the newest event seen: no clock is compared with the platform's, which may differ from ours.
 * `patienceMs` is how long to wait for lists of whole customers; until their end when not given.
 */
export function followEvents(context: SyncContext, refetch: Refetch, lists: AccountLists) {
  const { source, store, streams, names, corrections, log } = context
  const { handled } = refetch
  // A day for lists that take long, and a day for a clock of ours that is wrong.
  const longestGapMs = (source.eventsKeptDays - 2) * dayMs
  /** When the newest event came to this process, by a monotonic clock. */
  let newestCameMs = performance.now()
  /** Whether events were read once more after every event before the newest one had become visible. */
  let isSettled = false

  /** Whether some events may be gone unread: the newest one seen and the last list are both older than events reach back. */
  async function isGap(since: number): Promise<boolean> {
    const earliestMs = Date.now() - longestGapMs
    return since * 1_000 < earliestMs && (await lists.listedAt()) < earliestMs
  }

  /** Events of other customers do not wait for a long list; until it is done, the events that led to it count as not read. */
  async function listCustomer(notifications: readonly Notification[]): Promise<Applied> {
    try {
      return await refetch.applyNotifications(notifications)
    } catch (error) {
      log.error({ err: error }, "listing a customer's invoices failed; trying again")
      return nothingApplied
    }
  }

  async function readEvents(stream: Stream, patienceMs: number | undefined): Promise<Applied> {
    // Until the backfill has begun there is no moment to read from, and nothing to miss.
    if (stream.cursor === null) return nothingApplied
    const since = Number(stream.cursor)
    // The records are as fresh as the first request, not as the last page that was applied.
    const askedAt = Date.now()
    const askedMs = performance.now()
    const from = isSettled ? since : Math.max(0, since - lateSeconds)
    let newest = since
    const starts = new Set<string>()
    /** Invoices that were fetched, by their newest event: later pages hold older events. */
    const fetched = new Map<string, string>()
    const ofCustomers: Notification[] = []
    let total = nothingApplied
    const add = (applied: Applied) => {
      total = addApplied(total, applied)
    }
    for (let after: string | null = null; ; ) {
      const page = await source.listNotifications(from, after)
      newest = Math.max(newest, page.newest ?? 0)
      const fresh = page.notifications.filter(({ id }) => !handled.has(id))
      const byInvoice = Map.groupBy(fresh, ({ invoice_id }) => invoice_id)
      ofCustomers.push(...(byInvoice.get(null) ?? []))
      byInvoice.delete(null)
      await forEachConcurrently(byInvoice, atOnce, async ([invoiceId, notifications]) => {
        const newest = fetched.get(String(invoiceId))
        if (newest === undefined) add(await refetch.applyNotifications(notifications))
        else await saveEntries(mergedEntries(newest, notifications))
        for (const { id } of notifications) handled.add(id)
        fetched.set(String(invoiceId), newest ?? String(notifications[0]?.id))
      })
      if (page.next === null) break
      if (starts.has(page.next)) throw new SourceError('failed', 'the pages of the events lead in a circle')
      starts.add(page.next)
      after = page.next
    }
    // After the request: the process may have slept for weeks before it.
    if (await isGap(since)) {
      log.warn(`events reach back ${source.eventsKeptDays} days only; listing everything again`)
      await lists.listAgain()
      return total
    }
    const byCustomer = Map.groupBy(ofCustomers, ({ customer_id }) => customer_id)
    const listing = [...byCustomer.values()].map(some => listCustomer(some).then(add))
    const enough = patienceMs === undefined ? [] : [sleep(patienceMs, undefined, { ref: false })]
    await Promise.race([Promise.all(listing), ...enough])
    if (ofCustomers.every(({ id }) => handled.has(id))) {
      const error = source.lacks?.() ?? null
      if (error !== null && error !== stream.error) log.warn(error)
      const failed_at = error === null ? null : askedAt
      const isListed = await lists.isListed()
      await store.transaction(async tx => {
        await tx.saveStream({ ...stream, cursor: String(newest), succeeded_at: askedAt, failed_at, error })
        if (isListed) await corrections.confirm(tx, askedMs)
      })
      if (newest > since) newestCameMs = performance.now()
      isSettled = newest === since && askedMs - newestCameMs >= lateSeconds * 1_000
    } else if (patienceMs === undefined)
      throw new SourceError('failed', "a customer's invoices could not be listed")
    return total
  }

  /** A part of the store that is out of reach does not hold back an event for the sake of its journal. */
  async function saveEntries(entries: readonly JournalEntry[]): Promise<void> {
    await store
      .transaction(tx => tx.saveEntries(entries))
      .catch(error => {
        if (!(error instanceof StoreUnavailable)) throw error
      })
  }

  return (patienceMs?: number) => streams.run(names.events, stream => readEvents(stream, patienceMs))
}
