/** Lists the whole account again: slowly, for changes without an event; or at once, when forced. */
import { type Applied, addApplied } from './apply.ts'
import { partsAtOnce } from './backfill.ts'
import { listAndCommit } from './list-ranges.ts'
import { readCursor, wholeList, writeCursor } from './ranges.ts'
import type { Refetch } from './refetch-invoices.ts'
import { succeed } from './streams.ts'
import type { SyncContext } from './sync-context.ts'
import { fetchUnlisted } from './unsettled.ts'

/**
 * A forced list runs at full speed, and goes on with a forced one that was cut off. With `pagesAtMost` it is as fast and stops
 * after so many pages; the next call goes on.
 */
export function createRelist(
  context: SyncContext,
  refetch: Refetch,
): (isForced: boolean, pagesAtMost?: number) => Promise<Applied> {
  const { streams, names, calls, store, reportProgress } = context
  return (isForced, pagesAtMost = Number.POSITIVE_INFINITY) =>
    streams.run(names.relist, async found => {
      const kept = readCursor(found.cursor)
      const isAnew = found.cursor === null || kept.since === null || (isForced && !kept.isForced)
      const about = isAnew
        ? { since: calls.nextStamp(), isForced }
        : { since: kept.since ?? 0, isForced: kept.isForced }
      // Before the first relist, the backfill was the last list of everything.
      const listed_at = found.succeeded_at ?? (await streams.read(names.backfill)).succeeded_at
      const stream = { ...found, succeeded_at: listed_at, failed_at: null, error: null }
      const isFast = isForced || pagesAtMost < Number.POSITIVE_INFINITY
      const { applied, isWhole } = await listAndCommit(context, {
        urgency: isFast ? 'soon' : 'slowly',
        ranges: isAnew ? [wholeList] : kept.ranges,
        parallel: isFast ? partsAtOnce : 1,
        pagesAtMost,
        async alongside(tx, left) {
          // At the end the cursor stays until the invoices that were not listed are fetched too.
          if (left.length > 0)
            await tx.saveStream({ ...stream, cursor: writeCursor({ ...about, ranges: left }) })
        },
        onProgress: (invoices, part) => reportProgress?.('listed again', invoices, part),
      })
      if (!isWhole) return applied
      const unlisted = await fetchUnlisted(context, refetch, about.since)
      await store.transaction(tx => succeed(tx, names.relist))
      return addApplied(applied, unlisted)
    })
}
