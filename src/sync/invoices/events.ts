/**
 * Reads the platform's events. For an event of an invoice, the invoice is
 * fetched. For an event of a customer, the customer's invoices are listed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Notification, SourceError } from '../../sources/source.ts'
import type { JournalEntry } from '../../store/document-store.ts'
import { StoreUnavailable, type Stream } from '../../store/store.ts'
import { forEachConcurrently } from '../concurrency.ts'
import { type Applied, addApplied, nothingApplied } from './apply-answers.ts'
import { lateEventsMs } from './corrections.ts'
import { type AccountLists, earliestEventMs } from './list-account.ts'
import { mergedEntries, type Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

/** Events this long before the cursor are read again, because an event may become visible late. */
const lateSeconds = lateEventsMs / 1_000
const atOnce = 16

/**
 * Reads events from a cursor, the `created` of the newest event seen. The
 * platform's clock is never compared with ours, because the two may differ.
 */
export class EventReader {
  private readonly context: SyncContext
  private readonly refetch: Refetch
  private readonly lists: AccountLists
  /** Time at which this process received the newest event, by a monotonic clock. */
  private newestCameMs = performance.now()
  /** True when events were read again after all events older than the newest one had become visible. */
  private isSettled = false

  constructor(context: SyncContext, refetch: Refetch, lists: AccountLists) {
    this.context = context
    this.refetch = refetch
    this.lists = lists
  }

  /** Applies the events since the last call. Waits for lists of a customer's invoices, at most `patienceMs` when it is given. */
  read(patienceMs: number | undefined): Promise<Applied> {
    const { streams, names } = this.context
    return streams.run(names.events, stream => this.readFrom(stream, patienceMs))
  }

  private async readFrom(stream: Stream, patienceMs: number | undefined): Promise<Applied> {
    // Before the backfill begins, there is no cursor to read from, and no event can be missed.
    if (stream.cursor === null) return nothingApplied
    const { source, log } = this.context
    const since = Number(stream.cursor)
    // The stored records are as fresh as the first request, not as the last page that was applied.
    const begun = { at: Date.now(), elapsedMs: performance.now() }
    const reading = new Reading()
    await this.readPages(reading, this.isSettled ? since : Math.max(0, since - lateSeconds))
    // The check for a gap comes after the request, because the process may have slept for weeks before the request.
    if (await this.isGap(since)) {
      log.warn(`events reach back ${source.eventsKeptDays} days only, so all invoices are listed again`)
      await this.lists.listAgain()
      return reading.applied
    }
    const listing = this.listCustomers(reading)
    await Promise.race([
      listing,
      ...(patienceMs === undefined ? [] : [sleep(patienceMs, undefined, { ref: false })]),
    ])
    if (reading.ofCustomers.every(({ id }) => this.refetch.handled.has(id)))
      await this.end(stream, begun, Math.max(since, reading.newest))
    else if (patienceMs === undefined)
      throw new SourceError('failed', "a customer's invoices could not be listed")
    return reading.applied
  }

  private async readPages(reading: Reading, from: number): Promise<void> {
    const starts = new Set<string>()
    for (let after: string | null = null; ; ) {
      const page = await this.context.source.listNotifications(from, after)
      reading.newest = Math.max(reading.newest, page.newest ?? 0)
      const fresh = page.notifications.filter(({ id }) => !this.refetch.handled.has(id))
      const byInvoice = Map.groupBy(fresh, ({ invoice_id }) => invoice_id)
      reading.ofCustomers.push(...(byInvoice.get(null) ?? []))
      byInvoice.delete(null)
      await forEachConcurrently(byInvoice, atOnce, ([invoiceId, notifications]) =>
        this.applyOne(reading, String(invoiceId), notifications),
      )
      if (page.next === null) return
      if (starts.has(page.next)) throw new SourceError('failed', 'the pages of the events lead in a circle')
      starts.add(page.next)
      after = page.next
    }
  }

  /** Fetches an invoice once, because of its newest event. Later pages hold older events, which go only into the journal. */
  private async applyOne(
    reading: Reading,
    invoiceId: string,
    notifications: readonly Notification[],
  ): Promise<void> {
    const newest = reading.fetched.get(invoiceId)
    if (newest === undefined) reading.add(await this.refetch.applyNotifications(notifications))
    else await this.saveEntries(mergedEntries(newest, notifications))
    for (const { id } of notifications) this.refetch.handled.add(id)
    reading.fetched.set(invoiceId, newest ?? String(notifications[0]?.id))
  }

  /**
   * Lists the invoices of several customers at the same time. Until a
   * customer's list is complete, the customer's events count as unread.
   */
  private async listCustomers(reading: Reading): Promise<void> {
    const byCustomer = Map.groupBy(reading.ofCustomers, ({ customer_id }) => customer_id)
    await Promise.all(
      [...byCustomer.values()].map(async notifications => {
        try {
          reading.add(await this.refetch.applyNotifications(notifications))
        } catch (error) {
          this.context.log.error(
            { err: error },
            "the list of a customer's invoices failed and is tried again",
          )
        }
      }),
    )
  }

  private async end(stream: Stream, begun: { at: number; elapsedMs: number }, newest: number): Promise<void> {
    const { source, store, corrections, log } = this.context
    const error = source.lacks?.() ?? null
    if (error !== null && error !== stream.error) log.warn(error)
    const failed_at = error === null ? null : begun.at
    const isListed = await this.lists.isListed()
    // After a long time without a success, events may have expired unread. In this case a full list was read and has corrected their
    // invoices.
    const isAfterGap = (stream.succeeded_at ?? 0) < earliestEventMs(source)
    const afterCommit = await store.transaction(async tx => {
      await tx.saveStream({ ...stream, cursor: String(newest), succeeded_at: begun.at, failed_at, error })
      if (isAfterGap) return corrections.forget(tx)
      return isListed ? corrections.confirm(tx, begun.elapsedMs) : null
    })
    afterCommit?.()
    const isNew = newest > Number(stream.cursor)
    if (isNew) this.newestCameMs = performance.now()
    this.isSettled = !isNew && begun.elapsedMs - this.newestCameMs >= lateSeconds * 1_000
  }

  /** Whether some events may have expired unread, because both the newest event seen and the last full list are too old. */
  private async isGap(since: number): Promise<boolean> {
    const earliestMs = earliestEventMs(this.context.source)
    return since * 1_000 < earliestMs && (await this.lists.listedAt()) < earliestMs
  }

  /** Saves journal entries. An unreachable part of the store must not stop an event only because of its journal entry. */
  private async saveEntries(entries: readonly JournalEntry[]): Promise<void> {
    await this.context.store
      .transaction(tx => tx.saveEntries(entries))
      .catch(error => {
        if (!(error instanceof StoreUnavailable)) throw error
      })
  }
}

class Reading {
  applied = nothingApplied
  /** `created` of the newest event, in seconds. */
  newest = 0
  /** Keys: ids of fetched invoices. Values: the id of each invoice's newest event. */
  readonly fetched = new Map<string, string>()
  readonly ofCustomers: Notification[] = []

  add(more: Applied): void {
    this.applied = addApplied(this.applied, more)
  }
}
