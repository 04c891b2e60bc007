/** Reads documents of the invoicing system, by lists and one by one, stores them, and links the invoices that they concern. */
import type { Document } from '../../document.ts'
import { invoicesNamedBy } from '../../linking/related.ts'
import { type DocumentPage, type DocumentQuery, SourceError } from '../../sources.ts'
import type { DocumentRecordKind } from '../../store/connector-store.ts'
import type { DocumentKey, ReplacedDocument } from '../../store/document-store.ts'
import type { WriteTransaction } from '../../store/store.ts'
import { forEachConcurrently } from '../concurrency.ts'
import { relinkInvoices } from '../link-invoices.ts'
import type { DocumentContext } from './document-context.ts'
import type { Round } from './document-round.ts'
import { readList } from './read-list.ts'
import { asideName, clearAside, setAsideDocument } from './set-aside-documents.ts'
import { isSweptAlone } from './swept-documents.ts'

/** Requests under way at once: the rate limit is the bound, not the time that an answer takes. */
export const atOnce = 16
/** With this many failures in one run, the system fails and not its documents. */
const failuresAtMost = 5
/** So it does with this many documents of which none fits. */
const misfitsToDoubt = 10

/** A key that lacks a permission is logged once, and is no failure. */
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

/** Undefined when the record does not fit: it is set aside. */
export async function fetchRecord<T>(
  context: DocumentContext,
  kind: DocumentRecordKind,
  id: number,
  fetch: () => Promise<T | null>,
): Promise<{ record: T | null; askedAt: number } | undefined> {
  context.signal.throwIfAborted()
  const askedAt = context.nextStamp()
  try {
    return { record: await fetch(), askedAt }
  } catch (error) {
    if (!(error instanceof SourceError && error.scope === 'record')) throw error
    await setAsideDocument(context, kind, id, error.message)
  }
}

/** Reads a list to its end: of documents in use, and of archived ones. */
export async function readLists(context: DocumentContext, round: Round, query: DocumentQuery): Promise<void> {
  const { signal, nextStamp } = context
  const { source, counts } = round
  const beforePage = () => {
    signal.throwIfAborted()
    return nextStamp()
  }
  const onPage = (page: DocumentPage, askedAt: number) => savePage(context, round, page, askedAt)
  for (const isArchived of [false, true])
    counts.noteListed(await readList({ ...query, isArchived }, { source, atOnce, beforePage, onPage }))
}

/** Fetches each by its id: only this answer makes a document missed. Resolves with the id to go on after; null when all were fetched. */
export async function fetchDocuments(
  context: DocumentContext,
  round: Round,
  keys: AsyncIterable<DocumentKey> | Iterable<DocumentKey>,
  atMost = Number.POSITIVE_INFINITY,
): Promise<number | null> {
  const { source, counts } = round
  const before = counts.read()
  const failures: SourceError[] = []
  const some = takeFirst(keys, atMost)
  await forEachConcurrently(some.taken, atOnce, key =>
    fetchDocument(context, round, key).catch(error => {
      const isSingle = error instanceof SourceError && error.scope === 'source'
      if (!isSingle || failures.push(error) === failuresAtMost) throw error
    }),
  )
  const [failure] = failures
  if (failure !== undefined) throw failure
  const after = counts.read()
  const misfits = after.misfits - before.misfits
  if (misfits >= misfitsToDoubt && after.documents === before.documents)
    throw new SourceError('failed', `${source.name} sent ${misfits} documents, none of which fits`)
  return some.cutAfter()
}

export async function fetchDocument(
  context: DocumentContext,
  round: Round,
  { id, type }: DocumentKey,
): Promise<void> {
  const { source, counts, missedBefore } = round
  const found = await fetchRecord(context, 'document', id, () => source.fetchDocument(id, type))
  if (found === undefined) return counts.noteMisfits(1)
  const { record: document, askedAt } = found
  counts.noteFetched(document !== null)
  const about = document ?? { id, reference: null }
  await commit(context, round, [about], 'document', async tx => {
    if (document !== null) return tx.saveDocuments([document], askedAt)
    await tx.missDocument(id, askedAt, missedBefore)
    return []
  })
  if (document !== null) await noteLeftOut(context, round, [document], true)
}

async function savePage(
  context: DocumentContext,
  round: Round,
  { documents, misfits }: DocumentPage,
  askedAt: number,
): Promise<void> {
  await commit(context, round, documents, 'list', tx => tx.saveDocuments(documents, askedAt))
  await noteLeftOut(context, round, documents, false)
  for (const { id, reason } of misfits)
    if (id === null) context.log.warn({ reason }, 'a document without an ID was left out')
    else await setAsideDocument(context, 'document', id, reason)
  round.counts.noteMisfits(misfits.length)
  context.noteProgress(documents.length)
}

/** Writes documents, and links in the same transaction the invoices that they concern. */
function commit(
  context: DocumentContext,
  round: Round,
  documents: readonly Pick<Document, 'id' | 'reference' | 'uid' | 'left_out'>[],
  cause: string,
  write: (tx: WriteTransaction) => Promise<readonly ReplacedDocument[]>,
): Promise<void> {
  const { store, enqueue, rules, guard, log } = context
  return enqueue(async () => {
    const changed = await store.transaction(async tx => {
      await countCorrected(tx, round, documents.length, await write(tx))
      const ids = documents.map(({ id }) => id)
      const whole = documents.filter(({ left_out }) => left_out === undefined).map(({ id }) => id)
      await clearAside(tx, context, ids, ['document'])
      await clearAside(tx, context, whole, ['field'])
      const wanted = { documents: ids, ...invoicesNamedBy(documents, rules) }
      return relinkInvoices(tx, wanted, cause, { rules, guard, now: Date.now() })
    })
    round.counts.noteChanged(changed.length)
    for (const { invoice, candidates } of changed)
      if (candidates.length > 0)
        log.warn(
          { invoice_id: invoice.id, documents: candidates, chosen: invoice.ix_id },
          'several documents for one invoice',
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

/** Sets aside documents of which fields were left out. */
async function noteLeftOut(
  context: DocumentContext,
  { aside }: Round,
  documents: readonly Document[],
  isRetry: boolean,
): Promise<void> {
  for (const { id, left_out } of documents)
    if (left_out !== undefined && (isRetry || !aside.has(asideName('field', id))))
      await setAsideDocument(context, 'field', id, `left out: ${left_out}`)
}

/** The first keys of many; and, once they were read, the id after which the rest begins: null when these were all. */
function takeFirst(keys: AsyncIterable<DocumentKey> | Iterable<DocumentKey>, atMost: number) {
  let cutAfter: number | null = null
  async function* take(): AsyncGenerator<DocumentKey> {
    let [taken, last]: [number, number | null] = [0, null]
    for await (const key of keys) {
      if (taken++ === atMost) {
        cutAfter = last
        return
      }
      yield key
      last = key.id
    }
  }
  return { taken: take(), cutAfter: () => cutAfter }
}
