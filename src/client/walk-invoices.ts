/** All the invoices that match, over as many pages as it takes. */
import type { Invoice, InvoiceList } from '../invoice.ts'
import { FaturaError } from './fatura-error.ts'

/** Each loop over it walks from the beginning; its fields are those of the current or last loop. */
export interface InvoiceWalk extends AsyncIterable<Invoice> {
  /** Number of matching invoices by the newest page; null before the first. */
  readonly total: number | null
  /** Number of invoices given so far. */
  readonly seen: number
  /**
   * Whether anything of the customer's invoices changed between two pages. What was given is then no picture of one
   * moment: an invoice may be missing from it, or be as it was before. None is given twice in one place.
   */
  readonly changed: boolean
  /** Time until which the first page is known to follow the source. */
  readonly syncedAt: Date | null
}

interface Page {
  data: InvoiceList
  etag: string | null
  syncedAt: Date | null
}

export function walkInvoices(readPage: (page: number) => Promise<Page>): InvoiceWalk {
  const walk = {
    total: null as number | null,
    seen: 0,
    changed: false,
    syncedAt: null as Date | null,
    async *[Symbol.asyncIterator]() {
      walk.total = null
      walk.seen = 0
      walk.changed = false
      let first: Page | undefined
      let last: Invoice | undefined
      for (let page = 1, pages = 1; page <= pages; page++) {
        const answer = await readPage(page)
        first ??= answer
        const { invoices, total, total_pages } = answer.data
        pages = total_pages
        walk.total = total
        walk.syncedAt = first.syncedAt
        walk.changed ||= answer.etag !== first.etag || total !== first.data.total
        for (const invoice of invoices) {
          // After an insertion, a page begins with what the one before ended with.
          if (last !== undefined && !isAfter(invoice, last)) continue
          last = invoice
          walk.seen++
          yield invoice
        }
      }
      if (!walk.changed && walk.seen !== walk.total)
        throw new FaturaError(
          'unexpected_answer',
          `${walk.total} invoices were announced, and ${walk.seen} came.`,
        )
    },
  }
  return walk
}

/** Whether it comes later in the order of lists: newest first, then highest id. */
function isAfter(invoice: Invoice, last: Invoice): boolean {
  return invoice.issued_at === last.issued_at ? invoice.id < last.id : invoice.issued_at < last.issued_at
}
