/** From an invoicing system to the store. It reports no changes, so it is polled: recent and open documents often, all others in turn. */

import type { Logger } from 'pino'
import { dayMs, dayOf, lastDayOf, monthOf } from '../calendar.ts'
import { missesToBelieve, openInLists } from '../document.ts'
import type { DocumentQuery, DocumentSource, SourceIdentity } from '../sources.ts'
import type { DocumentKey, RelationsKey } from '../store/document-store.ts'
import { createStamps } from '../store/stamps.ts'
import { observationStamp, type Stream, type WriteStore } from '../store/store.ts'
import { documentStreams } from '../stream-names.ts'
import { readBatches } from './concurrency.ts'
import { noGuard } from './deletion-guard.ts'
import { ageClaims, type LinkOptions } from './link-invoices.ts'
import { createDocumentRefetch, nothingSwept, type Round, type Swept } from './refetch-documents.ts'
import { everyMs } from './schedule.ts'
import { createSetAside } from './set-aside-documents.ts'
import { createStreams, newStream, readStreams } from './streams.ts'

/** A document is dated on the day of its creation, or shortly before. */
const recentDays = 3
/** For differing clocks and time zones. */
const daysAhead = 2
/** A little less than lies between two rounds over open documents. */
const usuallyApartMs = everyMs.open - 60_000
/** Of each document of an invoice: credit notes come without any change of the document itself. */
const relationsEvery = dayMs

export interface DocumentSyncOptions extends Omit<LinkOptions, 'guard'>, Partial<Pick<LinkOptions, 'guard'>> {
  source: DocumentSource
  /** For sweeps of everything: it may have a slower pace. */
  sweepSource?: DocumentSource
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** Single documents and clients fetched in one run; the next goes on with the rest. */
  fetchesPerRun?: number
  /** Whether all steps are one round, as in a single run: a document is then missed once at most. */
  isOneRound?: boolean
  /** Otherwise, the least time between two misses of a document: less is one outage, seen twice. */
  missesApartMs?: number
  onProgress?(documents: number): void
}

export type DocumentSync = Awaited<ReturnType<typeof createDocumentSync>>

export async function createDocumentSync(options: DocumentSyncOptions) {
  const { source, sweepSource = source, store, rules, log, signal, fetchesPerRun = 200 } = options
  const { isOneRound = false, missesApartMs = usuallyApartMs, guard = noGuard, onProgress } = options
  const nextStamp = createStamps(await store.readLastObserved())
  const startedAt = nextStamp()
  const streams = createStreams(store, signal)
  const names = documentStreams(source)
  const setAside = await createSetAside(source.system, store, log)
  const linking = { rules, guard }
  const refetch = createDocumentRefetch({ ...linking, store, log, signal, nextStamp, setAside, onProgress })
  // The streams are there from the start: until each has succeeded once, the store is not up to date.
  const known = await readStreams(store)
  const missing = Object.values(names).filter(name => !known.has(name))
  if (missing.length > 0)
    await store.transaction(async tx => {
      for (const name of missing) await tx.saveStream(newStream(name))
    })

  function begin(source: DocumentSource): Round {
    const [at, stamp] = [Date.now(), nextStamp()]
    const missedBefore = isOneRound ? startedAt : stamp - observationStamp(missesApartMs)
    return { source, swept: nothingSwept(), at, stamp, missedBefore, recentFrom: null }
  }

  /** Reads lists, and fetches what they should have held; of a stream, some after its cursor. Resolves with the id to go on after, or null. */
  async function readAndFetch(round: Round, query: DocumentQuery, which: 'open' | Span, stream?: Stream) {
    await refetch.readLists(round, query)
    const from = Number((stream && readCursor(stream)?.next) ?? 0)
    return refetch.fetchEach(round, unlisted(which, round.stamp, from), stream && fetchesPerRun)
  }

  /** Documents that a list should have held, and did not: those not read since the round began. */
  async function* unlisted(which: 'open' | Span, stamp: number, from: number): AsyncGenerator<DocumentKey> {
    const read = (after: number, limit: number) => store.readDocuments(which, stamp, after, limit)
    for await (const key of inOrder(read, from)) if (!setAside.has('document', key.id)) yield key
  }

  /** Documents that are claimed and were never seen, or were missed in an earlier round. */
  async function* unseen({ missedBefore }: Round): AsyncGenerator<DocumentKey> {
    for await (const key of inOrder(store.readClaimed)) {
      const { misses, observed_at } = key
      const isDue = misses === null || (misses > 0 && misses < missesToBelieve && observed_at <= missedBefore)
      if (isDue && !setAside.has('document', key.id)) yield key
    }
  }

  async function retrySetAside(round: Round): Promise<void> {
    const { documents, clients, relations } = await setAside.due(round.at)
    const known = new Map(
      (await store.findDocuments({ ids: documents, references: [] })).map(each => [each.id, each]),
    )
    const keys = documents.map(id => ({ id, type: known.get(id)?.document?.type ?? null }))
    await refetch.fetchEach(round, keys)
    await refetch.fetchClients(round, clients)
    const again = relations.map((id): RelationsKey => ({ id, type: null, hasQr: false, isPartial: false }))
    await refetch.fetchRelations(round, again)
  }

  async function refreshRelations(round: Round): Promise<void> {
    const before = round.stamp - observationStamp(relationsEvery)
    const due = await store.readDueRelations(before, Math.min(fetchesPerRun, 500))
    const keys = due.filter(({ id }) => !setAside.has('relations', id))
    await refetch.fetchRelations({ ...round, source: sweepSource }, keys)
  }

  async function* dueClients(): AsyncGenerator<number> {
    const before = nextStamp() - observationStamp(dayMs)
    let left = fetchesPerRun
    const read = async (after: number, limit: number) =>
      (await store.readClients(before, after, limit)).map(id => ({ id }))
    for await (const { id } of inOrder(read)) {
      if (setAside.has('client', id)) continue
      if (left-- <= 0) return
      yield id
    }
  }

  /** Records the end of a round, as of its beginning; or the cursor with which the next run goes on. */
  async function end(stream: Stream, { at }: Round, next: string | null): Promise<void> {
    const since = Math.min(readCursor(stream)?.since ?? at, at)
    await store.transaction(tx =>
      next === null
        ? tx.saveSuccess(stream.name, since)
        : tx.saveStream({ ...stream, cursor: writeCursor(next, since) }),
    )
  }

  return {
    source: source as SourceIdentity,
    /** Reads the documents of one more month, the newest month first. Resolves with null once all were read. */
    sweepMonth(): Promise<Swept | null> {
      return streams.run(names.all, async stream => {
        // What the first sweep brings was never missed.
        const begun = begin(sweepSource)
        const recentFrom = stream.succeeded_at === null ? null : firstRecentDay(begun)
        const round: Round = { ...begun, recentFrom }
        const thisMonth = monthOf(round.at)
        const first = (await store.readFirstIssued()) ?? round.at
        const cursor = readCursor(stream)?.next ?? thisMonth
        const month = cursor < thisMonth ? cursor : thisMonth
        const span = {
          from: `${month}-01`,
          to: month >= thisMonth ? dayOf(round.at + 31 * dayMs) : lastDayOf(month),
        }
        await readAndFetch(round, span, span)
        const next = monthOf(Date.parse(`${month}-01`) - dayMs)
        // A document may be dated a little before its invoice.
        const isDone = next < monthOf(first - 31 * dayMs)
        await end(stream, round, isDone ? null : next)
        if (!isDone) return round.swept
        // Lists may have left out what comparisons need.
        await refreshRelations(begun)
        return null
      })
    },
    sweepRecent(): Promise<Swept> {
      return streams.run(names.recent, async stream => {
        const round = begin(source)
        const span = { from: firstRecentDay(round), to: dayOf(round.at + daysAhead * dayMs) }
        const last = await readAndFetch(round, span, span, stream)
        await end(stream, round, last === null ? null : String(last))
        return round.swept
      })
    },
    /** Reads documents that may still change and claimed ones that were never seen, and ages claims. */
    refreshOpen(): Promise<Swept> {
      return streams.run(names.open, async stream => {
        const round = begin(source)
        const last = await readAndFetch(round, { statuses: openInLists }, 'open', stream)
        const left = await refetch.fetchEach(round, unseen(round), fetchesPerRun)
        round.swept.changed += await ageClaims(store, linking)
        await end(stream, round, last === null && left === null ? null : String(last ?? 0))
        // Not part of the round: the API does not show these.
        await retrySetAside(round)
        await refetch.fetchClients(round, dueClients())
        await refreshRelations(round)
        return round.swept
      })
    },
  }
}

function firstRecentDay({ at }: Round): string {
  return dayOf(at - recentDays * dayMs)
}

/** Days as YYYY-MM-DD, both inclusive. */
type Span = { from: string; to: string }

/** The position and the beginning of a round that was cut off; null when the cursor holds neither. */
function readCursor({ cursor }: Stream): { next: string; since: number } | null {
  const [, next = '', moment = ''] = /^(\S+) since (\S+)$/.exec(cursor ?? '') ?? []
  const since = Date.parse(moment)
  return Number.isNaN(since) ? null : { next, since }
}

function writeCursor(next: string, since: number): string {
  return `${next} since ${new Date(since).toISOString()}`
}

async function* inOrder<T extends { id: number }>(
  read: (after: number, limit: number) => Promise<T[]>,
  from = 0,
): AsyncGenerator<T> {
  for await (const batch of readBatches<T>((after, limit) => read(after?.id ?? from, limit))) yield* batch
}
