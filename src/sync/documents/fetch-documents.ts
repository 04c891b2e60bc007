/** Reads documents of the invoicing system, by lists and one by one, stores them, and links the invoices that they concern. */
import type { Document } from '../../domain/document.ts'
import { invoicesNamedBy } from '../../domain/link/related.ts'
import { type DocumentPage, type DocumentQuery, SourceError } from '../../sources/source.ts'
import type { DocumentKey, ReplacedDocument } from '../../store/document-store.ts'
import type { WriteTransaction } from '../../store/store.ts'
import { forEachConcurrently } from '../concurrency.ts'
import { relinkInvoices } from '../link-invoices.ts'
import type { AskedRecord, Wanted } from '../set-aside.ts'
import type { DocumentContext, Round } from './document-round.ts'
import { readList } from './read-list.ts'
import { asideName, reportAside, saveAside } from './set-aside-documents.ts'
import { isSweptAlone } from './swept-documents.ts'

/** Number of requests that run at once. It is so high that only the rate limit bounds the speed, and not the response time. */
export const atOnce = 16
/** Number of failures in one run after which the system is at fault, and not its documents. */
const maxFailures = 5
/** When at least this many documents come and all fail the checks, the system is at fault. */
const misfitsToDoubt = 10

/** Runs `work`. A permission that the key lacks is logged once, and is no failure. */
export async function unlessForbidden(
  { log, forbidden }: DocumentContext,
  message: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof SourceError && error.scope === 'access')) throw error
    if (!forbidden.has(message)) log.warn(message)
    forbidden.add(message)
  }
}

/** Fetches one record. When the record fails the checks, sets it aside and resolves with undefined. */
export async function fetchRecord<T>(
  context: DocumentContext,
  kind: 'document' | 'client' | 'relations',
  id: number,
  fetch: () => Promise<T | null>,
): Promise<{ record: T | null; askedAt: number } | undefined> {
  context.signal.throwIfAborted()
  const askedAt = context.nextStamp()
  try {
    return { record: await fetch(), askedAt }
  } catch (error) {
    if (!(error instanceof SourceError && error.scope === 'record')) throw error
    const { system, store, log, enqueue } = context
    const said = new Map([[id, { askedAt, wanted: { kind, reason: error.message } }]])
    const fresh = await enqueue(() => store.transaction(tx => saveAside(tx, system, kind, said)))
    reportAside(log, fresh)
  }
}

/** Reads two lists to their end: active documents, and archived documents. */
export async function readLists(context: DocumentContext, round: Round, query: DocumentQuery): Promise<void> {
  const { signal, nextStamp } = context
  const { source, counts } = round
  const beforePage = () => {
    signal.throwIfAborted()
    return nextStamp()
  }
  const onPage = (page: DocumentPage, askedAt: number) => savePage(context, round, page, askedAt)
  for (const isArchived of [false, true])
    counts.addListed(await readList({ ...query, isArchived }, { source, atOnce, beforePage, onPage }))
}

/**
 * Fetches each document by its id, because only the answer about a single document counts as a miss. Resolves with the id to continue
 * after, or null when all were fetched.
 */
export async function fetchDocuments(
  context: DocumentContext,
  round: Round,
  keys: AsyncIterable<DocumentKey> | Iterable<DocumentKey>,
  atMost = Number.POSITIVE_INFINITY,
): Promise<number | null> {
  const { source, counts } = round
  const before = counts.read()
  const failures: SourceError[] = []
  const some = await takeFirst(keys, atMost + 1)
  await forEachConcurrently(some.slice(0, atMost), atOnce, key =>
    fetchDocument(context, round, key).catch(error => {
      const isSingle = error instanceof SourceError && error.scope === 'source'
      if (!isSingle || failures.push(error) === maxFailures) throw error
    }),
  )
  const [failure] = failures
  if (failure !== undefined) throw failure
  const after = counts.read()
  const misfits = after.misfits - before.misfits
  if (misfits >= misfitsToDoubt && after.documents === before.documents)
    throw new SourceError(
      'failed',
      `${source.name} sent ${misfits} documents, and none of them could be read`,
    )
  return some.length > atMost ? (some[atMost - 1]?.id ?? null) : null
}

export async function fetchDocument(
  context: DocumentContext,
  round: Round,
  { id, type }: DocumentKey,
): Promise<void> {
  const { source, counts, missedBefore } = round
  const found = await fetchRecord(context, 'document', id, () => source.fetchDocument(id, type))
  if (found === undefined) return counts.addMisfits(1)
  const { record: document, askedAt } = found
  counts.addFetched(document !== null)
  await commit(context, round, {
    documents: [document ?? { id, reference: null }],
    cause: 'document',
    said: new Map([[id, { askedAt, wanted: document && leftOut(document) }]]),
    async write(tx) {
      if (document !== null) return tx.saveDocuments([document], askedAt)
      await tx.missDocument(id, askedAt, missedBefore)
      return []
    },
  })
}

async function savePage(
  context: DocumentContext,
  round: Round,
  { documents, misfits }: DocumentPage,
  askedAt: number,
): Promise<void> {
  // A document with a field that was set aside before the round is tried again only when it is fetched by its id.
  const reported = documents.filter(
    ({ id, left_out }) => left_out === undefined || !round.aside.has(asideName('field', id)),
  )
  const said = new Map(reported.map(document => [document.id, { askedAt, wanted: leftOut(document) }]))
  for (const { id, reason } of misfits)
    if (id === null) context.log.warn({ reason }, 'a document without an ID was left out')
    else said.set(id, { askedAt, wanted: { kind: 'document', reason } })
  const write = (tx: WriteTransaction) => tx.saveDocuments(documents, askedAt)
  await commit(context, round, { documents, cause: 'list', said, write })
  round.counts.addMisfits(misfits.length)
  context.reportProgress(documents.length)
}

/** Returns why a stored document is set aside as well. Null when no field was left out. */
function leftOut({ left_out }: Document): Wanted | null {
  return left_out === undefined ? null : { kind: 'field', reason: `left out: ${left_out}` }
}

interface AnsweredDocuments {
  documents: readonly Pick<Document, 'id' | 'reference' | 'uid'>[]
  cause: string
  /**
   * Results of the checks, by record id. A record that failed the checks is set aside. The entry of a record that passed them is removed.
   */
  said: ReadonlyMap<number, AskedRecord>
  write(tx: WriteTransaction): Promise<readonly ReplacedDocument[]>
}

/** Writes documents, and links the invoices that they concern in the same transaction. */
function commit(
  context: DocumentContext,
  round: Round,
  { documents, cause, said, write }: AnsweredDocuments,
): Promise<void> {
  const { system, store, enqueue, rules, guard, log } = context
  return enqueue(async () => {
    const { changed, fresh } = await store.transaction(async tx => {
      await countCorrected(tx, round, documents.length, await write(tx))
      const fresh = await saveAside(tx, system, 'document', said)
      const ids = documents.map(({ id }) => id)
      const wanted = { documents: ids, ...invoicesNamedBy(documents, rules) }
      return { changed: await relinkInvoices(tx, wanted, cause, { rules, guard, now: Date.now() }), fresh }
    })
    reportAside(log, fresh)
    round.counts.addRelinked(changed.length)
    for (const { invoice, candidates } of changed)
      if (candidates.length > 0)
        log.warn(
          { invoice_id: invoice.id, documents: candidates, chosen: invoice.ix_id },
          'several documents name one invoice',
        )
  })
}

async function countCorrected(
  tx: WriteTransaction,
  { source, recentFrom }: Round,
  checked: number,
  replaced: readonly ReplacedDocument[],
): Promise<void> {
  if (recentFrom === null) return
  const corrected = replaced.filter(each => isSweptAlone(each, recentFrom)).length
  await tx.addRecheck({ system: source.system, checked, corrected }, Date.now())
}

async function takeFirst<T>(items: AsyncIterable<T> | Iterable<T>, count: number): Promise<T[]> {
  const taken: T[] = []
  for await (const item of items) {
    if (taken.length === count) break
    taken.push(item)
  }
  return taken
}
