/** When each part of the connector has its turn. What is told of one never waits for what is listed of all. */
import type { Stream, WriteStore } from '../store/store.ts'
import { billingStreams, documentStreams } from '../stream-names.ts'
import type { Applied } from './apply.ts'
import type { Connector } from './connector.ts'
import type { DocumentSync, Swept } from './documents.ts'
import {
  allEvery,
  asideEvery,
  backfillEvery,
  eventsEvery,
  openEvery,
  recentEvery,
  relistPagesAtLeast,
  relistPagesPerSecond,
  unsettledEvery,
  relistEvery as usualRelistEvery,
  waitingEvery,
} from './intervals.ts'
import { type Clocks, createTimer, leftSince, type Step } from './schedule.ts'

/** How long a round waits for the lists of whole customers, which go on without it. */
export const customerPatience = 2_000
/** Between two sweeps, however long one takes. */
const shortestPause = 1_000

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
  const names = billingStreams(connector.source)
  const relistEvery = relistEveryOf(connector)
  const relist = streams.get(names.relist)
  const listedAt = relist?.succeeded_at ?? streams.get(names.backfill)?.succeeded_at ?? null
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
    {
      timer: createTimer(asideEvery, clocks),
      run: () => tellIfAny('retrySetAside', connector.retrySetAside(), tell),
    },
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
      // A list of everything that ended since counts as well: the first one does.
      const last = (await readStreams(store)).get(names.relist)
      const left = last?.cursor === null ? leftSince(last.succeeded_at, relistEvery, clocks) : 0
      if (!isForced && left > 0) return relistTimer.restart(left)
      tell('relist', await connector.relist(isForced))
      isForced = false
      relistTimer.restart()
    },
  }
  const waiting: Step = {
    timer: createTimer(waitingEvery, clocks),
    run: () => tellIfAny('retryWaiting', connector.retryWaiting(), tell),
  }
  return [listing, [events], [relisting], [waiting]]
}

function relistEveryOf({ source }: Pick<Connector, 'source'>): number {
  return source.relistEveryMs ?? usualRelistEvery
}

/**
 * How many pages of the relist a single run is to read. None unless a list is under way, or would be due before the next run: that comes
 * as long after this one as this one after the last.
 */
export function relistPages(
  connector: Pick<Connector, 'source'>,
  relist: Stream | undefined,
  lastRunAt: number | null,
  clocks: Pick<Clocks, 'calendar'>,
): number {
  const sinceLastRun = lastRunAt === null ? 0 : Math.max(0, clocks.calendar() - lastRunAt)
  const relistEvery = relistEveryOf(connector)
  const left = leftSince(relist?.succeeded_at ?? null, relistEvery, clocks)
  // What was listed within this run is not due again, however long ago the last run was.
  const isDue = left <= Math.min(sinceLastRun, relistEvery / 2)
  if (!isDue && (relist?.cursor ?? null) === null) return 0
  return Math.max(relistPagesAtLeast, Math.floor((sinceLastRun / 1_000) * relistPagesPerSecond))
}

/** Says nothing when there is nothing to try again. */
export async function retryAside(connector: Connector, tell: Tell): Promise<void> {
  await tellIfAny('retryWaiting', connector.retryWaiting(), tell)
  await tellIfAny('retrySetAside', connector.retrySetAside(), tell)
}

async function tellIfAny(step: string, trying: Promise<Applied | null>, tell: Tell): Promise<void> {
  const applied = await trying
  if (applied !== null) tell(step, applied)
}

/** Two rounds side by side: what is due most often, and everything month by month. A change is seen in time either way. */
export async function documentRounds(
  documents: DocumentSync,
  { connector, store, clocks, tell }: Pick<RhythmOptions, 'connector' | 'store' | 'clocks' | 'tell'>,
): Promise<Step[][]> {
  const last = (await readStreams(store)).get(documentStreams(documents.source).all)
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
      if (!(await connector.isListed())) return allTimer.restart(backfillEvery)
      begunAt ??= clocks.elapsed()
      const swept = await documents.sweepMonth()
      if (swept !== null) return tell('sweepMonth', swept)
      allTimer.restart(Math.max(shortestPause, begunAt + allEvery - clocks.elapsed()))
      begunAt = null
    },
  }
  return [[recent, open], [all]]
}

export async function readStreams(store: WriteStore): Promise<Map<string, Stream>> {
  return new Map((await store.listStreams()).map(stream => [stream.name, stream]))
}
