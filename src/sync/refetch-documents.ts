/** Reads documents and clients of the invoicing system, by lists and one by one, and stores them. */
import type { Logger } from 'pino'
import type { Document, Relations } from '../document.ts'
import { isNobody } from '../linking/link.ts'
import { invoicesNamedBy } from '../linking/related.ts'
import { type DocumentPage, type DocumentQuery, type DocumentSource, SourceError } from '../sources.ts'
import type { DocumentRecordKind } from '../store/connector-store.ts'
import type { DocumentKey, RelationsKey, ReplacedDocument } from '../store/document-store.ts'
import type { NextStamp } from '../store/stamps.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'
import { createQueue, forEachConcurrently, readBatches } from './concurrency.ts'
import { type LinkOptions, relinkInvoices } from './link-invoices.ts'
import { readList } from './read-list.ts'
import type { SetAsideRecords } from './set-aside-documents.ts'
import { isSweptAlone } from './swept-documents.ts'

/** Requests under way at once: the rate limit is the bound, not the time that an answer takes. */
const atOnce = 16
const relationsSavedAtOnce = 50
/** With this many failures in one run, the system fails and not its documents. */
const failuresAtMost = 5
/** A client's moment until its documents are linked: after a crash, it is due, and they are linked again. */
const beingLinked = 1
/** So it does with this many documents of which none fits. */
const misfitsToDoubt = 10

/** One round: every document is fetched once at most, and missed once at most. */
export interface Round {
  source: DocumentSource
  swept: Swept
  /** The beginning, in milliseconds and as a stamp. */
  at: number
  stamp: number
  /** A document that was missed after this stamp was missed in this round already. */
  missedBefore: number
  /** Of a sweep whose corrections count, the first day that lists of recent documents read; null when none counts. */
  recentFrom: string | null
}

export type Swept = ReturnType<typeof nothingSwept>

/** Documents read, documents that the system does not have, documents that do not fit, and invoices whose link changed. */
export function nothingSwept() {
  return { documents: 0, missed: 0, misfits: 0, changed: 0 }
}

interface RefetchDocumentsOptions extends LinkOptions {
  store: WriteStore
  log: Logger
  signal: AbortSignal
  nextStamp: NextStamp
  setAside: SetAsideRecords
  onProgress: ((documents: number) => void) | undefined
}

export function createDocumentRefetch(options: RefetchDocumentsOptions) {
  const { store, log, signal, nextStamp, setAside, onProgress, rules } = options
  // Answers arrive in parallel; the store takes one after the other.
  const enqueue = createQueue()
  let read = 0
  const forbidden = new Set<string>()

  /** A key that lacks a permission is logged once, and is no failure. */
  async function unlessForbidden(message: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof SourceError && error.scope === 'access')) throw error
      if (!forbidden.has(message)) log.warn(message)
      forbidden.add(message)
    }
  }

  function commit(
    { source, recentFrom }: Round,
    documents: readonly Pick<Document, 'id' | 'reference' | 'uid' | 'left_out'>[],
    write: (tx: WriteTransaction) => Promise<readonly ReplacedDocument[]>,
    cause: string,
  ): Promise<number> {
    return enqueue(() =>
      store.transaction(async tx => {
        const replaced = await write(tx)
        if (recentFrom !== null) {
          const corrected = replaced.filter(each => isSweptAlone(each, recentFrom)).length
          await tx.addRecheck({ system: source.system, checked: documents.length, corrected }, Date.now())
        }
        const ids = documents.map(({ id }) => id)
        const whole = documents.filter(({ left_out }) => left_out === undefined).map(({ id }) => id)
        await setAside.clear(tx, 'document', ids)
        await setAside.clear(tx, 'field', whole)
        const wanted = { documents: ids, ...invoicesNamedBy(documents, rules) }
        const changed = await relinkInvoices(tx, wanted, cause, options)
        for (const { invoice, candidates } of changed)
          if (candidates.length > 0)
            log.warn(
              { invoice_id: invoice.id, documents: candidates, chosen: invoice.ix_id },
              'several documents for one invoice',
            )
        return changed.length
      }),
    )
  }

  /** Counts documents of which fields were left out. */
  async function noteLeftOut(documents: readonly Document[], isRetry: boolean): Promise<void> {
    for (const { id, left_out } of documents)
      if (left_out !== undefined && (isRetry || !setAside.has('field', id)))
        await enqueue(() => setAside.add('field', id, `left out: ${left_out}`))
  }

  async function savePage(round: Round, { documents, misfits }: DocumentPage, askedAt: number) {
    const { swept } = round
    const changed = await commit(round, documents, tx => tx.saveDocuments(documents, askedAt), 'list')
    swept.changed += changed
    await noteLeftOut(documents, false)
    for (const { id, reason } of misfits)
      if (id === null) log.warn({ reason }, 'a document without an ID was left out')
      else await enqueue(() => setAside.add('document', id, reason))
    swept.misfits += misfits.length
    read += documents.length
    onProgress?.(read)
  }

  /** Undefined when the record does not fit: it is set aside. */
  async function fetchOne<T>(kind: DocumentRecordKind, id: number, fetch: () => Promise<T | null>) {
    signal.throwIfAborted()
    const askedAt = nextStamp()
    try {
      return { record: await fetch(), askedAt }
    } catch (error) {
      if (!(error instanceof SourceError && error.scope === 'record')) throw error
      await enqueue(() => setAside.add(kind, id, error.message))
    }
  }

  async function fetchDocument(round: Round, { id, type }: DocumentKey) {
    const { source, swept, missedBefore } = round
    const found = await fetchOne('document', id, () => source.fetchDocument(id, type))
    if (found === undefined) {
      swept.misfits++
      return
    }
    const document = found.record
    swept.documents++
    if (document === null) swept.missed++
    const changed = await commit(
      round,
      [document ?? { id, reference: null }],
      async tx => {
        if (document !== null) return tx.saveDocuments([document], found.askedAt)
        await tx.missDocument(id, found.askedAt, missedBefore)
        return []
      },
      'document',
    )
    swept.changed += changed
    if (document !== null) await noteLeftOut([document], true)
  }

  async function saveRelations(found: readonly { id: number; record: Relations | null; askedAt: number }[]) {
    if (found.length === 0) return 0
    const ids = found.map(({ id }) => id)
    return enqueue(() =>
      store.transaction(async tx => {
        for (const { id, record, askedAt } of found) await tx.saveRelations(id, record, askedAt)
        await setAside.clear(tx, 'relations', ids)
        return (await relinkInvoices(tx, { documents: ids }, 'relations', options)).length
      }),
    )
  }

  /** Saves a client and links its documents by it. */
  async function saveClient(id: number, taxId: string | null, askedAt: number): Promise<number> {
    let changed = 0
    if (await enqueue(() => store.transaction(tx => noteTaxId(tx, id, taxId)))) {
      const read = (after: Document | null, limit: number) => store.readOfClient(id, after?.id ?? 0, limit)
      for await (const some of readBatches(read))
        changed += await enqueue(() => store.transaction(tx => relinkDocuments(tx, some)))
    }
    await enqueue(() =>
      store.transaction(async tx => {
        await tx.saveClient(id, taxId, askedAt)
        await setAside.clear(tx, 'client', [id])
      }),
    )
    return changed
  }

  /** Returns whether the client's documents are to be linked again. */
  async function noteTaxId(tx: WriteTransaction, id: number, taxId: string | null): Promise<boolean> {
    const before = await tx.findClient(id)
    if (!before?.observed_at) await tx.keepClientTaxId(id, taxId)
    const last = before?.tax_id ?? null
    const isSame = last === taxId || (isNobody(last) && isNobody(taxId))
    if (isSame && before?.observed_at !== beingLinked) return false
    await tx.saveClient(id, taxId, beingLinked)
    return true
  }

  async function relinkDocuments(tx: WriteTransaction, documents: readonly Document[]): Promise<number> {
    const ids = documents.map(({ id }) => id)
    // Whoever ties one of them at this moment, by the former tax ID, ends first.
    await tx.findDocuments({ ids, references: [] })
    const wanted = { documents: ids, ...invoicesNamedBy(documents, rules) }
    return (await relinkInvoices(tx, wanted, 'client', options)).length
  }

  return {
    /** Reads a list to its end: of documents in use, and of archived ones. */
    async readLists(round: Round, query: DocumentQuery): Promise<void> {
      const { source, swept } = round
      const beforePage = () => {
        signal.throwIfAborted()
        return nextStamp()
      }
      const onPage = (page: DocumentPage, askedAt: number) => savePage(round, page, askedAt)
      for (const isArchived of [false, true])
        swept.documents += await readList({ ...query, isArchived }, { source, atOnce, beforePage, onPage })
    },
    /** Fetches each by its id: only this answer makes a document missed. Resolves with the id to go on after; null when all were fetched. */
    async fetchEach(
      round: Round,
      keys: AsyncIterable<DocumentKey> | Iterable<DocumentKey>,
      atMost = Number.POSITIVE_INFINITY,
    ): Promise<number | null> {
      const { source, swept } = round
      const failures: SourceError[] = []
      let last: number | null = null
      let isCut = false
      async function* few(): AsyncGenerator<DocumentKey> {
        let taken = 0
        for await (const key of keys) {
          if (taken++ === atMost) {
            isCut = true
            return
          }
          yield key
          last = key.id
        }
      }
      const before = { ...swept }
      await forEachConcurrently(few(), atOnce, key =>
        fetchDocument(round, key).catch(error => {
          const isSingle = error instanceof SourceError && error.scope === 'source'
          if (!isSingle || failures.push(error) === failuresAtMost) throw error
        }),
      )
      const [failure] = failures
      if (failure !== undefined) throw failure
      const misfits = swept.misfits - before.misfits
      if (misfits >= misfitsToDoubt && swept.documents === before.documents)
        throw new SourceError('failed', `${source.name} sent ${misfits} documents, none of which fits`)
      return isCut ? last : null
    },
    /** Fetches related documents and QR codes; and a document itself of which lists left fields out. */
    fetchRelations: (round: Round, keys: readonly RelationsKey[]) =>
      unlessForbidden(`the ${round.source.name} key may not read related documents or QR codes`, async () => {
        for (let at = 0; at < keys.length; at += relationsSavedAtOnce) {
          const found: { id: number; record: Relations | null; askedAt: number }[] = []
          try {
            await forEachConcurrently(keys.slice(at, at + relationsSavedAtOnce), atOnce, async key => {
              if (key.isPartial) await fetchDocument(round, key)
              const { id, hasQr } = key
              const one = await fetchOne('relations', id, () => round.source.fetchRelations(id, hasQr))
              if (one !== undefined) found.push({ id, ...one })
            })
          } finally {
            const changed = await saveRelations(found)
            round.swept.changed += changed
          }
        }
      }),
    /** Fetches clients, for the comparison of tax IDs, and links what they decide. */
    fetchClients: ({ source, swept }: Round, ids: AsyncIterable<number> | Iterable<number>) =>
      unlessForbidden(
        `the ${source.name} key may not read clients: tax ids are not compared, and no number ties a document`,
        () =>
          forEachConcurrently(ids, atOnce, async id => {
            const found = await fetchOne('client', id, () => source.fetchClient(id))
            if (found === undefined) return
            const changed = await saveClient(id, found.record?.tax_id ?? null, found.askedAt)
            swept.changed += changed
          }),
      ),
  }
}
