/** Plans a long list: which ranges remain, and how a range is cut. The plan holds state and does no I/O. */
import { type AnswerPage, SourceError } from '../../sources/source.ts'
import { cutByAge, cutInParts, isWhole, parts, type Range, spanOf } from './ranges.ts'

/** Number of pages that are read before a list is cut. Cutting a shorter list costs more requests than it saves. */
const pagesUncut = 3

export interface ListedPage extends AnswerPage {
  askedAt: number
  answeredAt: number
}

/** A page of a range that was read and is not stored yet. */
export interface Arrival {
  pass: RangePass
  page: ListedPage
}

/** The progress of reading one range, from its newest invoice to its oldest. */
export class RangePass {
  /** The part of the range that is not stored yet. `after` is the last stored invoice. */
  range: Range
  /** Creation time of the last invoice that was read, stored or not. Null before the first page. */
  reached: number | null = null
  /**
   * Seconds between the creation times of the first and the last invoice on the range's last page. Before the first page, the value of the
   * page after which the range was cut, or 0 when unknown.
   */
  pageSpan: number
  private readonly starts = new Set<string>()
  /** Invoices of the last page, except its last invoice. When the last invoice is gone, the list continues after the invoice before it. */
  private before: string[] = []

  constructor(range: Range, pageSpan: number) {
    this.range = range
    this.pageSpan = pageSpan
  }

  recordRead({ answers, unfit, next, began, reached }: ListedPage): void {
    this.reached = reached
    // After its last page, a range has no remaining pages.
    this.pageSpan = next === null ? Number.POSITIVE_INFINITY : Math.max(1, began - reached)
    if (next === null) return
    if (this.starts.has(next)) throw new SourceError('failed', 'the pages of a list lead in a circle')
    this.starts.add(next)
    this.before = [...answers, ...unfit].map(({ id }) => id).filter(id => id !== next)
  }

  /** Returns the cursor to continue with when the invoice at the cursor is gone. Null: begin the range again. */
  stepBack(): string | null {
    const previous = this.before.pop() ?? null
    if (previous === null) this.starts.clear()
    return previous
  }

  remainingPages(): number {
    return spanOf(this.range, this.reached) / this.pageSpan
  }
}

export class ListPlan {
  storedInvoices = 0
  private readonly parallel: number
  private readonly open = new Set<RangePass>()
  /** Open ranges that no reader has taken yet, the newest first. */
  private readonly waiting: RangePass[] = []
  private pages = 0

  constructor(ranges: readonly Range[], parallel: number) {
    this.parallel = parallel
    for (const range of ranges) this.add(range, 0)
  }

  takeNext(): RangePass | undefined {
    return this.waiting.shift()
  }

  isDone(): boolean {
    return this.open.size === 0
  }

  /**
   * Records a page that was read. If the page reaches beyond its range, returns it as the last page. A long range is cut once, so that
   * other readers can take the rest. The whole list is cut into periods, and a period into parts.
   */
  recordRead(pass: RangePass, listed: ListedPage): ListedPage {
    const page = endWithin(pass.range, listed)
    this.pages++
    pass.recordRead(page)
    if (page.next !== null && this.isWorthCutting(pass)) this.cut(pass, page)
    return page
  }

  private cut(pass: RangePass, page: ListedPage): void {
    const [own = pass.range, ...others] = isWhole(pass.range)
      ? cutByAge(pass.range, page.reached, this.pages * pass.pageSpan)
      : cutInParts(pass.range, page.reached)
    pass.range = own
    // An older period may hold far fewer invoices than the page just read. How many seconds one of its pages covers is therefore unknown.
    for (const other of others) this.add(other, other.isCut ? pass.pageSpan : 0)
  }

  /** Returns the ranges that remain after these pages are stored. Pages of a range are in order, so the last page counts. */
  remainingAfter(arrivals: readonly Arrival[]): Range[] {
    const reached = new Map(arrivals.map(({ pass, page }) => [pass, page.next]))
    return [...this.open]
      .filter(pass => reached.get(pass) !== null)
      .map(pass => ({ ...pass.range, after: reached.get(pass) ?? pass.range.after }))
  }

  recordStored(arrivals: readonly Arrival[]): void {
    for (const { pass, page } of arrivals) {
      this.storedInvoices += page.answers.length + page.unfit.length
      if (page.next === null) this.open.delete(pass)
      else pass.range = { ...pass.range, after: page.next }
    }
  }

  /**
   * Returns the share of the pages that are done. Creation time is no measure, because
   * years may hold fewer invoices than a day. Null until a page of each period was read.
   */
  estimate(): number | null {
    const open = [...this.open]
    if (open.some(({ range, pageSpan }) => pageSpan === 0 || isWhole(range))) return null
    return this.pages / (this.pages + open.reduce((sum, pass) => sum + pass.remainingPages(), 0))
  }

  private isWorthCutting(pass: RangePass): boolean {
    if (this.parallel === 1 || pass.range.isCut) return false
    return isWhole(pass.range) ? this.pages >= pagesUncut : pass.remainingPages() >= parts
  }

  private add(range: Range, pageSpan: number): void {
    const pass = new RangePass(range, pageSpan)
    this.open.add(pass)
    this.waiting.push(pass)
  }
}

/**
 * Makes a page the last one of its range when it reaches beyond the range. This happens when the page was requested before the range was
 * cut.
 */
function endWithin({ from }: Range, page: ListedPage): ListedPage {
  return from !== null && page.next !== null && page.reached < from ? { ...page, next: null } : page
}
