/** Lists the whole account again: slowly, for changes without an event; or at once, when forced. */
import type { Stream } from '../store/store.ts'
import { type Applied, addApplied } from './apply.ts'
import { type ListOptions, listAndCommit } from './list-ranges.ts'
import { type ListCursor, readCursor, wholeList, writeCursor } from './ranges.ts'
import type { Refetch } from './refetch-invoices.ts'
import type { SyncContext } from './sync-context.ts'
import { fetchUnlisted } from './unsettled.ts'

/** Ranges read at once: at half a second an answer, enough to use the whole rate limit. */
export const partsAtOnce = 16

/** A forced list runs at full speed, and so does one of `pagesAtMost` pages; the next call goes on with what was cut off. */
export function createRelist(
  context: SyncContext,
  refetch: Refetch,
): (isForced: boolean, pagesAtMost?: number) => Promise<Applied> {
  const { streams, names, calls, store } = context
  return (isForced, pagesAtMost = Number.POSITIVE_INFINITY) =>
    streams.run(names.relist, async found => {
      const kept = readCursor(found.cursor)
      const isAnew = found.cursor === null || kept.since === null || (isForced && !kept.isForced)
      const cursor = isAnew ? { since: calls.nextStamp(), isForced, ranges: [wholeList] } : kept
      // Before the first relist, the backfill was the last list of everything.
      const listed_at = found.succeeded_at ?? (await streams.read(names.backfill)).succeeded_at
      const stream = { ...found, succeeded_at: listed_at, failed_at: null, error: null }
      const isFast = isForced || pagesAtMost < Number.POSITIVE_INFINITY
      const { applied, isWhole } = await listEverything(context, refetch, stream, cursor, 'listed again', {
        urgency: isFast ? 'soon' : 'slowly',
        parallel: isFast ? partsAtOnce : 1,
        pagesAtMost,
      })
      if (isWhole) await store.transaction(tx => tx.saveSuccess(names.relist, Date.now()))
      return applied
    })
}

/** Lists what a cursor leaves, and keeps it with the stream; at its end fetches invoices that were not listed. */
export async function listEverything(
  context: SyncContext,
  refetch: Refetch,
  stream: Stream,
  { ranges, ...about }: ListCursor,
  step: string,
  how: Pick<ListOptions, 'parallel' | 'urgency' | 'pagesAtMost'> & { stop?: AbortSignal },
): Promise<{ applied: Applied; isWhole: boolean }> {
  const { applied, isWhole } = await listAndCommit(context, {
    ...how,
    ranges,
    async alongside(tx, left) {
      // At the end the cursor stays until the invoices that were not listed are fetched too.
      if (left.length > 0) await tx.saveStream({ ...stream, cursor: writeCursor({ ...about, ranges: left }) })
    },
    onProgress: (invoices, part) => context.reportProgress?.(step, invoices, part),
  })
  if (!isWhole || about.since === null) return { applied, isWhole }
  // Drafts that were deleted without an event are in no list.
  return { applied: addApplied(applied, await fetchUnlisted(context, refetch, about.since)), isWhole }
}
