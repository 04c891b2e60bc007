/**
 * Lists of the account's invoices: all once (backfill), all again to find
 * changes without an event (relist), and the invoices that may still change.
 */
import { dayMs } from '../../domain/calendar.ts'
import { type InvoiceKey, unsettledStatuses } from '../../domain/invoice.ts'
import type { BillingSource } from '../../sources/source.ts'
import type { Stream } from '../../store/store.ts'
import { createQueue, readBatches } from '../concurrency.ts'
import { type Applied, addApplied, nothingApplied } from './apply-answers.ts'
import type { Recheck } from './commit-answers.ts'
import { type ListOptions, listAndCommit } from './list-ranges.ts'
import { type ListCursor, readListCursor, wholeList, writeListCursor } from './ranges.ts'
import type { Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'

/** Number of ranges read at once. With half a second for each answer, this uses the whole rate limit. */
export const partsAtOnce = 16
const unsettledAtOnce = 8
const batchSize = 100

/** Options for reading a list. `done` names the streams that succeed at its end. */
type How = Pick<ListOptions, 'parallel' | 'urgency' | 'maxPages'> & {
  step: string
  stop?: AbortSignal
  why: Recheck
  done: readonly string[]
}

/**
 * Returns the moment before which events may have expired. Two days are subtracted from
 * the days that events are kept: one for long lists, and one for a wrong local clock.
 */
export function earliestEventMs({ eventsKeptDays }: Pick<BillingSource, 'eventsKeptDays'>): number {
  return Date.now() - (eventsKeptDays - 2) * dayMs
}

export class AccountLists {
  private readonly context: SyncContext
  private readonly refetch: Refetch
  private readonly enqueue = createQueue()
  private runningBackfill: { stop: AbortController; ended: Promise<Applied> } | null = null
  private beginning: Promise<void> = Promise.resolve()

  constructor(context: SyncContext, refetch: Refetch) {
    this.context = context
    this.refetch = refetch
  }

  /** Whether all invoices of the account were listed. False again after a gap in the events, which only a full list can close. */
  async isListed(): Promise<boolean> {
    const { succeeded_at, cursor } = await this.read('backfill')
    return succeeded_at !== null && cursor === null
  }

  /** Time of the last full list or of the beginning of the running backfill, by the calendar clock. 0 before the first list. */
  async listedAt(): Promise<number> {
    const [backfill, relist] = [await this.read('backfill'), await this.read('relist')]
    const begunAt = backfill.cursor === null ? null : readListCursor(backfill.cursor).begunAt
    return Math.max(backfill.succeeded_at ?? 0, relist.succeeded_at ?? 0, begunAt ?? 0)
  }

  /** Resolves when a list that is about to begin has stored the cursor of the events. */
  begun(): Promise<void> {
    return this.beginning
  }

  /** Lists everything once, several ranges at a time. Continues a list that was cut off. */
  backfill(): Promise<Applied> {
    if (this.runningBackfill !== null) return this.runningBackfill.ended
    const { streams, names } = this.context
    const stop = new AbortController()
    const begun = Promise.withResolvers<void>()
    this.beginning = begun.promise
    const ended = this.enqueue(async () =>
      (await this.isListed())
        ? nothingApplied
        : streams.run(names.backfill, stream => this.listOnce(stream, stop.signal, begun.resolve)),
    ).finally(() => {
      begun.resolve()
      this.runningBackfill = null
    })
    this.runningBackfill = { stop, ended }
    return ended
  }

  /** Begins a new full list. Events are read from the newest event of this moment on. */
  listAgain(): Promise<unknown> {
    this.runningBackfill?.stop.abort()
    return this.enqueue(async () =>
      this.begin({ ...(await this.read('backfill')), failed_at: null, error: null }, true),
    )
  }

  /**
   * Lists everything again, or continues a relist that was cut off. A
   * forced list runs at full speed, and so does a list of `maxPages` pages.
   */
  relist(isForced: boolean, maxPages = Number.POSITIVE_INFINITY): Promise<Applied> {
    const { streams, names } = this.context
    return streams.run(names.relist, async found => {
      const kept = readListCursor(found.cursor)
      const isAnew = found.cursor === null || kept.since === null || (isForced && !kept.isForced)
      const cursor = isAnew ? this.newRelist(isForced) : kept
      // Before the first relist, the backfill was the last full list.
      const listed_at = found.succeeded_at ?? (await this.read('backfill')).succeeded_at
      const stream = { ...found, succeeded_at: listed_at, failed_at: null, error: null }
      const isFast = cursor.isForced || maxPages < Number.POSITIVE_INFINITY
      return this.listEverything(stream, cursor, {
        ...{ step: 'listed again', why: await this.whyAgain(), done: [names.relist], maxPages },
        ...{ urgency: isFast ? 'soon' : 'slowly', parallel: isFast ? partsAtOnce : 1 },
      })
    })
  }

  /** Makes the following relist run at full speed and from the beginning. An unfinished backfill does that itself. */
  async forceRelist(): Promise<void> {
    const found = await this.read('relist')
    if (!(await this.isListed()) || readListCursor(found.cursor).isForced) return
    const stream = { ...found, cursor: writeListCursor(this.newRelist(true)) }
    await this.context.store.transaction(tx => tx.saveStream(stream))
  }

  private newRelist(isForced: boolean): ListCursor {
    return { since: this.context.nextStamp(), begunAt: Date.now(), isForced, ranges: [wholeList] }
  }

  /**
   * Fetches the invoices again that may still change or be deleted, in case an event was
   * missed. With a stamp, does nothing when every such invoice was observed since the stamp.
   */
  rereadUnsettled(unlessSince?: number): Promise<Applied> {
    const { store, streams, names, nextStamp } = this.context
    return streams.run(names.unsettled, async () => {
      const since = unlessSince ?? nextStamp()
      const [first] = await store.readUnsettled(null, 1, since)
      const applied = first === undefined ? nothingApplied : await this.listUnsettled(since)
      await store.transaction(tx => tx.saveSuccess(names.unsettled, Date.now()))
      return applied
    })
  }

  private read(name: 'backfill' | 'relist' | 'events'): Promise<Stream> {
    return this.context.streams.read(this.context.names[name])
  }

  /** Differences count as missed events only when everything was listed and no gap in the events followed. */
  private async whyAgain(): Promise<Recheck> {
    return (await this.isListed()) ? 'recheck' : null
  }

  private async listOnce(stream: Stream, stop: AbortSignal, onBegun: () => void): Promise<Applied> {
    const { backfill, relist } = this.context.names
    const begun = await this.begin(stream, false)
    onBegun()
    return this.listEverything(begun, readListCursor(begun.cursor), {
      ...{ step: 'listed', why: null, parallel: partsAtOnce, stop },
      // The end of the backfill counts as the end of a relist, so the following relist is due one interval later.
      done: [backfill, relist],
    })
  }

  /** Stores the cursor of the events before the first page of the list, so that changes during the list arrive as events. */
  private async begin(stream: Stream, isAgain: boolean): Promise<Stream> {
    const { source, store, nextStamp, corrections } = this.context
    const events = await this.read('events')
    if (!isAgain && events.cursor !== null && stream.cursor !== null) return stream
    const begunAt = Date.now()
    const { newest } = await source.listNotifications(0, null)
    // The list replaces all earlier events, so the stream has no success until its end. Before the
    // first list, webhooks may have stored invoices that are gone by now. An empty store has none.
    const isEmpty = !isAgain && (await store.readLastObserved()) === 0
    const since = isEmpty ? null : nextStamp()
    const cursor = writeListCursor({ since, begunAt, isForced: false, ranges: [wholeList] })
    const begun = { ...stream, succeeded_at: null, cursor }
    const afterCommit = await store.transaction(async tx => {
      await tx.saveStream({ ...events, cursor: String(newest ?? 0) })
      await tx.saveStream(begun)
      return corrections.forget(tx)
    })
    afterCommit()
    return begun
  }

  /**
   * Lists the ranges of a cursor, and stores the remaining ranges with
   * each commit. At the end, fetches the invoices that were not listed.
   */
  private async listEverything(
    stream: Stream,
    { ranges, ...about }: ListCursor,
    { step, done, ...how }: How,
  ): Promise<Applied> {
    const { store, corrections, reportProgress } = this.context
    const listed = await listAndCommit(this.context, {
      ...how,
      ranges,
      async alongside(tx, remaining) {
        // At the end of the list, the cursor stays until the unlisted invoices are fetched as well.
        if (remaining.length > 0)
          await tx.saveStream({ ...stream, cursor: writeListCursor({ ...about, ranges: remaining }) })
      },
      onProgress: (invoices, part) => reportProgress?.(step, invoices, part),
    })
    const applied = await this.refetch.fetchOverlaps(listed, how.why)
    if (!listed.isWhole) return applied
    // Drafts that were deleted without an event are in no list.
    const unlisted = about.since === null ? nothingApplied : await this.fetchUnlisted(about.since, how.why)
    const afterCommit = await store.transaction(async tx => {
      for (const name of done) await tx.saveSuccess(name, this.endOf(about.begunAt))
      return how.why === 'recheck' ? null : corrections.forget(tx)
    })
    afterCommit?.()
    return addApplied(applied, unlisted)
  }

  /**
   * Returns the time of a list's success. A list that ran longer than events are
   * kept is as old as its beginning, because events of that time may have expired.
   */
  private endOf(begunAt: number | null): number {
    const isOutlived = begunAt !== null && begunAt < earliestEventMs(this.context.source)
    return isOutlived ? begunAt : Date.now()
  }

  private async listUnsettled(since: number): Promise<Applied> {
    const how = { parallel: unsettledAtOnce, why: await this.whyAgain() }
    let total = nothingApplied
    for (const status of unsettledStatuses) {
      const listed = await listAndCommit(this.context, { ...how, filter: { status } })
      total = addApplied(total, await this.refetch.fetchOverlaps(listed, how.why))
    }
    return addApplied(total, await this.fetchUnlisted(since, how.why))
  }

  /** Fetches each unsettled invoice that was not listed since the stamp. Such an invoice is settled by now, or gone. */
  private async fetchUnlisted(since: number, recheck: Recheck): Promise<Applied> {
    const { store } = this.context
    let total = nothingApplied
    const read = (after: InvoiceKey | null, limit: number) => store.readUnsettled(after, limit, since)
    for await (const keys of readBatches(read, batchSize))
      total = addApplied(total, await this.refetch.fetchEach(keys, recheck))
    return total
  }
}
