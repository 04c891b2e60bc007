/** The schedule of the connector. Events never wait for lists of everything. */
import type { Stream, WriteStore } from '../store/store.ts'
import { billingStreams, documentStreams } from '../stream-names.ts'
import type { Applied } from './apply.ts'
import type { Connector } from './connector.ts'
import type { DocumentSync } from './documents.ts'
import type { Swept } from './refetch-documents.ts'
import { type Clocks, createTimer, every, everyMs, leftSince, type Step } from './schedule.ts'
import { readStreams } from './streams.ts'

/** How long a round waits for the lists of whole customers, which go on without it. */
export const customerPatienceMs = 2_000
/** Between two sweeps, however long one takes. */
const shortestPauseMs = 1_000

/** Pages of a relist that a single run reads: for each second since the last run, a tenth of that time at 20 pages a second. */
const [relistPagesPerSecond, relistPagesAtLeast] = [2, 20]

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
  const step = reportEvery(options)
  const listing = [
    step(everyMs.backfill, 'backfill', async () =>
      (await connector.isListed()) ? null : connector.backfill(),
    ),
    every(everyMs.unsettled, clocks, async () => {
      const since = unlessSince
      // What a round that failed has read may have changed by the next one.
      unlessSince = undefined
      reportStep('rereadUnsettled', await connector.rereadUnsettled(since))
      await afterReread()
    }),
    step(everyMs.aside, 'retrySetAside', connector.retrySetAside),
  ]
  const events = step(everyMs.events, 'catchUp', () => connector.catchUp(customerPatienceMs))
  const relisting: Step = {
    timer: relistTimer,
    isBitByBit: true,
    async run() {
      if (!(await connector.isListed())) return relistTimer.restart(everyMs.backfill)
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
  const waiting = step(everyMs.waiting, 'retryWaiting', connector.retryWaiting)
  return [listing, [events], [relisting], [waiting]]
}

function relistEveryOf({ source }: Pick<Connector, 'source'>): number {
  return source.relistEveryMs ?? everyMs.relist
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

/** Steps with a constant interval, which report nothing when there was nothing to do. */
function reportEvery({ clocks, reportStep }: Pick<RoundsOptions, 'clocks' | 'reportStep'>) {
  return (ms: number, name: string, run: () => Promise<Applied | Swept | null>): Step =>
    every(ms, clocks, async () => {
      const done = await run()
      if (done !== null) reportStep(name, done)
    })
}

/** Two rounds at the same time: frequent steps, and the sweep of everything month by month. */
export async function documentRounds(
  documents: DocumentSync,
  options: Pick<RoundsOptions, 'connector' | 'store' | 'clocks' | 'reportStep'>,
): Promise<Step[][]> {
  const { connector, store, clocks, reportStep } = options
  const last = (await readStreams(store)).get(documentStreams(documents.source).all)
  // Counted from the beginning of the last sweep; one that was cut off goes on at once.
  const left = last?.cursor === null ? leftSince(last.succeeded_at, everyMs.all, clocks) : 0
  const allTimer = createTimer(everyMs.all, clocks, left)
  let begunAt: number | null = null
  const step = reportEvery(options)
  const frequent = [
    step(everyMs.recent, 'sweepRecent', documents.sweepRecent),
    step(everyMs.open, 'refreshOpen', documents.refreshOpen),
  ]
  const all: Step = {
    timer: allTimer,
    isBitByBit: true,
    async run() {
      // The oldest invoice bounds the sweep: all of them must be stored.
      if (!(await connector.isListed())) return allTimer.restart(everyMs.backfill)
      begunAt ??= clocks.elapsed()
      const swept = await documents.sweepMonth()
      if (swept !== null) return reportStep('sweepMonth', swept)
      allTimer.restart(Math.max(shortestPauseMs, begunAt + everyMs.all - clocks.elapsed()))
      begunAt = null
    },
  }
  return [frequent, [all]]
}
