/** How often each part of the connector has its turn. What is told of one never waits for what is listed of all. */
import type { Stream, WriteStore } from '../store/store.ts'
import type { Applied } from './apply.ts'
import type { Connector } from './connector.ts'
import { allStream, type DocumentSync, type Swept } from './documents.ts'
import { type Clocks, createTimer, leftSince, type Step } from './schedule.ts'
import { backfillStream, relistStream } from './stream-names.ts'

const second = 1_000
const minute = 60 * second
const day = 24 * 60 * minute

/** How often what happened is asked for: with the round itself, a change is seen within 10 s without webhooks. */
export const eventsEvery = 5 * second
/** How long a round waits for the lists of whole customers, which go on without it. */
export const customerPatience = 2 * second
/** How often it is looked whether everything is to be listed. */
const backfillEvery = 5 * second
/** How often everything that may still change is looked at again, and what did not fit is tried again. */
const unsettledEvery = 15 * minute
const asideEvery = 5 * minute
/** How long after the end of a list of everything the next one begins, slowly. */
const relistEvery = day
/** How often new documents are looked for, and those that still change are looked at. */
const recentEvery = minute
const openEvery = 5 * minute
/** How often all documents are read, from one beginning to the next: at once again where it takes longer. */
const allEvery = 5 * minute
/** Between two sweeps, however long one takes. */
const shortestPause = second

export type Tell = (step: string, done: Applied | Swept) => void

export interface RhythmOptions {
  connector: Connector
  store: WriteStore
  clocks: Clocks
  tell: Tell
  /** Whether everything is to be listed again at once. */
  isFull: boolean
  /** What else follows a look at all that may still change. */
  afterReread(): Promise<unknown>
}

/** Rounds that go on side by side, each with steps of its own. */
export async function invoiceRounds(options: RhythmOptions): Promise<Step[][]> {
  const { connector, store, clocks, tell, afterReread } = options
  const streams = await readStreams(store)
  const relist = streams.get(relistStream)
  const listedAt = relist?.succeeded_at ?? streams.get(backfillStream)?.succeeded_at ?? null
  const isRelisting = options.isFull || (relist !== undefined && relist.cursor !== null)
  const relistTimer = createTimer(
    relistEvery,
    clocks,
    isRelisting ? 0 : leftSince(listedAt, relistEvery, clocks),
  )
  let isForced = options.isFull
  // What the first round has just listed needs no second look.
  let unlessSince: number | undefined = connector.startedAt
  const listing: Step[] = [
    {
      timer: createTimer(backfillEvery, clocks),
      async run() {
        if (!(await connector.isListed())) tell('backfill', await connector.backfill())
      },
    },
    {
      timer: createTimer(unsettledEvery, clocks),
      async run() {
        tell('rereadUnsettled', await connector.rereadUnsettled(unlessSince))
        unlessSince = undefined
        await afterReread()
      },
    },
    { timer: createTimer(asideEvery, clocks), run: () => retryAside(connector, store, tell) },
  ]
  const events: Step = {
    timer: createTimer(eventsEvery, clocks),
    run: async () => tell('catchUp', await connector.catchUp(customerPatience)),
  }
  const relisting: Step = {
    timer: relistTimer,
    isBitByBit: true,
    async run() {
      if (!(await connector.isListed())) return relistTimer.restart(backfillEvery)
      tell('relist', await connector.relist(isForced))
      isForced = false
      relistTimer.restart()
    },
  }
  return [listing, [events], [relisting]]
}

/** Says nothing when there is nothing to try again. */
export async function retryAside(connector: Connector, store: WriteStore, tell: Tell): Promise<void> {
  const counts = await store.countSetAside()
  if (counts.some(({ system }) => system === 'stripe')) tell('retrySetAside', await connector.retrySetAside())
}

/** Two rounds side by side: what is due most often, and everything month by month. A change is seen in time either way. */
export async function documentRounds(
  documents: DocumentSync,
  store: WriteStore,
  clocks: Clocks,
  tell: Tell,
): Promise<Step[][]> {
  const last = (await readStreams(store)).get(allStream)
  // From the beginning of the last sweep on; one that was cut off goes on at once.
  const left = last?.cursor === null ? leftSince(last.succeeded_at, allEvery, clocks) : 0
  const allTimer = createTimer(allEvery, clocks, left)
  let begunAt: number | null = null
  const recent: Step = {
    timer: createTimer(recentEvery, clocks),
    run: async () => tell('sweepRecent', await documents.sweepRecent()),
  }
  const open: Step = {
    timer: createTimer(openEvery, clocks),
    run: async () => tell('refreshOpen', await documents.refreshOpen()),
  }
  const all: Step = {
    timer: allTimer,
    isBitByBit: true,
    async run() {
      // How far back documents are read is told by the invoices: all of them must be there.
      const backfill = (await readStreams(store)).get(backfillStream)
      if (backfill === undefined || backfill.succeeded_at === null) return allTimer.restart(backfillEvery)
      begunAt ??= clocks.elapsed()
      const swept = await documents.sweepMonth()
      if (swept !== null) return tell('sweepMonth', swept)
      allTimer.restart(Math.max(shortestPause, begunAt + allEvery - clocks.elapsed()))
      begunAt = null
    },
  }
  return [[recent, open], [all]]
}

async function readStreams(store: WriteStore): Promise<Map<string, Stream>> {
  return new Map((await store.listStreams()).map(stream => [stream.name, stream]))
}
