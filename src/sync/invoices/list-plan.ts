/** Which ranges of a list are left to read, and in how many parts. State without I/O: the reader asks it what is next. */
import { type AnswerPage, SourceError } from '../../sources/source.ts'
import { cutByAge, cutInParts, isWhole, parts, type Range, spanOf } from './ranges.ts'

/** A list of so many pages is not worth the requests that it takes to cut it. */
const pagesUncut = 3

export interface ListedPage extends AnswerPage {
  askedAt: number
  answeredAt: number
}

/** A page of a range, on its way into the store. */
export interface Arrival {
  walk: Walk
  page: ListedPage
}

/** A range that is read from its newest invoice to its oldest. */
export class Walk {
  /** `after` is the last invoice that is stored. */
  range: Range
  /** When the last invoice that was read was created, stored or not; null before the first page. */
  reached: number | null = null
  /** Seconds spanned by its last page, or by that of the range it was cut from; 0 when unknown. */
  pageSpan: number
  private readonly starts = new Set<string>()
  /** Invoices of the last page, but for its last: when that one is gone, the list goes on after the one before. */
  private before: string[] = []

  constructor(range: Range, pageSpan: number) {
    this.range = range
    this.pageSpan = pageSpan
  }

  noteRead({ answers, unfit, next, began, reached }: ListedPage): void {
    this.reached = reached
    // After its last page nothing is left of a range.
    this.pageSpan = next === null ? Number.POSITIVE_INFINITY : Math.max(1, began - reached)
    if (next === null) return
    if (this.starts.has(next)) throw new SourceError('failed', 'the pages of a list lead in a circle')
    this.starts.add(next)
    this.before = [...answers, ...unfit].map(({ id }) => id).filter(id => id !== next)
  }

  /** Where to go on when the invoice at which the list was cut off is gone; null: from the beginning. */
  stepBack(): string | null {
    const previous = this.before.pop() ?? null
    if (previous === null) this.starts.clear()
    return previous
  }

  pagesLeft(): number {
    return spanOf(this.range, this.reached) / this.pageSpan
  }
}

export class ListPlan {
  /** Invoices that are stored. */
  invoices = 0
  private readonly parallel: number
  private readonly open = new Set<Walk>()
  /** Of the open ranges, those that nobody reads yet: the newest first. */
  private readonly waiting: Walk[] = []
  private pages = 0

  constructor(ranges: readonly Range[], parallel: number) {
    this.parallel = parallel
    for (const range of ranges) this.add(range, 0)
  }

  takeNext(): Walk | undefined {
    return this.waiting.shift()
  }

  isDone(): boolean {
    return this.open.size === 0
  }

  /**
   * Returns the page as it ends for its range. Of a range that is longer than its first pages, others read the rest. It is cut once:
   * the list in periods, and those in parts.
   */
  noteRead(walk: Walk, listed: ListedPage): ListedPage {
    const page = endWithin(walk.range, listed)
    this.pages++
    walk.noteRead(page)
    if (page.next !== null && this.isWorthCutting(walk)) this.cut(walk, page)
    return page
  }

  private cut(walk: Walk, page: ListedPage): void {
    const [own = walk.range, ...others] = isWhole(walk.range)
      ? cutByAge(walk.range, page.reached, this.pages * walk.pageSpan)
      : cutInParts(walk.range, page.reached)
    walk.range = own
    // A period may be far less dense than what is newer.
    for (const other of others) this.add(other, other.isCut ? walk.pageSpan : 0)
  }

  /** What is left to read once these pages are stored. Pages of a range are in their order: the last one counts. */
  leftAfter(arrivals: readonly Arrival[]): Range[] {
    const reached = new Map(arrivals.map(({ walk, page }) => [walk, page.next]))
    return [...this.open]
      .filter(walk => reached.get(walk) !== null)
      .map(walk => ({ ...walk.range, after: reached.get(walk) ?? walk.range.after }))
  }

  noteStored(arrivals: readonly Arrival[]): void {
    for (const { walk, page } of arrivals) {
      this.invoices += page.answers.length + page.unfit.length
      if (page.next === null) this.open.delete(walk)
      else walk.range = { ...walk.range, after: page.next }
    }
  }

  /** The share that is done, by pages: years may hold fewer invoices than a day. Null before each period was looked at. */
  estimate(): number | null {
    const open = [...this.open]
    if (open.some(({ range, pageSpan }) => pageSpan === 0 || isWhole(range))) return null
    return this.pages / (this.pages + open.reduce((sum, walk) => sum + walk.pagesLeft(), 0))
  }

  private isWorthCutting(walk: Walk): boolean {
    if (this.parallel === 1 || walk.range.isCut) return false
    return isWhole(walk.range) ? this.pages >= pagesUncut : walk.pagesLeft() >= parts
  }

  private add(range: Range, pageSpan: number): void {
    const walk = new Walk(range, pageSpan)
    this.open.add(walk)
    this.waiting.push(walk)
  }
}

/** A page that was requested before its range was cut may reach beyond it: the rest belongs to another range. */
function endWithin({ from }: Range, page: ListedPage): ListedPage {
  return from !== null && page.next !== null && page.reached < from ? { ...page, next: null } : page
}
