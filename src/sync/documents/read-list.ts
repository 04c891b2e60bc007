/** Reads a list of documents to its end, several pages at once. A list without an end is a failure. */
import {
  type DocumentPage,
  type DocumentQuery,
  type DocumentSource,
  SourceError,
} from '../../sources/source.ts'
import { forEachConcurrently } from '../concurrency.ts'

/** Maximum number of passes over a list. Documents may move between pages while the list is read, so it is read again. */
const maxPasses = 3
/** Number of pages by which a list may grow while it is read. A large list may grow by a tenth. */
const pagesMore = 20
/** Maximum number of pages of a list. They hold five million documents, more than any account has. */
const maxPages = 100_000
/** Maximum number of pages without any unknown document. Many new documents can cause two such pages, but no more. */
const maxRepeats = 2
/** When a page has at least this many documents and all fail the checks, the system is at fault. */
const misfitsToDoubt = 10

interface ListOptions {
  source: DocumentSource
  atOnce: number
  /** Called before a page is requested. Returns the stamp of the request. */
  beforePage(): number
  onPage(page: DocumentPage, askedAt: number): Promise<void>
}

/** Resolves with the number of documents in the list. */
export async function readList(query: DocumentQuery, options: ListOptions): Promise<number> {
  for (let pass = 1; ; pass++) {
    const { listed, isWhole } = await readPass(query, options)
    if (isWhole || pass === maxPasses) return listed
  }
}

async function readPass(query: DocumentQuery, { source, atOnce, beforePage, onPage }: ListOptions) {
  const pass = new Pass(source.name)
  const readPage = async (page: number) => {
    const askedAt = beforePage()
    const answer = await source.listDocuments(query, page)
    pass.add(answer, askedAt)
    await onPage(answer, askedAt)
  }
  await readPage(1)
  const { total: atFirst, pages: pagesAtFirst } = pass
  const limit = Math.min(maxPages, pagesAtFirst + Math.max(pagesMore, Math.ceil(pagesAtFirst / 10)))
  for (let next = 2; next <= pass.pages; ) {
    const last = pass.pages
    if (last > limit) throw pass.doubt(`has a list that does not end: ${last} pages by now`)
    const numbers = Array.from({ length: last - next + 1 }, (_, i) => next + i)
    await forEachConcurrently(numbers, atOnce, readPage)
    next = last + 1
  }
  return { listed: pass.ids.size, isWhole: pass.isWhole(atFirst) }
}

class Pass {
  readonly ids = new Set<number>()
  /** Size of the whole list, as the latest request reported it. */
  pages = 1
  total = 0
  private latest = 0
  private misfits = 0
  private repeats = 0
  private readonly name: string

  constructor(name: string) {
    this.name = name
  }

  /** Adds a page. Pages arrive in any order. */
  add({ documents, misfits, pages, total }: DocumentPage, askedAt: number): void {
    if (askedAt > this.latest) {
      this.latest = askedAt
      this.pages = pages
      this.total = total
    }
    this.misfits += misfits.length
    if (documents.length === 0 && misfits.length >= misfitsToDoubt)
      throw this.doubt(`sent a page of ${misfits.length} documents, and none of them could be read`)
    const isNew = documents.length === 0 || documents.some(({ id }) => !this.ids.has(id))
    if (!isNew && ++this.repeats > maxRepeats) throw this.doubt('repeats the pages of a list')
    for (const { id } of documents) this.ids.add(id)
  }

  /**
   * Whether the pass read the whole list. In a list that became shorter,
   * documents moved to earlier pages, and some may have been missed.
   */
  isWhole(totalAtFirst: number): boolean {
    return this.ids.size + this.misfits >= this.total && this.total >= totalAtFirst
  }

  doubt(what: string): SourceError {
    return new SourceError('failed', `${this.name} ${what}`)
  }
}
