/** A list of documents, read to its end: page beside page, and never for ever. */
import { type DocumentPage, type DocumentQuery, type DocumentSource, SourceError } from '../sources.ts'
import { sideBySide } from './side-by-side.ts'

/** Documents may be moved from one page to another while a list is read: then it is read again, so often at most. */
const passesAtMost = 3
/** How many pages a list may grow by while it is read; a large one by a tenth. */
const pagesMore = 20
/** Five million documents in one list: more than there are. */
const pagesAtMost = 100_000
/** Pages of which everything was there before: two may come about by many new documents, no more. */
const repeatsAtMost = 2
/** A page with at least this many documents, none of which fits, tells of the system and not of its documents. */
const misfitsToDoubt = 10

export interface ListOptions {
  source: DocumentSource
  /** How many pages are asked for side by side. */
  atOnce: number
  /** Before a page is asked for; what it returns comes with the page. */
  beforePage(): number
  onPage(page: DocumentPage, askedAt: number): Promise<void>
}

/** Resolves with how many documents the list held. */
export async function readList(query: DocumentQuery, options: ListOptions): Promise<number> {
  for (let pass = 1; ; pass++) {
    const { listed, isWhole } = await readPass(query, options)
    if (isWhole || pass === passesAtMost) return listed
  }
}

async function readPass(
  query: DocumentQuery,
  { source, atOnce, beforePage, onPage }: ListOptions,
): Promise<{ listed: number; isWhole: boolean }> {
  const ids = new Set<number>()
  const doubt = (what: string) => new SourceError('failed', `${source.name} ${what}`)
  let [pages, total, latest, misfits, repeats] = [1, 0, 0, 0, 0]

  async function readPage(page: number): Promise<void> {
    const askedAt = beforePage()
    const answer = await source.listDocuments(query, page)
    const { documents } = answer
    // Answers come in any order: the one that was asked for last knows best.
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
    await sideBySide(range(next, last), atOnce, readPage)
    next = last + 1
  }
  // A list that grew shorter was moved up while it was read, and something may have been passed over.
  return { listed: ids.size, isWhole: ids.size + misfits >= total && total >= atFirst }
}

function* range(first: number, last: number): Generator<number> {
  for (let number = first; number <= last; number++) yield number
}
