/** Lists of the account: all of it once; again, for changes without an event; and the invoices that may still change. */
import { type InvoiceKey, unsettledStatuses } from '../invoice.ts'
import type { Stream } from '../store/store.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { createQueue, readBatches } from './concurrency.ts'
import { type ListOptions, listAndCommit } from './list-ranges.ts'
import { type ListCursor, readCursor, wholeList, writeCursor } from './ranges.ts'
import type { Refetch } from './refetch-invoices.ts'
import type { Why } from './stamped-calls.ts'
import type { SyncContext } from './sync-context.ts'

/** Ranges read at once: at half a second an answer, enough to use the whole rate limit. */
export const partsAtOnce = 16
const unsettledAtOnce = 8
const batchSize = 100

export type AccountLists = ReturnType<typeof createAccountLists>

export function createAccountLists(context: SyncContext, refetch: Refetch) {
  const { source, store, streams, names, calls, corrections, reportProgress } = context
  const enqueue = createQueue()
  let running: { stop: AbortController; ended: Promise<Applied> } | null = null
  let beginning: Promise<void> = Promise.resolve()

  const isListed = async () => {
    const { succeeded_at, cursor } = await streams.read(names.backfill)
    return succeeded_at !== null && cursor === null
  }

  /** Before everything was listed, and after a gap in the events, what a list corrects was not missed. */
  const whyAgain = async (): Promise<Why> => ((await isListed()) ? 'recheck' : null)

  /** Changes made while the list is read come as events: these are read from before its first page. */
  async function begin(stream: Stream, isAgain: boolean): Promise<Stream> {
    const events = await streams.read(names.events)
    if (!isAgain && events.cursor !== null && stream.cursor !== null) return stream
    const begunAt = Date.now()
    const { newest } = await source.listNotifications(0, null)
    // The list replaces all earlier events: until its end there is no success.
    // Invoices that came before the first list, by webhooks, may have gone before it, too. In an empty store there are none to look for.
    const isEmpty = !isAgain && (await store.readLastObserved()) === 0
    const listedSince = isEmpty ? null : calls.nextStamp()
    const cursor = writeCursor({ since: listedSince, begunAt, isForced: false, ranges: [wholeList] })
    const begun = { ...stream, succeeded_at: null, cursor }
    await store.transaction(async tx => {
      await tx.saveStream({ ...events, cursor: String(newest ?? 0) })
      await tx.saveStream(begun)
      await corrections.forget(tx)
    })
    return begun
  }

  /** Lists what a cursor leaves, and keeps it with the stream. At its end fetches invoices that were not listed; then the streams `done` succeeded. */
  async function listEverything(
    stream: Stream,
    { ranges, ...about }: ListCursor,
    step: string,
    how: Pick<ListOptions, 'parallel' | 'urgency' | 'pagesAtMost'> & { stop?: AbortSignal; why: Why },
    done: readonly string[],
  ): Promise<Applied> {
    const { applied, isWhole } = await listAndCommit(context, {
      ...how,
      ranges,
      async alongside(tx, left) {
        // At the end the cursor stays until the invoices that were not listed are fetched too.
        if (left.length > 0)
          await tx.saveStream({ ...stream, cursor: writeCursor({ ...about, ranges: left }) })
      },
      onProgress: (invoices, part) => reportProgress?.(step, invoices, part),
    })
    if (!isWhole) return applied
    // Drafts that were deleted without an event are in no list.
    const unlisted = about.since === null ? nothingApplied : await fetchUnlisted(about.since, how.why)
    await store.transaction(async tx => {
      for (const name of done) await tx.saveSuccess(name, Date.now())
      if (how.why !== 'recheck') await corrections.forget(tx)
    })
    return addApplied(applied, unlisted)
  }

  /** Fetches each invoice that is stored as unsettled and was not listed since: it is settled by now, or gone. */
  async function fetchUnlisted(since: number, why: Why): Promise<Applied> {
    let total = nothingApplied
    const read = (after: InvoiceKey | null, limit: number) => store.readUnsettled(after, limit, since)
    for await (const keys of readBatches(read, batchSize))
      total = addApplied(total, await refetch.fetchEach(keys, why === 'recheck'))
    return total
  }

  async function listOnce(stream: Stream, stop: AbortSignal, onBegun: () => void): Promise<Applied> {
    const begun = await begin(stream, false)
    onBegun()
    const how = { parallel: partsAtOnce, stop, why: null }
    // Everything was listed at its end: the relist is due a while from there.
    return listEverything(begun, readCursor(begun.cursor), 'listed', how, [names.backfill, names.relist])
  }

  return {
    /** Whether the whole account was listed. False again after a gap in the events that only a list can close. */
    isListed,
    /** When everything was listed last, or the list that is under way began, by our calendar; 0 before the first list. */
    async listedAt(): Promise<number> {
      const [backfill, relist] = [await streams.read(names.backfill), await streams.read(names.relist)]
      const begunAt = backfill.cursor === null ? null : readCursor(backfill.cursor).begunAt
      return Math.max(backfill.succeeded_at ?? 0, relist.succeeded_at ?? 0, begunAt ?? 0)
    },
    /** Resolves when a list that is about to begin has stored the moment to read events from. */
    begun: () => beginning,
    /** Lists everything once, several ranges at a time; goes on where it was cut off. */
    backfill(): Promise<Applied> {
      if (running !== null) return running.ended
      const stop = new AbortController()
      const begun = Promise.withResolvers<void>()
      beginning = begun.promise
      const ended = enqueue(async () =>
        (await isListed())
          ? nothingApplied
          : streams.run(names.backfill, stream => listOnce(stream, stop.signal, begun.resolve)),
      ).finally(() => {
        begun.resolve()
        running = null
      })
      running = { stop, ended }
      return ended
    },
    /** Begins a new list of everything; events are read from the newest of this moment on. */
    listAgain(): Promise<unknown> {
      running?.stop.abort()
      return enqueue(async () =>
        begin({ ...(await streams.read(names.backfill)), failed_at: null, error: null }, true),
      )
    },
    /** Lists everything again. A forced list runs at full speed, and so does one of `pagesAtMost` pages; the next call goes on with what was cut off. */
    relist: (isForced: boolean, pagesAtMost = Number.POSITIVE_INFINITY) =>
      streams.run(names.relist, async found => {
        const kept = readCursor(found.cursor)
        const isAnew = found.cursor === null || kept.since === null || (isForced && !kept.isForced)
        const cursor = isAnew
          ? { since: calls.nextStamp(), begunAt: Date.now(), isForced, ranges: [wholeList] }
          : kept
        // Before the first relist, the backfill was the last list of everything.
        const listed_at = found.succeeded_at ?? (await streams.read(names.backfill)).succeeded_at
        const stream = { ...found, succeeded_at: listed_at, failed_at: null, error: null }
        const isFast = isForced || pagesAtMost < Number.POSITIVE_INFINITY
        const how = { urgency: isFast ? 'soon' : 'slowly', parallel: isFast ? partsAtOnce : 1 } as const
        const why = await whyAgain()
        return listEverything(stream, cursor, 'listed again', { ...how, pagesAtMost, why }, [names.relist])
      }),
    /** Fetches again the invoices that may still change or be deleted, in case an event was missed. With a stamp, it does nothing if every such invoice was observed since. */
    rereadUnsettled: (unlessSince?: number) =>
      streams.run(names.unsettled, async () => {
        const since = unlessSince ?? calls.nextStamp()
        let total = nothingApplied
        const [left] = await store.readUnsettled(null, 1, since)
        if (left !== undefined) {
          const how = { parallel: unsettledAtOnce, why: await whyAgain() }
          for (const status of unsettledStatuses) {
            const listed = await listAndCommit(context, { ...how, filter: { status } })
            total = addApplied(total, listed.applied)
          }
          total = addApplied(total, await fetchUnlisted(since, how.why))
        }
        await store.transaction(tx => tx.saveSuccess(names.unsettled, Date.now()))
        return total
      }),
  }
}
