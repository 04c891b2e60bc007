/** Reads a long list in several ranges at once, so that the platform's response time does not limit the rate. */
import { setImmediate } from 'node:timers/promises'
import { type ListFilter, SourceError, type Urgency } from '../../sources/source.ts'
import type { WriteTransaction } from '../../store/store.ts'
import { addApplied, nothingApplied } from './apply-answers.ts'
import type { Commits, Committed, Why } from './commit-answers.ts'
import { type Arrival, type ListedPage, ListPlan, type RangePass } from './list-plan.ts'
import { type Range, wholeList } from './ranges.ts'
import type { SyncContext } from './sync-context.ts'

/** Maximum number of pages in one transaction, when pages arrive faster than they are stored. */
const pagesPerCommit = 32
/** Number of pages of a range that may wait to be stored while another page is requested. Fewer and larger transactions write less. */
const pagesAhead = 4

export interface ListOptions extends Pick<SyncContext, 'source' | 'log' | 'signal'> {
  filter?: ListFilter
  urgency?: Urgency
  ranges: readonly Range[]
  parallel: number
  maxPages?: number
  commits: Pick<Commits, 'ask'>
  /** Stores pages together with the ranges that remain to be read. At the end of the list, no range remains. */
  store(pages: readonly ListedPage[], remaining: readonly Range[]): Promise<void>
  /** `part` is the share of the list that is done, from 0 to 1. Null when unknown. */
  onProgress?(invoices: number, part: number | null): void
}

/**
 * Reads ranges. Ends when every requested page is stored, even after a
 * failure or an abort. Resolves with true when the list is complete.
 */
export function listRanges(options: ListOptions): Promise<boolean> {
  return new ListReader(options).read()
}

class ListReader {
  private readonly options: ListOptions
  private readonly plan: ListPlan
  private readonly pages: PageQueue
  private readonly running: Promise<void>[] = []
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
    // Ranges may be added during this loop.
    for (let done = 0; done < this.running.length; done++) await this.running[done]
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
      const pass = this.plan.takeNext()
      if (pass === undefined) return
      this.readers++
      this.running.push(this.follow(pass).then(() => this.endReader()))
    }
  }

  private endReader(): void {
    this.readers--
    this.readMore()
  }

  private async follow(pass: RangePass): Promise<void> {
    const storing: Promise<void>[] = []
    try {
      let coming: Promise<ListedPage> | null = this.ask(pass, pass.range.after)
      while (coming !== null) {
        const page = this.plan.recordRead(pass, await coming)
        this.readMore()
        // The following page is requested while this page is stored.
        coming = page.next === null || this.isStopped() ? null : this.ask(pass, page.next)
        // This empty handler prevents an unhandled rejection when the loop ends before `coming` is awaited.
        coming?.catch(() => {})
        storing.push(this.pages.add({ pass, page }))
        if (storing.length === pagesAhead) await storing.shift()
      }
    } catch (error) {
      this.failure ??= error
    }
    await Promise.all(storing).catch(error => {
      this.failure ??= error
    })
  }

  private async ask(pass: RangePass, after: string | null): Promise<ListedPage> {
    const { source, commits, log, filter = {}, urgency = 'soon' } = this.options
    const { from, before } = pass.range
    const within = { ...filter, ...(from !== null && { from }), ...(before !== null && { before }) }
    this.asked++
    try {
      return await commits.ask(() => source.listInvoices(after, within, urgency))
    } catch (error) {
      const isMissing = error instanceof SourceError && error.failure === 'missing'
      if (!isMissing || after === null) throw error
      const previous = pass.stepBack()
      if (previous === null) log.warn('the last listed invoice is gone, so the list starts again')
      return this.ask(pass, previous)
    }
  }

  private async storeAll(arrivals: readonly Arrival[]): Promise<void> {
    const { store, onProgress } = this.options
    const pages = arrivals.map(({ page }) => page)
    await store(pages, this.plan.remainingAfter(arrivals))
    this.plan.recordStored(arrivals)
    onProgress?.(this.plan.storedInvoices, this.plan.estimate())
    // SQLite commits in this thread. Webhooks and events can run between two commits.
    await setImmediate()
  }
}

/**
 * Pages that wait to be stored. After a page could not be stored, no
 * later page is stored, because the cursor would skip the missing page.
 */
class PageQueue {
  private readonly storeAll: (arrivals: readonly Arrival[]) => Promise<void>
  /** Pages for the following transaction. Null when no page waits. */
  private gathered: Arrival[] | null = null
  private lastStored = Promise.resolve()

  constructor(storeAll: (arrivals: readonly Arrival[]) => Promise<void>) {
    this.storeAll = storeAll
  }

  /** Resolves when the page is stored. Pages that arrive during a transaction are stored together in the following one. */
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
    // This empty handler prevents an unhandled rejection before a caller of `add` awaits the promise.
    this.lastStored.catch(() => {})
  }
}

/** Lists ranges, by default the whole list, and commits their pages. */
export async function listAndCommit(
  context: SyncContext,
  options: Pick<ListOptions, 'parallel'> &
    Partial<Omit<ListOptions, keyof SyncContext>> & {
      why: Why
      /** Stops the list early. This is no failure. */
      stop?: AbortSignal
      /** Writes the remaining ranges in the transaction of the pages. */
      alongside?(tx: WriteTransaction, remaining: readonly Range[]): Promise<void>
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
    async store(pages, remaining) {
      const more = await commits.commit(pages, why, async tx => alongside?.(tx, remaining))
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
