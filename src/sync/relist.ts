/** Lists the whole account again: slowly, for what no event told of; or at once, when somebody asks for it. */
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { partsAtOnce } from './backfill.ts'
import { listRanges } from './list-ranges.ts'
import type { Looks } from './looks.ts'
import { readCursor, writeCursor } from './ranges.ts'
import { succeed } from './streams.ts'
import { lookAtLeft } from './unsettled.ts'
import type { World } from './world.ts'

/**
 * `isForced`: now, and as fast as it goes; a list that was forced before and cut off goes on. With `pagesAtMost` it goes as fast, and
 * stops after so many; the next call goes on.
 */
export function createRelist(
  world: World,
  looks: Looks,
  onProgress?: (step: string, invoices: number, part: number | null) => void,
): (isForced: boolean, pagesAtMost?: number) => Promise<Applied> {
  const { streams, names, answers, store } = world
  return (isForced, pagesAtMost = Number.POSITIVE_INFINITY) =>
    streams.run(names.relist, async found => {
      const kept = readCursor(found.cursor)
      const isAnew = found.cursor === null || kept.since === null || (isForced && !kept.isForced)
      const about = isAnew
        ? { since: answers.nextStamp(), isForced }
        : { since: kept.since ?? 0, isForced: kept.isForced }
      // The first time, everything was last listed by the backfill: that this list is under way is no lack of it.
      const listed_at = found.succeeded_at ?? (await streams.read(names.backfill)).succeeded_at
      const stream = { ...found, succeeded_at: listed_at, failed_at: null, error: null }
      const isFast = isForced || pagesAtMost < Number.POSITIVE_INFINITY
      let total = nothingApplied
      const isWhole = await listRanges({
        ...world,
        urgency: isFast ? 'soon' : 'slowly',
        ranges: isAnew ? readCursor(null).ranges : kept.ranges,
        parallel: isFast ? partsAtOnce : 1,
        pagesAtMost,
        async store(pages, left) {
          // At the end the cursor stays, until those that were not listed are asked for too.
          const applied = await answers.commit(pages, null, async tx => {
            if (left.length === 0) return
            await tx.saveStream({ ...stream, cursor: writeCursor({ ...about, ranges: left }) })
          })
          total = addApplied(total, applied)
        },
        onProgress: (invoices, part) => onProgress?.('listed again', invoices, part),
      })
      if (!isWhole) return total
      total = addApplied(total, await lookAtLeft(world, looks, about.since))
      await store.transaction(succeed(stream, null))
      return total
    })
}
