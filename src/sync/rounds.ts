/** The schedule of the connector. Events never wait for lists of everything. */
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
import { type Clocks, createTimer, every, leftSince, type Step } from './schedule.ts'
import { readStreams } from './streams.ts'

/** How long a round waits for the lists of whole customers, which go on without it. */
export const customerPatienceMs = 2_000
/** Between two sweeps, however long one takes. */
const shortestPauseMs = 1_000

export type ReportStep = (step: string, done: Applied | Swept) => void

export interface RoundsOptions {
  connector: Connector
  store: WriteStore
  clocks: Clocks
  reportStep: ReportStep
  isFull: boolean
  afterReread(): Promise<unknown>
}

/** Rounds that run at the same time, each with steps of its own. */
export async function invoiceRounds(options: RoundsOptions): Promise<Step[][]> {
  const { connector, store, clocks, reportStep, afterReread } = options
  const streams = await readStreams(store)
  const names = billingStreams(connector.source)
  const relistEvery = relistEveryOf(connector)
  const relist = streams.get(names.relist)
  let listedAt = relist?.succeeded_at ?? streams.get(names.backfill)?.succeeded_at ?? null
  const isRelisting = options.isFull || (relist !== undefined && relist.cursor !== null)
  const relistTimer = createTimer(
    relistEvery,
    clocks,
    isRelisting ? 0 : leftSince(listedAt, relistEvery, clocks),
  )
  let isForced = options.isFull
  // Invoices listed by the first round are not fetched again at once.
  let unlessSince: number | undefined = connector.startedAt
  const listing = [
    every(backfillEvery, clocks, async () => {
      if (!(await connector.isListed())) reportStep('backfill', await connector.backfill())
    }),
    every(unsettledEvery, clocks, async () => {
      reportStep('rereadUnsettled', await connector.rereadUnsettled(unlessSince))
      unlessSince = undefined
      await afterReread()
    }),
    every(asideEvery, clocks, async () =>
      reportAny('retrySetAside', await connector.retrySetAside(), reportStep),
    ),
  ]
  const events = every(eventsEvery, clocks, async () =>
    reportStep('catchUp', await connector.catchUp(customerPatienceMs)),
  )
  const relisting: Step = {
    timer: relistTimer,
    isBitByBit: true,
    async run() {
      if (!(await connector.isListed())) return relistTimer.restart(backfillEvery)
      const last = (await readStreams(store)).get(names.relist)
      // A backfill that ended since counts as well. The timer has counted the rest, by a clock that nobody sets.
      const isKnown = last?.cursor !== null || last.succeeded_at === listedAt
      const left = isKnown ? 0 : leftSince(last.succeeded_at, relistEvery, clocks)
      listedAt = last?.succeeded_at ?? null
      if (!isForced && left > 0) return relistTimer.restart(left)
      reportStep('relist', await connector.relist(isForced))
      isForced = false
      listedAt = (await readStreams(store)).get(names.relist)?.succeeded_at ?? null
      relistTimer.restart()
    },
  }
  const waiting = every(waitingEvery, clocks, async () =>
    reportAny('retryWaiting', await connector.retryWaiting(), reportStep),
  )
  return [listing, [events], [relisting], [waiting]]
}

function relistEveryOf({ source }: Pick<Connector, 'source'>): number {
  return source.relistEveryMs ?? usualRelistEvery
}

/** Pages of the relist that a single run reads. 0 unless a list is under way, or would be due before the next run. */
export function relistPages(
  connector: Pick<Connector, 'source'>,
  relist: Stream | undefined,
  lastRunAt: number | null,
  clocks: Pick<Clocks, 'calendar'>,
): number {
  const sinceLastRun = lastRunAt === null ? 0 : Math.max(0, clocks.calendar() - lastRunAt)
  const relistEvery = relistEveryOf(connector)
  const left = leftSince(relist?.succeeded_at ?? null, relistEvery, clocks)
  // A list that ended within this run is not due again, however long ago the last run was.
  const isDue = left <= Math.min(sinceLastRun, relistEvery / 2)
  if (!isDue && (relist?.cursor ?? null) === null) return 0
  return Math.max(relistPagesAtLeast, Math.floor((sinceLastRun / 1_000) * relistPagesPerSecond))
}

/** Reports nothing when there was nothing to retry. */
export async function retryAll(connector: Connector, reportStep: ReportStep): Promise<void> {
  reportAny('retryWaiting', await connector.retryWaiting(), reportStep)
  reportAny('retrySetAside', await connector.retrySetAside(), reportStep)
}

function reportAny(step: string, applied: Applied | null, reportStep: ReportStep): void {
  if (applied !== null) reportStep(step, applied)
}

/** Two rounds at the same time: frequent steps, and the sweep of everything month by month. */
export async function documentRounds(
  documents: DocumentSync,
  options: Pick<RoundsOptions, 'connector' | 'store' | 'clocks' | 'reportStep'>,
): Promise<Step[][]> {
  const { connector, store, clocks, reportStep } = options
  const last = (await readStreams(store)).get(documentStreams(documents.source).all)
  // Counted from the beginning of the last sweep; one that was cut off goes on at once.
  const left = last?.cursor === null ? leftSince(last.succeeded_at, allEvery, clocks) : 0
  const allTimer = createTimer(allEvery, clocks, left)
  let begunAt: number | null = null
  const frequent = [
    every(recentEvery, clocks, async () => reportStep('sweepRecent', await documents.sweepRecent())),
    every(openEvery, clocks, async () => reportStep('refreshOpen', await documents.refreshOpen())),
  ]
  const all: Step = {
    timer: allTimer,
    isBitByBit: true,
    async run() {
      // The oldest invoice bounds the sweep: all of them must be stored.
      if (!(await connector.isListed())) return allTimer.restart(backfillEvery)
      begunAt ??= clocks.elapsed()
      const swept = await documents.sweepMonth()
      if (swept !== null) return reportStep('sweepMonth', swept)
      allTimer.restart(Math.max(shortestPauseMs, begunAt + allEvery - clocks.elapsed()))
      begunAt = null
    },
  }
  return [frequent, [all]]
}
