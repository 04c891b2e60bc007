import { setTimeout as sleep } from 'node:timers/promises'
import { type Notification, type NotificationPage, SourceError } from '../sources.ts'
import type { JournalEntry } from '../store/document-store.ts'
import { StoreUnavailable, type Stream } from '../store/store.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { forEachConcurrently } from './concurrency.ts'
import type { AccountLists } from './list-account.ts'
import { mergedEntries, type Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

/** In seconds: events may become visible a little late. Those read before are not applied again. */
const overlap = 300
/** Seconds that the platform's clock may have moved on further than ours. */
const clockSlack = 60
/** A clock that is ahead by more seconds is reported. */
const reportedAhead = 300
const atOnce = 16

/** `patienceMs` is how long to wait for lists of whole customers; until their end when not given. */
export function followEvents(context: SyncContext, refetch: Refetch, lists: AccountLists) {
  const { source, store, streams, names, log } = context
  const { handled } = refetch
  // A gap nearly as long as events are kept is closed by listing everything again.
  const longestGap = (source.eventsKeptDays - 1) * 24 * 60 * 60
  /** When this process set the cursor last, or its start, by a monotonic clock. */
  let cursorSetMs = performance.now()

  const readPage = (since: number, after: string | null) =>
    source.listNotifications(Math.max(0, since - overlap), after)

  /** Events of other customers do not wait for a long list; until it is done, the events that led to it count as not read. */
  async function listCustomer(notifications: readonly Notification[]): Promise<Applied> {
    try {
      return await refetch.applyNotifications(notifications)
    } catch (error) {
      log.error({ err: error }, "listing a customer's invoices failed; trying again")
      return nothingApplied
    }
  }

  /** The platform's clock, as far as plausible: it moved no further than ours since the last success, unless an event shows that it did. */
  function plausibleNow(stream: Stream, page: NotificationPage): number {
    const since = Number(stream.cursor)
    const passed = Math.max(0, passedMs(stream)) / 1_000
    return Math.min(page.now, Math.max(Math.floor(since + passed) + clockSlack, newestOf(page)))
  }

  /** Time since the cursor was set: by the last success, or by the beginning of a list. */
  function passedMs({ cursor, succeeded_at }: Stream): number {
    const begunAtMs = lists.begunAtMs()
    if (begunAtMs > cursorSetMs) return performance.now() - begunAtMs
    // A list of an earlier process began no later than this moment of our clock.
    if (succeeded_at === null) return Date.now() - Number(cursor) * 1_000
    return Math.max(Date.now() - succeeded_at, performance.now() - cursorSetMs)
  }

  /** Whether one of our clocks shows the time that passed at the platform: the monotonic one, which nobody sets, or the calendar, which outlives a process. */
  function isBorneOut(now: number, { cursor, succeeded_at }: Stream): boolean {
    const passed = now - Number(cursor)
    const elapsedMs = performance.now() - Math.max(cursorSetMs, lists.begunAtMs())
    const calendarMs = Date.now() - (succeeded_at ?? Number(cursor) * 1_000)
    return passed <= elapsedMs / 1_000 + clockSlack || Math.abs(passed - calendarMs / 1_000) <= clockSlack
  }

  async function readEvents(stream: Stream, patienceMs: number | undefined): Promise<Applied> {
    // Until the backfill has begun there is no moment to read from, and nothing to miss.
    if (stream.cursor === null) return nothingApplied
    const since = Number(stream.cursor)
    // The records are as fresh as the first request, not as the last page that was applied.
    const askedAt = Date.now()
    const askedMs = performance.now()
    const first = await readPage(since, null)
    const now = plausibleNow(stream, first)
    // Of the same moment as the success, since when time passes for the next read. Where the clocks differ, only events lead on.
    const reached = isBorneOut(first.now, stream)
      ? first.now - Math.floor((performance.now() - askedMs) / 1_000)
      : newestOf(first)
    const gap = now - since
    if (gap > longestGap) {
      log.warn(
        { days: Math.round(gap / 86_400) },
        `events reach back ${source.eventsKeptDays} days only; listing everything again`,
      )
      await lists.listAgain(now)
      return nothingApplied
    }
    const starts = new Set<string>()
    /** Invoices that were fetched, by their newest event: later pages hold older events. */
    const fetched = new Map<string, string>()
    const ofCustomers: Notification[] = []
    let total = nothingApplied
    const add = (applied: Applied) => {
      total = addApplied(total, applied)
    }
    for (let page = first; ; page = await readPage(since, page.next)) {
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
    }
    const byCustomer = Map.groupBy(ofCustomers, ({ customer_id }) => customer_id)
    const listing = [...byCustomer.values()].map(some => listCustomer(some).then(add))
    const enough = patienceMs === undefined ? [] : [sleep(patienceMs, undefined, { ref: false })]
    await Promise.race([Promise.all(listing), ...enough])
    if (ofCustomers.every(({ id }) => handled.has(id))) {
      const ahead = first.now - now
      const error =
        ahead > reportedAhead
          ? `the clock of ${source.name} is ${ahead} s ahead of any plausible time: it is ignored, and events are read as before`
          : (source.lacks?.() ?? null)
      if (error !== null && error !== stream.error) log.warn(error)
      const failed_at = error === null ? null : askedAt
      const cursor = String(Math.max(since, reached))
      await store.transaction(tx =>
        tx.saveStream({ ...stream, cursor, succeeded_at: askedAt, failed_at, error }),
      )
      if (reached >= since) cursorSetMs = askedMs
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

function newestOf({ notifications }: NotificationPage): number {
  return Math.max(0, ...notifications.map(({ created }) => created))
}
