/** Reads a long list in parts side by side, so that the way to the platform and back does not bound how fast it goes. */
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import {
  type BillingSource,
  type ListFilter,
  type ObservationPage,
  SourceError,
  type Urgency,
} from '../sources.ts'
import type { Answers } from './answers.ts'
import type { Range } from './ranges.ts'

/** A list that is over by then is not worth the questions that it takes to cut it... */
const pagesInOnePiece = 5
/** ...unless a page of it spans less than this, in seconds: then it is most likely long. */
const spanOfMany = 14 * 86_400
/** A list without a known beginning is cut after this many pages and seconds, then after twice as many, and so on: ten years. */
const firstPages = 4
const firstSeconds = 30 * 86_400
const steps = 8
/** A list of at most this many pages is left in one piece. */
const fewestPages = 3
/** How many pages are stored together when they come faster than they are stored. */
const pagesAtOnce = 32
/** How many pages of a part may wait to be stored while the next is on its way: fewer and larger transactions write less. */
const pagesAhead = 4

export interface ListedPage extends ObservationPage {
  /** The stamp before it was asked for. */
  askedAt: number
}

export interface ListOptions {
  source: BillingSource
  log: Logger
  signal: AbortSignal
  filter?: ListFilter
  urgency?: Urgency
  /** What is to be read. */
  ranges: readonly Range[]
  /** How many parts at once. */
  parallel: number
  /** After so many pages no further one is asked for; but of each part, one is. */
  pagesAtMost?: number
  answers: Pick<Answers, 'ask'>
  /** Stores pages, and with them what is then left to read: nothing, at the end. */
  store(pages: readonly ListedPage[], left: readonly Range[]): Promise<void>
  /** `part` is how much of the way is done, from 0 to 1; null when nobody can tell. */
  onProgress?(invoices: number, part: number | null): void
}

/** A part that is being read. */
interface Walk {
  range: Range
  /** When the last invoice that was read was created, stored or not; null before the first page. */
  reached: number | null
  /** How many seconds its last page spans, or that of the part it was halved from; 0 when nothing tells. */
  pageSpan: number
  /** Where pages began. */
  starts: Set<string>
  /** The last page's invoices: when the last of them is gone, the list goes on after the one before. */
  trail: string[]
  /** Why a page of it could not be stored. Then no later one is: the cursor would lead past what is missing. */
  failure: { error: unknown } | null
}

interface Arrival {
  walk: Walk
  page: ListedPage
  stored: PromiseWithResolvers<void>
}

/**
 * Resolves when all is stored that was asked for: with whether that is everything. When something fails or the signal comes, what was
 * asked for already is stored first.
 */
export async function listRanges(options: ListOptions): Promise<boolean> {
  const { source, log, signal, filter = {}, urgency = 'soon', parallel, answers, store, onProgress } = options
  const { pagesAtMost = Number.POSITIVE_INFINITY } = options
  const walks = new Set<Walk>()
  const walking: Promise<void>[] = []
  const arrivals: Arrival[] = []
  let failure: unknown = null
  let isStoring = false
  let asked = 0
  let pages = 0
  let invoices = 0
  const isStopped = () => signal.aborted || failure !== null || asked >= pagesAtMost

  function start(range: Range, pageSpan: number): void {
    const walk: Walk = { range, reached: null, pageSpan, starts: new Set(), trail: [], failure: null }
    walks.add(walk)
    walking.push(
      follow(walk).catch(error => {
        failure ??= error
      }),
    )
  }

  async function ask(walk: Walk, after: string | null): Promise<ListedPage> {
    const { from, before } = walk.range
    const within = { ...filter, ...(from !== null && { from }), ...(before !== null && { before }) }
    asked++
    try {
      return await answers.ask(() => source.listInvoices(after, within, urgency))
    } catch (error) {
      if (!isMissing(error) || after === null) throw error
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
        read(walk, page)
        if (page.next !== null) {
          if (walk.starts.has(page.next))
            throw new SourceError('failed', 'the pages of a list lead in a circle')
          walk.starts.add(page.next)
          walk.trail = [...page.observations, ...page.unfit]
            .map(({ id }) => id)
            .filter(id => id !== page.next)
          // The next page is on its way while this one is stored; once it is to stop, none is asked for.
          if (!isStopped()) {
            coming = ask(walk, page.next)
            // Noticed when it is waited for, which it is not once this page could not be stored.
            coming.catch(() => {})
          }
        }
        storing.push(arrive(walk, page))
        if (storing.length === pagesAhead) await storing.shift()
      }
    } finally {
      await Promise.all(storing)
    }
  }

  /** Where it has come to is known before it is stored: what is left can be shared by then. */
  function read(walk: Walk, { next, began, reached }: ListedPage): void {
    pages++
    walk.reached = reached
    // Of its last page, there is nothing left to cut.
    walk.pageSpan = next === null ? Number.POSITIVE_INFINITY : Math.max(1, began - reached)
    share()
  }

  function arrive(walk: Walk, page: ListedPage): Promise<void> {
    const stored = Promise.withResolvers<void>()
    // Noticed when it is waited for.
    stored.promise.catch(() => {})
    arrivals.push({ walk, page, stored })
    if (!isStoring) void storeArrivals()
    return stored.promise
  }

  async function storeArrivals(): Promise<void> {
    isStoring = true
    while (arrivals.length > 0) {
      const some = takeArrivals()
      try {
        if (some.length > 0) await storeSome(some)
      } catch (error) {
        for (const { walk, stored } of some) {
          walk.failure ??= { error }
          stored.reject(error)
        }
      }
    }
    isStoring = false
  }

  function takeArrivals(): Arrival[] {
    return arrivals.splice(0, pagesAtOnce).filter(({ walk: { failure }, stored }) => {
      if (failure !== null) stored.reject(failure.error)
      return failure === null
    })
  }

  async function storeSome(some: readonly Arrival[]): Promise<void> {
    const ended = new Set(some.filter(({ page }) => page.next === null).map(({ walk }) => walk))
    // Of several pages of a part, the last one counts: they are in their order.
    const reached = new Map(some.map(({ walk, page }) => [walk, page.next]))
    const left = [...walks]
      .filter(walk => !ended.has(walk))
      .map(walk => ({ ...walk.range, after: reached.get(walk) ?? walk.range.after }))
    await store(
      some.map(({ page }) => page),
      left,
    )
    for (const { walk, page, stored } of some) {
      invoices += page.observations.length + page.unfit.length
      if (page.next === null) walks.delete(walk)
      else walk.range = { ...walk.range, after: page.next }
      stored.resolve()
    }
    share()
    onProgress?.(invoices, tellPart())
    // A store within the process keeps it busy: what happened just now has its turn in between.
    await setImmediate()
  }

  /** Gives those that have nothing left to read a half of what takes longest. */
  function share(): void {
    if (parallel === 1 || isStopped()) return
    for (const walk of walks) if (walk.range.from === null) cutOff(walk)
    while (walks.size < parallel) {
      const [longest, span] = findLongest()
      if (longest === null || longest.reached === null) return
      const middle = longest.reached - Math.floor(span / 2)
      start({ from: longest.range.from, before: middle, after: null }, longest.pageSpan)
      longest.range = { ...longest.range, from: middle }
    }
  }

  /**
   * Cuts a part whose beginning is not known, into parts that double in length: their first pages tell which of them
   * hold much, and those before the first invoice are over at once.
   */
  function cutOff(walk: Walk): void {
    const { range, reached, pageSpan } = walk
    const isLong = walks.size > 1 || pages >= pagesInOnePiece || pageSpan < spanOfMany
    if (reached === null || !isLong || walks.size + steps > parallel) return
    const first = Math.max(firstSeconds, firstPages * pageSpan)
    const bounds = Array.from({ length: steps }, (_, step) => reached - first * 2 ** step)
      // Nothing was created before clocks began.
      .filter(bound => bound > 0)
    walk.range = { ...range, from: bounds[0] ?? null }
    for (const [step, before] of bounds.entries())
      start({ from: bounds[step + 1] ?? null, before, after: null }, 0)
  }

  /** Of the parts that are worth cutting, the one with the most pages to come, as far as the last one tells. */
  function findLongest(): [Walk | null, number] {
    const spans = [...walks].map(walk => [walk, spanOf(walk)] as [Walk, number])
    const worth = spans.filter(
      ([{ pageSpan, reached }, span]) => reached !== null && span >= 2 && span / pageSpan >= fewestPages,
    )
    return worth.reduce<[Walk | null, number]>(
      (best, each) => (each[1] / each[0].pageSpan > best[1] / (best[0]?.pageSpan ?? 1) ? each : best),
      [null, 0],
    )
  }

  /** How many seconds are left of a part; 0 when that is not known. */
  function spanOf({ range, reached }: Walk): number {
    const until = reached ?? range.before
    return range.from === null || until === null ? 0 : Math.max(0, until - range.from)
  }

  /** By pages: invoices of years may be fewer than those of a day. */
  function tellPart(): number | null {
    if ([...walks].some(({ range, pageSpan }) => range.from === null || pageSpan === 0)) return null
    const left = [...walks].reduce((sum, walk) => sum + spanOf(walk) / walk.pageSpan, 0)
    return pages / (pages + left)
  }

  signal.throwIfAborted()
  for (const range of options.ranges) start(range, 0)
  // Parts are added while others are read.
  for (let done = 0; done < walking.length; done++) await walking[done]
  if (failure !== null) throw failure
  if (walks.size > 0) signal.throwIfAborted()
  return walks.size === 0
}

/** A page that was asked for before its part was cut may reach beyond: what follows is another's. */
function endWithin({ from }: Range, page: ListedPage): ListedPage {
  return from !== null && page.next !== null && page.reached < from ? { ...page, next: null } : page
}

export function isMissing(error: unknown): boolean {
  return error instanceof SourceError && error.failure === 'missing'
}
