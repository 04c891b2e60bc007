/**
 * From an invoicing system to the store. Nothing tells of a change there, so it is looked at again and again: what is
 * recent and what still changes often, everything now and then.
 */
import type { Logger } from 'pino'
import type { DocumentType } from '../document.ts'
import { type DocumentQuery, type DocumentSource, SourceError } from '../sources.ts'
import type { DocumentKey } from '../store/document-store.ts'
import { observationStamp, type WriteStore, type WriteTransaction } from '../store/store.ts'
import { type Brake, noBrake } from './brake.ts'
import { invoiceIdOf, type LinkRules } from './link.ts'
import { ageClaims, relinkInvoices } from './link-invoices.ts'
import { createStamps, type NextStamp } from './stamps.ts'
import { createStreams, succeed } from './streams.ts'

export const allStream = 'ix:all'
export const recentStream = 'ix:recent'
export const openStream = 'ix:open'

const day = 24 * 60 * 60 * 1000
/** A document carries the day on which it is made, or one shortly before. */
const recentDays = 3
/** Clocks differ, and days do around the world. */
const daysAhead = 2
/** Documents may be moved from one page to another while a list is read: then it is read again, so often at most. */
const passesAtMost = 3
const batchSize = 500

export interface DocumentSyncOptions {
  source: DocumentSource
  store: WriteStore
  rules: LinkRules
  brake?: Brake
  log: Logger
  signal: AbortSignal
  /** How many single documents and clients one run may ask for; the next goes on with the rest. */
  fetchesPerRun?: number
  /** How many documents were read so far, by all steps together. */
  onProgress?(documents: number): void
}

export interface Swept {
  /** Documents seen. */
  documents: number
  /** Documents that the system said it does not have. */
  missed: number
  /** Invoices that say something else of their document than before. */
  changed: number
}

export interface DocumentSync {
  /** Reads the documents of one more month, the newest month first. Resolves with null once all were read. */
  sweepMonth(): Promise<Swept | null>
  /** Reads the documents of the last days. */
  sweepRecent(): Promise<Swept>
  /** Looks at whatever may still change, at what was claimed and never seen, and at claims that grew old. */
  refreshOpen(): Promise<Swept>
}

export async function createDocumentSync(options: DocumentSyncOptions): Promise<DocumentSync> {
  const { source, store, rules, log, signal, fetchesPerRun = 200, onProgress, brake = noBrake } = options
  const nextStamp: NextStamp = createStamps(await store.readLastObserved())
  const streams = createStreams(store, signal)
  let read = 0

  /** Commits what was seen of documents, and what it means for their invoices. */
  async function commit(
    documents: readonly { id: number; reference: string | null }[],
    write: (tx: WriteTransaction) => Promise<void>,
    cause: string,
  ): Promise<number> {
    return store.transaction(async tx => {
      await write(tx)
      const wanted = {
        documents: documents.map(({ id }) => id),
        invoices: documents.flatMap(({ reference }) => invoiceIdOf(reference, rules) ?? []),
      }
      const changed = await relinkInvoices(tx, wanted, rules, cause, Date.now(), brake)
      for (const { invoice, candidates } of changed)
        if (candidates.length > 0)
          log.warn(
            { invoice_id: invoice.id, documents: candidates, chosen: invoice.ix_id },
            'several documents for one invoice',
          )
      return changed.length
    })
  }

  /** Reads a list to its end. Adds the ids that it holds to `seen`. */
  async function readList(query: DocumentQuery, seen: Set<number>, swept: Swept): Promise<void> {
    for (let pass = 1; ; pass++) {
      const listed = new Set<number>()
      let [pages, total, refused] = [1, 0, 0]
      for (let page = 1; page <= pages; page++) {
        signal.throwIfAborted()
        const askedAt = nextStamp()
        const answer = await source.listDocuments(query, page)
        ;({ pages, total } = answer)
        const { documents } = answer
        refused += answer.refused
        swept.changed += await commit(documents, tx => tx.saveDocuments(documents, askedAt), 'list')
        for (const { id } of documents) listed.add(id)
        read += documents.length
        onProgress?.(read)
      }
      for (const id of listed) seen.add(id)
      swept.documents += listed.size
      if (refused > 0) log.warn({ refused }, 'documents that do not fit were left out')
      if (listed.size + refused >= total || pass === passesAtMost) return
    }
  }

  /** Asks for one document by its id: the only answer by which one is missed. */
  async function look({ id, type }: DocumentKey, swept: Swept): Promise<void> {
    signal.throwIfAborted()
    const askedAt = nextStamp()
    const document = await source.fetchDocument(id, type)
    swept.documents++
    if (document === null) swept.missed++
    swept.changed += await commit(
      [document ?? { id, reference: null }],
      tx => (document === null ? tx.missDocument(id, askedAt) : tx.saveDocuments([document], askedAt)),
      'document',
    )
  }

  /**
   * One that cannot be read keeps no other back; that some could not is told at the end. Resolves with the id after which
   * to go on the next time; null when all were looked at.
   */
  async function lookAtEach(
    keys: AsyncIterable<DocumentKey>,
    swept: Swept,
    atMost: number = Number.POSITIVE_INFINITY,
  ): Promise<number | null> {
    const failures: SourceError[] = []
    let looked = 0
    let last: number | null = null
    for await (const key of keys) {
      if (looked++ === atMost) return last
      last = key.id
      await look(key, swept).catch(error => {
        if (!(error instanceof SourceError) || failures.push(error) === failuresAtMost) throw error
      })
    }
    const [failure] = failures
    if (failure !== undefined) throw failure
    return null
  }

  /** What a list should have held, and did not. */
  async function* unlisted(which: 'open' | Span, seen: ReadonlySet<number>, from = 0) {
    for await (const key of inBatches(from, after => store.readDocuments(which, after, batchSize)))
      if (!seen.has(key.id)) yield key
  }

  /** What is claimed and was never seen, or was missed the last time: but not what was missed a moment ago. */
  async function* unseen(now: number) {
    for await (const key of inBatches(0, after => store.readClaimed(after, batchSize)))
      if (key.misses === null || (key.misses === 1 && key.observed_at < now)) yield key
  }

  async function readClients(): Promise<void> {
    const before = observationStamp(Date.now() - day)
    for (const id of await store.readClients(before, Math.min(fetchesPerRun, batchSize))) {
      signal.throwIfAborted()
      const askedAt = nextStamp()
      const client = await source.fetchClient(id)
      await store.transaction(tx => tx.saveClient(id, client?.tax_id ?? null, askedAt))
    }
  }

  return {
    sweepMonth() {
      return streams.run(allStream, async stream => {
        const now = Date.now()
        const thisMonth = monthOf(now)
        const first = (await store.readFirstIssued()) ?? now
        const month = stream.cursor ?? thisMonth
        const from = `${month}-01`
        const to = month >= thisMonth ? dayOf(now + 31 * day) : lastDayOf(month)
        const [seen, swept] = [new Set<number>(), nothingSwept()]
        await readList({ from, to }, seen, swept)
        await lookAtEach(unlisted({ from, to }, seen), swept)
        const next = monthBefore(month)
        // A document may carry a day that is a little before its invoice's.
        const isDone = next < monthOf(first - 31 * day)
        await store.transaction(
          isDone ? succeed(stream, null) : tx => tx.saveStream({ ...stream, cursor: next }),
        )
        return isDone ? null : swept
      })
    },
    sweepRecent() {
      return streams.run(recentStream, async stream => {
        const now = Date.now()
        const span = { from: dayOf(now - recentDays * day), to: dayOf(now + daysAhead * day) }
        const [seen, swept] = [new Set<number>(), nothingSwept()]
        await readList(span, seen, swept)
        await lookAtEach(unlisted(span, seen), swept, fetchesPerRun)
        await store.transaction(succeed(stream, null, now))
        return swept
      })
    },
    refreshOpen() {
      return streams.run(openStream, async stream => {
        const now = Date.now()
        const begun = nextStamp()
        const [seen, swept] = [new Set<number>(), nothingSwept()]
        await readList({ statuses: ['draft', 'sent'] }, seen, swept)
        const last = await lookAtEach(
          unlisted('open', seen, Number(stream.cursor ?? 0)),
          swept,
          fetchesPerRun,
        )
        await lookAtEach(unseen(begun), swept, fetchesPerRun)
        swept.changed += await ageClaims(store, rules)
        await readClients()
        await store.transaction(succeed(stream, last === null ? null : String(last), now))
        return swept
      })
    },
  }
}

/** Days as YYYY-MM-DD, both inclusive. */
type Span = { from: string; to: string }

/** So many single failures in one run mean that the system fails, and not its documents. */
const failuresAtMost = 5

function nothingSwept(): Swept {
  return { documents: 0, missed: 0, changed: 0 }
}

/** What lies in the order of its ids, read batch by batch: what is changed meanwhile is not read twice. */
async function* inBatches<T extends { id: number; type: DocumentType | null }>(
  from: number,
  readBatch: (after: number) => Promise<T[]>,
): AsyncGenerator<T> {
  let after = from
  for (;;) {
    const batch = await readBatch(after)
    yield* batch
    if (batch.length < batchSize) return
    after = batch.at(-1)?.id ?? after
  }
}

function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10)
}

function monthOf(moment: number): string {
  return dayOf(moment).slice(0, 7)
}

function monthBefore(month: string): string {
  return monthOf(Date.parse(`${month}-01`) - day)
}

function lastDayOf(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number)
  return dayOf(Date.UTC(year, number, 0))
}
