/** Reads a long list in several ranges at once, so that round trips to the platform do not bound the rate. */
import { setImmediate } from 'node:timers/promises'
import { type ListFilter, SourceError, type Urgency } from '../../sources/source.ts'
import type { WriteTransaction } from '../../store/store.ts'
import { addApplied, nothingApplied } from './apply-answers.ts'
import type { Commits, Committed, Why } from './commit-answers.ts'
import { type Arrival, type ListedPage, ListPlan, type Walk } from './list-plan.ts'
import { type Range, wholeList } from './ranges.ts'
import type { SyncContext } from './sync-context.ts'

/** Pages stored in one transaction when they come faster than they are stored. */
const pagesPerCommit = 32
/** Pages of a range that may wait to be stored while the next is on its way: fewer and larger transactions write less. */
const pagesAhead = 4

export interface ListOptions extends Pick<SyncContext, 'source' | 'log' | 'signal'> {
  filter?: ListFilter
  urgency?: Urgency
  ranges: readonly Range[]
  parallel: number
  /** After so many pages no further one is requested. */
  maxPages?: number
  commits: Pick<Commits, 'ask'>
  /** Stores pages, and with them the ranges that are then left to read: none, at the end. */
  store(pages: readonly ListedPage[], left: readonly Range[]): Promise<void>
  /** `part` is the share that is done, from 0 to 1; null when unknown. */
  onProgress?(invoices: number, part: number | null): void
}

/** Resolves when every requested page is stored, also after a failure or the signal; with whether these are all. */
export function listRanges(options: ListOptions): Promise<boolean> {
  return new ListReader(options).read()
}

class ListReader {
  private readonly options: ListOptions
  private readonly plan: ListPlan
  private readonly pages: PageQueue
  private readonly walking: Promise<void>[] = []
  private readers = 0
  private asked = 0
  private failure: unknown = null

  constructor(options: ListOptions) {
    this.options = options
    this.plan = new ListPlan(options.ranges, options.parallel)
    this.pages = new PageQueue(arrivals => this.storeAll(arrivals))
  }

  async read(): Promise<boolean> {
    const { signal } = this.options
    signal.throwIfAborted()
    this.readMore()
    // Ranges are added while others are read.
    for (let done = 0; done < this.walking.length; done++) await this.walking[done]
    if (this.failure !== null) throw this.failure
    if (!this.plan.isDone()) signal.throwIfAborted()
    return this.plan.isDone()
  }

  private isStopped(): boolean {
    const { signal, maxPages = Number.POSITIVE_INFINITY } = this.options
    return signal.aborted || this.failure !== null || this.asked >= maxPages
  }

  private readMore(): void {
    while (this.readers < this.options.parallel && !this.isStopped()) {
      const walk = this.plan.takeNext()
      if (walk === undefined) return
      this.readers++
      this.walking.push(this.follow(walk).then(() => this.endReader()))
    }
  }

  private endReader(): void {
    this.readers--
    this.readMore()
  }

  private async follow(walk: Walk): Promise<void> {
    const storing: Promise<void>[] = []
    try {
      let coming: Promise<ListedPage> | null = this.ask(walk, walk.range.after)
      while (coming !== null) {
        const page = this.plan.noteRead(walk, await coming)
        this.readMore()
        // The next page is on its way while this one is stored.
        coming = page.next === null || this.isStopped() ? null : this.ask(walk, page.next)
        // Handled when awaited; it is not awaited if this page cannot be stored.
        coming?.catch(() => {})
        storing.push(this.pages.add({ walk, page }))
        if (storing.length === pagesAhead) await storing.shift()
      }
    } catch (error) {
      this.failure ??= error
    }
    await Promise.all(storing).catch(error => {
      this.failure ??= error
    })
  }

  private async ask(walk: Walk, after: string | null): Promise<ListedPage> {
    const { source, commits, log, filter = {}, urgency = 'soon' } = this.options
    const { from, before } = walk.range
    const within = { ...filter, ...(from !== null && { from }), ...(before !== null && { before }) }
    this.asked++
    try {
      return await commits.ask(() => source.listInvoices(after, within, urgency))
    } catch (error) {
      const isMissing = error instanceof SourceError && error.failure === 'missing'
      if (!isMissing || after === null) throw error
      const previous = walk.stepBack()
      if (previous === null)
        log.warn('the invoice where the list was cut off is gone; listing from the beginning')
      return this.ask(walk, previous)
    }
  }

  private async storeAll(arrivals: readonly Arrival[]): Promise<void> {
    const { store, onProgress } = this.options
    const pages = arrivals.map(({ page }) => page)
    await store(pages, this.plan.leftAfter(arrivals))
    this.plan.noteStored(arrivals)
    onProgress?.(this.plan.invoices, this.plan.estimate())
    // SQLite commits in this thread: let webhooks and events run in between.
    await setImmediate()
  }
}

/** Pages that wait to be stored. Once a page could not be stored, no later one is: the cursor would lead past the missing page. */
class PageQueue {
  private readonly storeAll: (arrivals: readonly Arrival[]) => Promise<void>
  /** Pages for the next transaction; null before the first. */
  private gathered: Arrival[] | null = null
  private lastStored = Promise.resolve()

  constructor(storeAll: (arrivals: readonly Arrival[]) => Promise<void>) {
    this.storeAll = storeAll
  }

  /** Resolves when the page is stored, with all that arrive before the pages of the last transaction are. */
  add(arrival: Arrival): Promise<void> {
    if (this.gathered === null || this.gathered.length === pagesPerCommit) this.begin()
    this.gathered?.push(arrival)
    return this.lastStored
  }

  private begin(): void {
    const arrivals: Arrival[] = []
    this.gathered = arrivals
    this.lastStored = this.lastStored.then(() => {
      if (this.gathered === arrivals) this.gathered = null
      return this.storeAll(arrivals)
    })
    // Handled by the ranges of its pages, once they wait for it.
    this.lastStored.catch(() => {})
  }
}

/** Lists ranges, by default the whole list, and commits their pages. */
export async function listAndCommit(
  context: SyncContext,
  options: Pick<ListOptions, 'parallel'> &
    Partial<Omit<ListOptions, keyof SyncContext>> & {
      why: Why
      /** Ends the list before its end, and is no failure. */
      stop?: AbortSignal
      /** Writes, with the pages, the ranges that are left. */
      alongside?(tx: WriteTransaction, left: readonly Range[]): Promise<void>
    },
): Promise<Committed & { isWhole: boolean }> {
  const { commits, signal } = context
  const { why, stop, alongside, ...list } = options
  let applied = nothingApplied
  const overlaps: string[] = []
  const listing = listRanges({
    ...context,
    signal: stop === undefined ? signal : AbortSignal.any([signal, stop]),
    ranges: [wholeList],
    ...list,
    async store(pages, left) {
      const more = await commits.commit(pages, why, async tx => alongside?.(tx, left))
      applied = addApplied(applied, more.applied)
      overlaps.push(...more.overlaps)
    },
  })
  const isWhole = await listing.catch(error => {
    if (!stop?.aborted || signal.aborted) throw error
    return false
  })
  return { applied, overlaps, isWhole }
}
