/** Lists the whole account once, several ranges at a time; goes on where it was cut off. */
import type { Stream } from '../store/store.ts'
import { type Applied, nothingApplied } from './apply.ts'
import { readCursor, wholeList, writeCursor } from './ranges.ts'
import type { Refetch } from './refetch-invoices.ts'
import { listEverything, partsAtOnce } from './relist.ts'
import type { SyncContext } from './sync-context.ts'

export type Backfill = ReturnType<typeof createBackfill>

export function createBackfill(context: SyncContext, refetch: Refetch) {
  const { source, store, streams, names, calls } = context
  let running: { stop: AbortController; ended: Promise<Applied> } | null = null
  let beginning: Promise<void> = Promise.resolve()
  let resetting: Promise<void> = Promise.resolve()
  let begunAtMs = Number.NEGATIVE_INFINITY

  const isDone = async () => {
    const { succeeded_at, cursor } = await streams.read(names.backfill)
    return succeeded_at !== null && cursor === null
  }

  /** Changes made while the list is read come as events: these are read from before its first page. */
  async function begin(stream: Stream, since: number | null): Promise<Stream> {
    const events = await streams.read(names.events)
    if (since === null && events.cursor !== null && stream.cursor !== null) return stream
    // A clock that is ahead would lead past events that are still to come; one that is behind only repeats some.
    const now =
      since ?? Math.min((await source.listNotifications(0, null)).now, Math.floor(Date.now() / 1_000))
    // The list replaces all earlier events: until its end there is no success.
    // Invoices that came before the first list, by webhooks, may have gone before it, too. In an empty store there are none to look for.
    const isEmpty = since === null && (await store.readLastObserved()) === 0
    const listedSince = isEmpty ? null : calls.nextStamp()
    const cursor = writeCursor({ since: listedSince, isForced: false, ranges: [wholeList] })
    const begun = { ...stream, succeeded_at: null, cursor }
    await store.transaction(async tx => {
      await tx.saveStream({ ...events, cursor: String(now) })
      await tx.saveStream(begun)
    })
    begunAtMs = performance.now()
    return begun
  }

  async function list(stream: Stream, stop: AbortSignal, onBegun: () => void): Promise<Applied> {
    const begun = await begin(stream, null)
    onBegun()
    const cursor = readCursor(begun.cursor)
    const how = { parallel: partsAtOnce, stop }
    const { applied, isWhole } = await listEverything(context, refetch, begun, cursor, 'listed', how)
    if (isWhole)
      await store.transaction(async tx => {
        await tx.saveSuccess(names.backfill, Date.now())
        // Everything was listed just now: the relist is due a while from here.
        await tx.saveSuccess(names.relist, Date.now())
      })
    return applied
  }

  return {
    isDone,
    /** The last beginning of a list by this process, by a monotonic clock. */
    begunAtMs: () => begunAtMs,
    /** Resolves when a list that is about to begin has stored the moment to read events from. */
    begun: () => beginning,
    run(): Promise<Applied> {
      if (running !== null) return running.ended
      const stop = new AbortController()
      const begun = Promise.withResolvers<void>()
      beginning = begun.promise
      const ended = runOnce(stop.signal, begun.resolve).finally(() => {
        begun.resolve()
        running = null
      })
      running = { stop, ended }
      return ended
    },
    /** Begins a new list of everything; events are read from this moment of the platform's clock on. */
    listAgain(since: number): Promise<void> {
      resetting = reset(since)
      return resetting
    },
  }

  async function runOnce(stop: AbortSignal, onBegun: () => void): Promise<Applied> {
    await resetting.catch(() => {})
    if (await isDone()) return nothingApplied
    return streams.run(names.backfill, stream => list(stream, stop, onBegun))
  }

  async function reset(since: number): Promise<void> {
    running?.stop.abort()
    await running?.ended.catch(() => {})
    await begin({ ...(await streams.read(names.backfill)), failed_at: null, error: null }, since)
  }
}
