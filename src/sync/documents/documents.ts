/**
 * From an invoicing system to the store. It reports no changes, so it is polled: recent and open documents often, all others in turn.
 * This is the entry of the folder: others call it alone, but for what a round counts (`Swept`).
 *
 * Each of the three questions is a round: it reads lists (`read-list.ts`), fetches what these should have held and did not
 * (`fetch-documents.ts`), and links in the same transaction the invoices that the documents concern (`link-invoices.ts` beside the folder).
 *
 * It promises: in a round every document is fetched once at most and missed once at most, a document is gone after two misses that lie
 * apart, and a stream's success is as old as the beginning of its round. It knows no payment platform, and no invoice but its links.
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

/** A document is dated on the day of its creation, or shortly before. */
const recentDays = 3
/** For differing clocks and time zones. */
const daysAhead = 2
/** A little less than lies between two rounds over open documents. */
export const roundsApartMs = everyMs.open - 60_000
/** Of each document of an invoice: credit notes come without any change of the document itself. */
const relationsEvery = dayMs
const maxRelations = 500

export interface DocumentSyncOptions extends Linking {
  source: DocumentSource
  /** For sweeps of everything: it may have a slower pace. */
  sweepSource?: DocumentSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** One for all that is asked for this store. */
  nextStamp: NextStamp
  /** Single documents and clients fetched in one run; the next goes on with the rest. */
  fetchesPerRun?: number
  /** The least time between two misses of a document: less is one outage, seen twice. `one run`: all of a run's are one. */
  missesApartMs: number | 'one run'
  onProgress?(documents: number): void
}

/** The streams are there from the start: until each has succeeded once, the store is not up to date. */
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

/** Days as YYYY-MM-DD, both inclusive. */
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
      noteProgress: documents => this.noteProgress(documents),
    }
    this.startedAt = nextStamp()
  }

  /** Reads the documents of one more month, the newest month first. Resolves with null once all were read. */
  sweepMonth(): Promise<Swept | null> {
    return this.streams.run(this.names.all, async stream => {
      // What the first sweep brings was never missed.
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
      // Lists may have left out what comparisons need.
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

  /** Reads documents that may still change and claimed ones that were never seen, and ages claims. */
  refreshOpen(): Promise<Swept> {
    return this.streams.run(this.names.open, async stream => {
      const round = await this.begin(this.source, false)
      const last = await this.readAndFetch(round, { statuses: openInLists }, 'open', stream)
      const left = await fetchDocuments(this.context, round, this.unseen(round), this.fetchesPerRun)
      round.counts.noteChanged(await ageClaims(this.context.store, this.context))
      await this.end(stream, round, last === null && left === null ? null : String(last ?? 0))
      // Not part of the round: the API does not show these.
      await this.retrySetAside(round)
      await fetchClients(this.context, round, this.dueClients(round))
      await this.refreshRelations(round)
      return round.counts.read()
    })
  }

  private noteProgress(documents: number): void {
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

  /** Records the end of a round, as of its beginning; or the cursor with which the next run goes on. */
  private async end(stream: Stream, { at }: Round, next: string | null): Promise<void> {
    const since = Math.min(readRoundCursor(stream)?.since ?? at, at)
    await this.context.store.transaction(tx =>
      next === null
        ? tx.saveSuccess(stream.name, since)
        : tx.saveStream({ ...stream, cursor: writeRoundCursor(next, since) }),
    )
  }

  /** Reads lists, and fetches what they should have held; of a stream, some after its cursor. Resolves with the id to go on after, or null. */
  private async readAndFetch(round: Round, query: DocumentQuery, which: 'open' | Span, stream?: Stream) {
    await readLists(this.context, round, query)
    const from = Number((stream && readRoundCursor(stream)?.next) ?? 0)
    const unlisted = this.unlisted(which, round, from)
    return fetchDocuments(this.context, round, unlisted, stream && this.fetchesPerRun)
  }

  /** A document may be dated a little before its invoice. */
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
    // At the sweep's pace, and without a count of what was corrected.
    await fetchRelations(this.context, { ...round, source: this.sweepSource, recentFrom: null }, keys)
  }

  /** Documents that a list should have held, and did not: those not read since the round began. */
  private async *unlisted(
    which: 'open' | Span,
    { stamp, aside }: Round,
    from: number,
  ): AsyncGenerator<DocumentKey> {
    const { store } = this.context
    const read = (after: number, limit: number) => store.readDocuments(which, stamp, after, limit)
    for await (const key of inOrder(read, from)) if (!aside.has(asideName('document', key.id))) yield key
  }

  /** Documents that are claimed and were never seen, or were missed in an earlier round. */
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
    let left = this.fetchesPerRun
    const read = async (after: number, limit: number) =>
      (await store.readClients(before, after, limit)).map(id => ({ id }))
    for await (const { id } of inOrder(read)) {
      if (aside.has(asideName('client', id))) continue
      if (left-- <= 0) return
      yield id
    }
  }
}

function firstRecentDay(at: number): string {
  return dayOf(at - recentDays * dayMs)
}

/** The position and the beginning of a round that was cut off; null when the cursor holds neither. */
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
