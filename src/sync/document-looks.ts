/** Looks at documents, by lists and one by one, and what they change in the store. */
import type { Logger } from 'pino'
import type { Document } from '../document.ts'
import { invoiceIdOf, type LinkRules, withReference } from '../linking/link.ts'
import { type DocumentPage, type DocumentQuery, type DocumentSource, SourceError } from '../sources.ts'
import type { DocumentKey } from '../store/document-store.ts'
import type { NextStamp } from '../store/stamps.ts'
import type { WriteStore, WriteTransaction } from '../store/store.ts'
import type { Brake } from './brake.ts'
import type { SetAsideRecords } from './documents-set-aside.ts'
import { relinkInvoices } from './link-invoices.ts'
import { readList } from './read-list.ts'
import { createTurns, sideBySide } from './side-by-side.ts'

/** How many questions are under way at once: the pace is the bound, not how long an answer takes. */
const atOnce = 16
/** This many failures in one run mean that the system fails, and not its documents. */
const failuresAtMost = 5
/** So does this many documents of which none fits. */
const misfitsToDoubt = 10

/** One round: every document is looked at once at most, and missed once at most. */
export interface Round {
  /** When it began: in milliseconds, and as a stamp. */
  at: number
  stamp: number
  /** A document that was missed after this stamp was missed in this round already. */
  missedBefore: number
}

export interface Swept {
  /** Documents seen. */
  documents: number
  /** Documents that the system said it does not have. */
  missed: number
  /** Documents that do not fit what a document is. */
  misfits: number
  /** Invoices that say something else of their document than before. */
  changed: number
}

export function nothingSwept(): Swept {
  return { documents: 0, missed: 0, misfits: 0, changed: 0 }
}

export interface DocumentLooksOptions {
  store: WriteStore
  rules: LinkRules
  brake: Brake
  log: Logger
  signal: AbortSignal
  nextStamp: NextStamp
  setAside: SetAsideRecords
  onProgress: ((documents: number) => void) | undefined
}

export interface DocumentLooks {
  /** Reads a list to its end: those in use, and those that were put away. */
  readLists(source: DocumentSource, query: DocumentQuery, swept: Swept): Promise<void>
  /**
   * Asks for each by its id: the only answer by which one is missed. One that cannot be read keeps no other back. Resolves
   * with the id after which to go on the next time; null when all were looked at.
   */
  lookAtEach(
    source: DocumentSource,
    keys: AsyncIterable<DocumentKey> | Iterable<DocumentKey>,
    round: Round,
    swept: Swept,
    atMost?: number,
  ): Promise<number | null>
}

export function createDocumentLooks(options: DocumentLooksOptions): DocumentLooks {
  const { store, rules, brake, log, signal, nextStamp, setAside, onProgress } = options
  // Answers come side by side; the store takes one after the other.
  const inTurn = createTurns()
  let read = 0

  /** Commits what was seen of documents, and what it means for their invoices. */
  function commit(
    documents: readonly { id: number; reference: string | null }[],
    write: (tx: WriteTransaction) => Promise<void>,
    cause: string,
  ): Promise<number> {
    return inTurn(() =>
      store.transaction(async tx => {
        await write(tx)
        const ids = documents.map(({ id }) => id)
        await setAside.clear(tx, 'document', ids)
        const invoices = documents.flatMap(({ reference }) => invoiceIdOf(reference, rules) ?? [])
        const changed = await relinkInvoices(
          tx,
          { documents: ids, invoices },
          rules,
          cause,
          Date.now(),
          brake,
        )
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

  async function savePage(
    { documents, misfits }: DocumentPage,
    askedAt: number,
    swept: Swept,
  ): Promise<void> {
    const given = documents.map(document => withReference(document, rules))
    swept.changed += await commit(given, tx => tx.saveDocuments(given, askedAt), 'list')
    for (const { id, reason } of misfits)
      if (id === null) log.warn({ reason }, 'a document that does not even have an id was left out')
      else await inTurn(() => setAside.add('document', id, reason))
    swept.misfits += misfits.length
    read += documents.length
    onProgress?.(read)
  }

  async function look(
    source: DocumentSource,
    { id, type }: DocumentKey,
    round: Round,
    swept: Swept,
  ): Promise<void> {
    signal.throwIfAborted()
    const askedAt = nextStamp()
    let found: Document | null
    try {
      found = await source.fetchDocument(id, type)
    } catch (error) {
      if (!(error instanceof SourceError && error.scope === 'record')) throw error
      swept.misfits++
      return inTurn(() => setAside.add('document', id, error.message))
    }
    const document = found && withReference(found, rules)
    swept.documents++
    if (document === null) swept.missed++
    swept.changed += await commit(
      [document ?? { id, reference: null }],
      tx =>
        document === null
          ? tx.missDocument(id, askedAt, round.missedBefore)
          : tx.saveDocuments([document], askedAt),
      'document',
    )
  }

  return {
    async readLists(source, query, swept) {
      for (const isArchived of [false, true])
        swept.documents += await readList(
          { ...query, isArchived },
          {
            source,
            atOnce,
            beforePage() {
              signal.throwIfAborted()
              return nextStamp()
            },
            onPage: (page, askedAt) => savePage(page, askedAt, swept),
          },
        )
    },
    async lookAtEach(source, keys, round, swept, atMost = Number.POSITIVE_INFINITY) {
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
      await sideBySide(few(), atOnce, key =>
        look(source, key, round, swept).catch(error => {
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
  }
}
