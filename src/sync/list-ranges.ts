/** Reads a long list in several ranges at once, so that round trips to the platform do not bound the rate. */
import { setImmediate } from 'node:timers/promises'
import { type ListFilter, type ObservationPage, SourceError, type Urgency } from '../sources.ts'
import type { WriteTransaction } from '../store/store.ts'
import { type Applied, addApplied, nothingApplied } from './apply.ts'
import { cutByAge, cutInParts, isWhole, parts, type Range, spanOf, wholeList } from './ranges.ts'
import type { StampedCalls, Why } from './stamped-calls.ts'
import type { SyncContext } from './sync-context.ts'

/** A list of so many pages is not worth the requests that it takes to cut it. */
const pagesUncut = 3
/** Pages stored in one transaction when they come faster than they are stored. */
const pagesPerCommit = 32
/** Pages of a range that may wait to be stored while the next is on its way: fewer and larger transactions write less. */
const pagesAhead = 4

export interface ListedPage extends ObservationPage {
  askedAt: number
}

export interface ListOptions extends Pick<SyncContext, 'source' | 'log' | 'signal'> {
  filter?: ListFilter
  urgency?: Urgency
  ranges: readonly Range[]
  parallel: number
  /** After so many pages no further one is requested. */
  pagesAtMost?: number
  calls: Pick<StampedCalls, 'ask'>
  /** Stores pages, and with them the ranges that are then left to read: none, at the end. */
  store(pages: readonly ListedPage[], left: readonly Range[]): Promise<void>
  /** `part` is the share that is done, from 0 to 1; null when unknown. */
  onProgress?(invoices: number, part: number | null): void
}

interface Walk {
  range: Range
  /** When the last invoice that was read was created, stored or not; null before the first page. */
  reached: number | null
  /** Seconds spanned by its last page, or by that of the range it was cut from; 0 when unknown. */
  pageSpan: number
  starts: Set<string>
  /** The last page's invoices: when the last of them is gone, the list goes on after the one before. */
  trail: string[]
}

interface Arrival {
  walk: Walk
  page: ListedPage
}

/** Resolves when every requested page is stored, also after a failure or the signal; with whether these are all. */
export async function listRanges(options: ListOptions): Promise<boolean> {
  const { source, log, signal, filter = {}, urgency = 'soon', parallel, calls, store, onProgress } = options
  const { pagesAtMost = Number.POSITIVE_INFINITY } = options
  /** What is left to read, and of it what nobody reads yet: the newest first. */
  const walks = new Set<Walk>()
  const waiting: Walk[] = []
  const walking: Promise<void>[] = []
  let readers = 0
  /** Pages for the next transaction; null before the first. */
  let gathered: Arrival[] | null = null
  /** Once a page could not be stored, no later one is: the cursor would lead past the missing page. */
  let lastStored = Promise.resolve()
  let failure: unknown = null
  let asked = 0
  let pages = 0
  let invoices = 0
  const isStopped = () => signal.aborted || failure !== null || asked >= pagesAtMost

  function add(range: Range, pageSpan: number): void {
    const walk: Walk = { range, reached: null, pageSpan, starts: new Set(), trail: [] }
    walks.add(walk)
    waiting.push(walk)
  }

  function readMore(): void {
    while (readers < parallel && !isStopped()) {
      const walk = waiting.shift()
      if (walk === undefined) return
      readers++
      const fail = (error: unknown) => {
        failure ??= error
      }
      const end = () => {
        readers--
        readMore()
      }
      walking.push(follow(walk).catch(fail).then(end))
    }
  }

  async function ask(walk: Walk, after: string | null): Promise<ListedPage> {
    const { from, before } = walk.range
    const within = { ...filter, ...(from !== null && { from }), ...(before !== null && { before }) }
    asked++
    try {
      return await calls.ask(() => source.listInvoices(after, within, urgency))
    } catch (error) {
      const isMissing = error instanceof SourceError && error.failure === 'missing'
      if (!isMissing || after === null) throw error
      const previous = walk.trail.pop() ?? null
      if (previous === null) {
        log.warn('the invoice where the list was cut off is gone; listing from the beginning')
        walk.starts.clear()
      }
      return ask(walk, previous)
    }
  }

  async function follow(walk: Walk): Promise<void> {
    const storing: Promise<void>[] = []
    try {
      let coming: Promise<ListedPage> | null = ask(walk, walk.range.after)
      while (coming !== null) {
        const page = endWithin(walk.range, await coming)
        coming = null
        pages++
        walk.reached = page.reached
        // After its last page nothing is left of a range.
        walk.pageSpan = page.next === null ? Number.POSITIVE_INFINITY : Math.max(1, page.began - page.reached)
        if (page.next !== null) {
          if (walk.starts.has(page.next))
            throw new SourceError('failed', 'the pages of a list lead in a circle')
          walk.starts.add(page.next)
          walk.trail = [...page.observations, ...page.unfit]
            .map(({ id }) => id)
            .filter(id => id !== page.next)
          cut(walk, page.reached)
          // The next page is on its way while this one is stored.
          if (!isStopped()) {
            coming = ask(walk, page.next)
            // Handled when awaited; it is not awaited if this page cannot be stored.
            coming.catch(() => {})
          }
        }
        storing.push(enqueue({ walk, page }))
        if (storing.length === pagesAhead) await storing.shift()
      }
    } finally {
      await Promise.all(storing)
    }
  }

  /** Resolves when the page is stored, with all that arrive before the pages of the last transaction are. */
  function enqueue(arrival: Arrival): Promise<void> {
    if (gathered === null || gathered.length === pagesPerCommit) {
      const some: Arrival[] = []
      gathered = some
      lastStored = lastStored.then(() => {
        if (gathered === some) gathered = null
        return storeSome(some)
      })
      // Handled by the ranges of its pages, once they wait for it.
      lastStored.catch(() => {})
    }
    gathered.push(arrival)
    return lastStored
  }

  async function storeSome(some: readonly Arrival[]): Promise<void> {
    const ended = new Set(some.filter(({ page }) => page.next === null).map(({ walk }) => walk))
    // Pages of a range are in their order: the last one counts.
    const reached = new Map(some.map(({ walk, page }) => [walk, page.next]))
    const left = [...walks]
      .filter(walk => !ended.has(walk))
      .map(walk => ({ ...walk.range, after: reached.get(walk) ?? walk.range.after }))
    await store(
      some.map(({ page }) => page),
      left,
    )
    for (const { walk, page } of some) {
      invoices += page.observations.length + page.unfit.length
      if (page.next === null) walks.delete(walk)
      else walk.range = { ...walk.range, after: page.next }
    }
    onProgress?.(invoices, estimatePart())
    // SQLite commits in this thread: let webhooks and events run in between.
    await setImmediate()
  }

  /** Of a range that is longer than its first pages, others read the rest. It is cut once: the list in periods, and those in parts. */
  function cut(walk: Walk, reached: number): void {
    const { range } = walk
    if (parallel === 1 || range.isCut || (isWhole(range) ? pages < pagesUncut : pagesLeft(walk) < parts))
      return
    const [own = range, ...others] = isWhole(range)
      ? cutByAge(range, reached, pages * walk.pageSpan)
      : cutInParts(range, reached)
    walk.range = own
    // A period may be far less dense than what is newer.
    for (const other of others) add(other, other.isCut ? walk.pageSpan : 0)
    readMore()
  }

  /** By pages: years may hold fewer invoices than a day. Null before each period was looked at. */
  function estimatePart(): number | null {
    const isKnown = [...walks].every(({ range, pageSpan }) => pageSpan > 0 && !isWhole(range))
    return isKnown ? pages / (pages + [...walks].reduce((sum, walk) => sum + pagesLeft(walk), 0)) : null
  }

  function pagesLeft({ range, reached, pageSpan }: Walk): number {
    return spanOf(range, reached) / pageSpan
  }

  signal.throwIfAborted()
  for (const range of options.ranges) add(range, 0)
  readMore()
  // Ranges are added while others are read.
  for (let done = 0; done < walking.length; done++) await walking[done]
  if (failure !== null) throw failure
  if (walks.size > 0) signal.throwIfAborted()
  return walks.size === 0
}

/** Lists ranges, by default the whole list, and commits their pages. */
export async function listAndCommit(
  context: SyncContext,
  options: Pick<ListOptions, 'parallel'> &
    Partial<Omit<ListOptions, keyof SyncContext>> & {
      why?: Why
      /** Ends the list before its end, and is no failure. */
      stop?: AbortSignal
      /** Writes, with the pages, the ranges that are left. */
      alongside?(tx: WriteTransaction, left: readonly Range[]): Promise<void>
    },
): Promise<{ applied: Applied; isWhole: boolean }> {
  const { calls, signal } = context
  const { why = null, stop, alongside, ...list } = options
  let applied = nothingApplied
  const listing = listRanges({
    ...context,
    signal: stop === undefined ? signal : AbortSignal.any([signal, stop]),
    ranges: [wholeList],
    ...list,
    async store(pages, left) {
      const more = await calls.commit(pages, why, async tx => alongside?.(tx, left))
      applied = addApplied(applied, more)
    },
  })
  const isWhole = await listing.catch(error => {
    if (!stop?.aborted || signal.aborted) throw error
    return false
  })
  return { applied, isWhole }
}

/** A page that was requested before its range was cut may reach beyond it: the rest belongs to another range. */
function endWithin({ from }: Range, page: ListedPage): ListedPage {
  return from !== null && page.next !== null && page.reached < from ? { ...page, next: null } : page
}
