/**
 * From an invoicing system to the store. Nothing tells of a change there, so it is looked at again and again: what is
 * recent and what still changes often, everything in turn.
 */

import type { Logger } from 'pino'
import { dayMs, dayOf, lastDayOf, monthOf } from '../calendar.ts'
import { missesToBelieve, openInLists } from '../document.ts'
import type { LinkRules } from '../linking/link.ts'
import type { DocumentSource, SourceIdentity } from '../sources.ts'
import type { DocumentKey } from '../store/document-store.ts'
import { createStamps, type NextStamp } from '../store/stamps.ts'
import { observationStamp, type Stream, type WriteStore } from '../store/store.ts'
import { documentStreams } from '../stream-names.ts'
import { type Brake, noBrake } from './brake.ts'
import { createClientReader } from './document-clients.ts'
import { createDocumentLooks, nothingSwept, type Round, type Swept } from './document-looks.ts'
import { createSetAside } from './documents-set-aside.ts'
import { openEvery } from './intervals.ts'
import { ageClaims } from './link-invoices.ts'
import { createStreams, succeed } from './streams.ts'

export type { Swept } from './document-looks.ts'

const minuteMs = 60 * 1000
/** A document carries the day on which it is made, or one shortly before. */
const recentDays = 3
/** Clocks differ, and days do around the world. */
const daysAhead = 2
/** A little less than lies between two rounds over what may still change. */
const usuallyApart = openEvery - minuteMs
const batchSize = 500

export interface DocumentSyncOptions {
  source: DocumentSource
  /** What everything is read from in turn: it may have a slower pace than the rest. */
  sweepSource?: DocumentSource
  store: WriteStore
  rules: LinkRules
  brake?: Brake
  log: Logger
  signal: AbortSignal
  /** How many single documents and clients one run may ask for; the next goes on with the rest. */
  fetchesPerRun?: number
  /** Whether all that is done is one round, as when it is done only once: a document is then missed once at most. */
  isOneRound?: boolean
  /** Otherwise, how many milliseconds must lie between two misses of a document: less is one outage, told twice. */
  missesApart?: number
  /** How many documents were read so far, by all steps together. */
  onProgress?(documents: number): void
}

export interface DocumentSync {
  /** Where the documents come from. */
  source: SourceIdentity
  /** Reads the documents of one more month, the newest month first. Resolves with null once all were read. */
  sweepMonth(): Promise<Swept | null>
  /** Reads the documents of the last days. */
  sweepRecent(): Promise<Swept>
  /** Looks at whatever may still change, at what was claimed and never seen, and at claims that grew old. */
  refreshOpen(): Promise<Swept>
  /** Looks at these alone. */
  lookAt(documents: readonly DocumentKey[]): Promise<Swept>
}

export async function createDocumentSync(options: DocumentSyncOptions): Promise<DocumentSync> {
  const { source, sweepSource = source, store, rules, log, signal, fetchesPerRun = 200, onProgress } = options
  const { isOneRound = false, missesApart = usuallyApart, brake = noBrake } = options
  const nextStamp: NextStamp = createStamps(await store.readLastObserved())
  const startedAt = nextStamp()
  const streams = createStreams(store, signal)
  const names = documentStreams(source)
  const setAside = await createSetAside(source.system, store, log)
  const looks = createDocumentLooks({ store, rules, brake, log, signal, nextStamp, setAside, onProgress })
  const readClients = createClientReader({ source, store, log, signal, nextStamp, setAside })
  await announce(store, Object.values(names))

  function begin(): Round {
    const [at, stamp] = [Date.now(), nextStamp()]
    return { at, stamp, missedBefore: isOneRound ? startedAt : stamp - observationStamp(missesApart) }
  }

  /** What a list should have held, and did not: whatever was not looked at since the round began. */
  async function* unlisted(which: 'open' | Span, { stamp }: Round, from = 0): AsyncGenerator<DocumentKey> {
    const read = (after: number) => store.readDocuments(which, stamp, after, batchSize)
    for await (const key of inBatches(from, read)) if (!setAside.has('document', key.id)) yield key
  }

  /** What is claimed and was never seen, or was missed in an earlier round. */
  async function* unseen({ missedBefore }: Round): AsyncGenerator<DocumentKey> {
    for await (const key of inBatches(0, after => store.readClaimed(after, batchSize))) {
      const { misses, observed_at } = key
      const isDue = misses === null || (misses > 0 && misses < missesToBelieve && observed_at <= missedBefore)
      if (isDue && !setAside.has('document', key.id)) yield key
    }
  }

  /** What was set aside and was tried longest ago. */
  async function tryAgain(round: Round, swept: Swept): Promise<void> {
    const { documents, clients } = await setAside.due(round.at)
    const known = new Map(
      (await store.findDocuments({ ids: documents, references: [] })).map(each => [each.id, each]),
    )
    const keys = documents.map(id => ({ id, type: known.get(id)?.document?.type ?? null }))
    await looks.lookAtEach(source, keys, round, swept)
    await readClients(clients)
  }

  async function* dueClients(): AsyncGenerator<number> {
    const before = observationStamp(Date.now() - dayMs)
    let left = fetchesPerRun
    const read = async (after: number) =>
      (await store.readClients(before, after, batchSize)).map(id => ({ id }))
    for await (const { id } of inBatches(0, read)) {
      if (setAside.has('client', id)) continue
      if (left-- <= 0) return
      yield id
    }
  }

  /** The round's end, as of when it began; or where the next run goes on with it. */
  async function end(stream: Stream, { at }: Round, next: string | null): Promise<void> {
    const since = readCursor(stream)?.since ?? at
    await store.transaction(
      next === null
        ? succeed(stream, null, since)
        : tx => tx.saveStream({ ...stream, cursor: writeCursor(next, since) }),
    )
  }

  return {
    source,
    sweepMonth() {
      return streams.run(names.all, async stream => {
        const round = begin()
        const thisMonth = monthOf(round.at)
        const first = (await store.readFirstIssued()) ?? round.at
        const month = readCursor(stream)?.next ?? thisMonth
        const span = {
          from: `${month}-01`,
          to: month >= thisMonth ? dayOf(round.at + 31 * dayMs) : lastDayOf(month),
        }
        const swept = nothingSwept()
        await looks.readLists(sweepSource, span, swept)
        await looks.lookAtEach(sweepSource, unlisted(span, round), round, swept)
        const next = monthBefore(month)
        // A document may carry a day that is a little before its invoice's.
        const isDone = next < monthOf(first - 31 * dayMs)
        await end(stream, round, isDone ? null : next)
        return isDone ? null : swept
      })
    },
    sweepRecent() {
      return streams.run(names.recent, async stream => {
        const round = begin()
        const span = { from: dayOf(round.at - recentDays * dayMs), to: dayOf(round.at + daysAhead * dayMs) }
        const swept = nothingSwept()
        await looks.readLists(source, span, swept)
        const keys = unlisted(span, round, Number(readCursor(stream)?.next ?? 0))
        const last = await looks.lookAtEach(source, keys, round, swept, fetchesPerRun)
        await end(stream, round, last === null ? null : String(last))
        return swept
      })
    },
    refreshOpen() {
      return streams.run(names.open, async stream => {
        const round = begin()
        const swept = nothingSwept()
        await looks.readLists(source, { statuses: openInLists }, swept)
        const keys = unlisted('open', round, Number(readCursor(stream)?.next ?? 0))
        const last = await looks.lookAtEach(source, keys, round, swept, fetchesPerRun)
        const left = await looks.lookAtEach(source, unseen(round), round, swept, fetchesPerRun)
        swept.changed += await ageClaims(store, rules, brake)
        await end(stream, round, last === null && left === null ? null : String(last ?? 0))
        // The API does not tell of these: they are no part of what the round has to look at.
        await tryAgain(round, swept)
        await readClients(dueClients())
        return swept
      })
    },
    async lookAt(documents) {
      const swept = nothingSwept()
      await looks.lookAtEach(source, documents, begin(), swept)
      return swept
    },
  }
}

/** Before all documents were read once, nothing may be told to be up to date: so the streams are there from the start. */
async function announce(store: WriteStore, names: readonly string[]): Promise<void> {
  const known = new Set((await store.listStreams()).map(({ name }) => name))
  const missing = names.filter(name => !known.has(name))
  if (missing.length === 0) return
  await store.transaction(async tx => {
    for (const name of missing)
      await tx.saveStream({ name, cursor: null, succeeded_at: null, failed_at: null, error: null })
  })
}

/** Days as YYYY-MM-DD, both inclusive. */
type Span = { from: string; to: string }

/** Where a round goes on, and when it began: a cursor that tells neither is none. */
function readCursor({ cursor }: Stream): { next: string; since: number } | null {
  const [, next = '', moment = ''] = /^(\S+) since (\S+)$/.exec(cursor ?? '') ?? []
  const since = Date.parse(moment)
  return Number.isNaN(since) ? null : { next, since }
}

function writeCursor(next: string, since: number): string {
  return `${next} since ${new Date(since).toISOString()}`
}

/** What lies in the order of its ids, read batch by batch: what is changed meanwhile is not read twice. */
async function* inBatches<T extends { id: number }>(
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

function monthBefore(month: string): string {
  return monthOf(Date.parse(`${month}-01`) - dayMs)
}
