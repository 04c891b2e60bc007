/** Reads a list of documents to its end, several pages at once; a list without an end is a failure. */
import {
  type DocumentPage,
  type DocumentQuery,
  type DocumentSource,
  SourceError,
} from '../../sources/source.ts'
import { forEachConcurrently } from '../concurrency.ts'

/** Documents may move from one page to another while a list is read: then it is read again, at most this often. */
const passesAtMost = 3
/** Pages that a list may grow by while it is read; a large one by a tenth. */
const pagesMore = 20
/** Five million documents in one list: more than there are. */
const pagesAtMost = 100_000
/** Pages without any new document: many new documents may cause two, no more. */
const repeatsAtMost = 2
/** When a page has at least this many documents and none fits, the system fails and not its documents. */
const misfitsToDoubt = 10

interface ListOptions {
  source: DocumentSource
  atOnce: number
  /** Called before a page is requested; returns its stamp. */
  beforePage(): number
  onPage(page: DocumentPage, askedAt: number): Promise<void>
}

/** Resolves with the number of documents in the list. */
export async function readList(query: DocumentQuery, options: ListOptions): Promise<number> {
  for (let pass = 1; ; pass++) {
    const { listed, isWhole } = await readPass(query, options)
    if (isWhole || pass === passesAtMost) return listed
  }
}

async function readPass(query: DocumentQuery, { source, atOnce, beforePage, onPage }: ListOptions) {
  const ids = new Set<number>()
  const doubt = (what: string) => new SourceError('failed', `${source.name} ${what}`)
  let [pages, total, latest, misfits, repeats] = [1, 0, 0, 0, 0]

  async function readPage(page: number): Promise<void> {
    const askedAt = beforePage()
    const answer = await source.listDocuments(query, page)
    const { documents } = answer
    // Answers come in any order: the one that was requested last counts.
    if (askedAt > latest) [latest, pages, total] = [askedAt, answer.pages, answer.total]
    misfits += answer.misfits.length
    if (documents.length === 0 && answer.misfits.length >= misfitsToDoubt)
      throw doubt(`sent a page of ${answer.misfits.length} documents, none of which fits`)
    const isNew = documents.length === 0 || documents.some(({ id }) => !ids.has(id))
    if (!isNew && ++repeats > repeatsAtMost) throw doubt('repeats the pages of a list')
    for (const { id } of documents) ids.add(id)
    await onPage(answer, askedAt)
  }

  await readPage(1)
  const atFirst = total
  const limit = Math.min(pagesAtMost, pages + Math.max(pagesMore, Math.ceil(pages / 10)))
  for (let next = 2; next <= pages; ) {
    if (pages > limit) throw doubt(`has a list that does not end: ${pages} pages by now`)
    const last = pages
    const numbers = Array.from({ length: last - next + 1 }, (_, i) => next + i)
    await forEachConcurrently(numbers, atOnce, readPage)
    next = last + 1
  }
  // In a list that grew shorter, documents moved up while it was read, and some may have been missed.
  return { listed: ids.size, isWhole: ids.size + misfits >= total && total >= atFirst }
}
