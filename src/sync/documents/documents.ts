/**
 * Copies an invoicing system's documents into the store. The system reports no changes, so lists are read again and again: recent and open
 * documents often, all documents month by month (a sweep). Other folders call only this file, except for the type `Swept`.
 *
 * Each run over recent documents, over open documents or over a month is a round. A round reads lists (`read-list.ts`) and fetches
 * documents that are missing from the lists (`fetch-documents.ts`). The same transaction links the invoices that a document concerns
 * (`link-invoices.ts` beside this folder).
 *
 * Promises: a round fetches each document at most once and counts it as missed at most once. A document is gone after two misses that lie
 * apart. A stream's success is as old as the beginning of its round. The payment platform is never called here.
 * Tests: `test/sync/documents.test.ts`, `document-rounds.test.ts` and `references.test.ts` over engines, `test/sim/`.
 */
import type { Logger } from 'pino'
import { dayMs, dayOf, lastDayOf, monthOf } from '../../domain/calendar.ts'
import { missesToBelieve, openInLists } from '../../domain/document.ts'
import type { DocumentQuery, DocumentSource } from '../../sources/source.ts'
import { documentStreams } from '../../sources/stream-names.ts'
import type { DocumentKey, RelationsKey } from '../../store/document-store.ts'
import type { NextStamp } from '../../store/stamps.ts'
import { observationStamp, type Stream, type WriteStore } from '../../store/store.ts'
import { createQueue, readBatches } from '../concurrency.ts'
import { ageClaims, type Linking } from '../link-invoices.ts'
import { everyMs } from '../schedule.ts'
import { createStreams, newStream, readStreams, type Streams } from '../streams.ts'
import { type DocumentContext, type Round, RoundCounts, type Swept } from './document-round.ts'
import { fetchClients } from './fetch-clients.ts'
import { fetchDocuments, readLists } from './fetch-documents.ts'
import { fetchRelations } from './fetch-relations.ts'
import { asideName, readAside, readDueDocuments } from './set-aside-documents.ts'

/** Days before today that count as recent. A document is dated on the day of its creation, or shortly before. */
const recentDays = 3
/** Days after today that are read as well, because clocks and time zones differ. */
const daysAhead = 2
/** Minimum time between two misses of a document, a little less than the interval of rounds over open documents. */
export const roundsApartMs = everyMs.open - 60_000
/** Interval of reading the relations of each invoice's document. A new credit note does not change the document itself. */
const relationsEvery = dayMs
const maxRelations = 500

export interface DocumentSyncOptions extends Linking {
  source: DocumentSource
  /** The source for sweeps of all documents, which may have a slower pace. */
  sweepSource?: DocumentSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** Makes the stamps of requests. The connector for invoices uses the same function. */
  nextStamp: NextStamp
  /** Maximum number of single documents, and of clients, that one run fetches. The following run continues. Default: 200. */
  fetchesPerRun?: number
  /**
   * Minimum time between two misses of a document, because misses close
   * together may be one outage. `one run`: all misses of a run count as one.
   */
  missesApartMs: number | 'one run'
  onProgress?(documents: number): void
}

/** Creates the streams at once, because the store is not up to date until each stream has succeeded once. */
export async function createDocumentSync(options: DocumentSyncOptions): Promise<DocumentSync> {
  const { source, store } = options
  const known = await readStreams(store)
  const missing = Object.values(documentStreams(source)).filter(name => !known.has(name))
  if (missing.length > 0)
    await store.transaction(async tx => {
      for (const name of missing) await tx.saveStream(newStream(name))
    })
  return new DocumentSync(options)
}

/** First and last day as YYYY-MM-DD, both inclusive. */
type Span = { from: string; to: string }

export class DocumentSync {
  readonly source: DocumentSource
  private readonly sweepSource: DocumentSource
  private readonly options: DocumentSyncOptions
  private readonly context: DocumentContext
  private readonly streams: Streams
  private readonly names: ReturnType<typeof documentStreams>
  private readonly fetchesPerRun: number
  private readonly startedAt: number
  private documentsRead = 0

  constructor(options: DocumentSyncOptions) {
    const { source, sweepSource = source, store, log, signal, nextStamp, rules, guard } = options
    this.options = options
    this.source = source
    this.sweepSource = sweepSource
    this.fetchesPerRun = options.fetchesPerRun ?? 200
    this.names = documentStreams(source)
    this.streams = createStreams(store, signal)
    this.context = {
      ...{ system: source.system, store, log, signal, nextStamp, rules, guard },
      ...{ enqueue: createQueue(), forbidden: new Set() },
      reportProgress: documents => this.reportProgress(documents),
    }
    this.startedAt = nextStamp()
  }

  /** Reads the documents of one more month, the newest month first. Resolves with null when the oldest month was read. */
  sweepMonth(): Promise<Swept | null> {
    return this.streams.run(this.names.all, async stream => {
      // Documents that the first sweep finds do not count as corrections.
      const round = await this.begin(this.sweepSource, stream.succeeded_at !== null)
      const thisMonth = monthOf(round.at)
      const cursor = readRoundCursor(stream)?.next ?? thisMonth
      const month = cursor < thisMonth ? cursor : thisMonth
      const span = {
        from: `${month}-01`,
        to: month >= thisMonth ? dayOf(round.at + 31 * dayMs) : lastDayOf(month),
      }
      await this.readAndFetch(round, span, span)
      const next = monthOf(Date.parse(`${month}-01`) - dayMs)
      const isDone = next < (await this.firstMonth(round))
      await this.end(stream, round, isDone ? null : next)
      if (!isDone) return round.counts.read()
      // Reads relations, and fetches documents by their ids when a list left out fields that comparisons need.
      await this.refreshRelations(round)
      return null
    })
  }

  sweepRecent(): Promise<Swept> {
    return this.streams.run(this.names.recent, async stream => {
      const round = await this.begin(this.source, false)
      const span = { from: firstRecentDay(round.at), to: dayOf(round.at + daysAhead * dayMs) }
      const last = await this.readAndFetch(round, span, span, stream)
      await this.end(stream, round, last === null ? null : String(last))
      return round.counts.read()
    })
  }

  /**
   * Reads documents that may still change, and claimed documents that were
   * never seen. Also links invoices again whose document is being created.
   */
  refreshOpen(): Promise<Swept> {
    return this.streams.run(this.names.open, async stream => {
      const round = await this.begin(this.source, false)
      const last = await this.readAndFetch(round, { statuses: openInLists }, 'open', stream)
      const lastUnseen = await fetchDocuments(this.context, round, this.unseen(round), this.fetchesPerRun)
      round.counts.addRelinked(await ageClaims(this.context.store, this.context))
      await this.end(stream, round, last === null && lastUnseen === null ? null : String(last ?? 0))
      // Set-aside records, clients and relations are read after the success of the round is stored, so that the success does not wait for
      // them.
      await this.retrySetAside(round)
      await fetchClients(this.context, round, this.dueClients(round))
      await this.refreshRelations(round)
      return round.counts.read()
    })
  }

  private reportProgress(documents: number): void {
    this.documentsRead += documents
    this.options.onProgress?.(this.documentsRead)
  }

  private async begin(source: DocumentSource, countsCorrections: boolean): Promise<Round> {
    const { missesApartMs } = this.options
    const aside = await readAside(this.context)
    const [at, stamp] = [Date.now(), this.context.nextStamp()]
    const missedBefore =
      missesApartMs === 'one run' ? this.startedAt : stamp - observationStamp(missesApartMs)
    const recentFrom = countsCorrections ? firstRecentDay(at) : null
    return { source, at, stamp, missedBefore, aside, recentFrom, counts: new RoundCounts() }
  }

  /**
   * Ends a round. A finished round is stored as a success at the time of its beginning. Otherwise the cursor `next` is stored, with which
   * the following run continues.
   */
  private async end(stream: Stream, { at }: Round, next: string | null): Promise<void> {
    const since = Math.min(readRoundCursor(stream)?.since ?? at, at)
    await this.context.store.transaction(tx =>
      next === null
        ? tx.saveSuccess(stream.name, since)
        : tx.saveStream({ ...stream, cursor: writeRoundCursor(next, since) }),
    )
  }

  /**
   * Reads lists, and fetches documents that are missing from the lists. With a stream, fetches a
   * limited number after the stream's cursor. Resolves with the id to continue after, or null.
   */
  private async readAndFetch(round: Round, query: DocumentQuery, which: 'open' | Span, stream?: Stream) {
    await readLists(this.context, round, query)
    const from = Number((stream && readRoundCursor(stream)?.next) ?? 0)
    const unlisted = this.unlisted(which, round, from)
    return fetchDocuments(this.context, round, unlisted, stream && this.fetchesPerRun)
  }

  /** Returns the oldest month of a sweep. A document may be dated a little before its invoice. */
  private async firstMonth({ at }: Round): Promise<string> {
    const first = (await this.context.store.readFirstIssued()) ?? at
    return monthOf(first - 31 * dayMs)
  }

  private async retrySetAside(round: Round): Promise<void> {
    const { documents, clients, relations } = await readDueDocuments(this.context, round.at)
    const found = await this.context.store.findDocuments({ ids: documents, references: [] })
    const known = new Map(found.map(each => [each.id, each]))
    const keys = documents.map(id => ({ id, type: known.get(id)?.document?.type ?? null }))
    await fetchDocuments(this.context, round, keys)
    await fetchClients(this.context, round, clients)
    const again = relations.map((id): RelationsKey => ({ id, type: null, hasQr: false, isPartial: false }))
    await fetchRelations(this.context, round, again)
  }

  private async refreshRelations(round: Round): Promise<void> {
    const before = round.stamp - observationStamp(relationsEvery)
    const limit = Math.min(this.fetchesPerRun, maxRelations)
    const due = await this.context.store.readDueRelations(before, limit)
    const keys = due.filter(({ id }) => !round.aside.has(asideName('relations', id)))
    // These requests may be as slow as a sweep's. Changes that they find do not count as corrections.
    await fetchRelations(this.context, { ...round, source: this.sweepSource, recentFrom: null }, keys)
  }

  /** Yields documents that are missing from a list: documents that were not read since the round began. */
  private async *unlisted(
    which: 'open' | Span,
    { stamp, aside }: Round,
    from: number,
  ): AsyncGenerator<DocumentKey> {
    const { store } = this.context
    const read = (after: number, limit: number) => store.readDocuments(which, stamp, after, limit)
    for await (const key of inOrder(read, from)) if (!aside.has(asideName('document', key.id))) yield key
  }

  /** Yields claimed documents that were never seen, or were missed in an earlier round. */
  private async *unseen({ missedBefore, aside }: Round): AsyncGenerator<DocumentKey> {
    for await (const key of inOrder(this.context.store.readClaimed)) {
      const { misses, observed_stamp } = key
      const isDue =
        misses === null || (misses > 0 && misses < missesToBelieve && observed_stamp <= missedBefore)
      if (isDue && !aside.has(asideName('document', key.id))) yield key
    }
  }

  private async *dueClients({ aside }: Round): AsyncGenerator<number> {
    const { store, nextStamp } = this.context
    const before = nextStamp() - observationStamp(dayMs)
    let remaining = this.fetchesPerRun
    const read = async (after: number, limit: number) =>
      (await store.readClients(before, after, limit)).map(id => ({ id }))
    for await (const { id } of inOrder(read)) {
      if (aside.has(asideName('client', id))) continue
      if (remaining-- <= 0) return
      yield id
    }
  }
}

function firstRecentDay(at: number): string {
  return dayOf(at - recentDays * dayMs)
}

/** Returns the position and the beginning of a round that was cut off. Null when the cursor holds neither. */
function readRoundCursor({ cursor }: Stream): { next: string; since: number } | null {
  const [, next = '', moment = ''] = /^(\S+) since (\S+)$/.exec(cursor ?? '') ?? []
  const since = Date.parse(moment)
  return Number.isNaN(since) ? null : { next, since }
}

function writeRoundCursor(next: string, since: number): string {
  return `${next} since ${new Date(since).toISOString()}`
}

async function* inOrder<T extends { id: number }>(
  read: (after: number, limit: number) => Promise<T[]>,
  from = 0,
): AsyncGenerator<T> {
  for await (const batch of readBatches<T>((after, limit) => read(after?.id ?? from, limit))) yield* batch
}
