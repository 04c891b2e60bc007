/** One run of `fatura sync --once` over all invoices. */
import type { Logger } from 'pino'
import { billingStreams } from '../sources/stream-names.ts'
import type { Stream, WriteStore } from '../store/store.ts'
import type { Connector } from './invoices/connector.ts'
import { customerPatienceMs, relistEveryOf } from './questions.ts'
import type { ReportStep } from './rounds.ts'
import { type Clocks, every, everyMs, realClocks, remainingSince, repeat, runDue } from './schedule.ts'
import { readStreams } from './streams.ts'

/**
 * A single run reads two pages of a relist for each second since the last run, and 20
 * pages at least. Two are a tenth of the pages that the rate limit allows in a second.
 */
const [relistPagesPerSecond, relistPagesAtLeast] = [2, 20]

/** Reads all invoices of the account. Events are applied meanwhile, because the list of a large account takes hours. */
export async function syncInvoices(
  connector: Connector,
  options: { store: WriteStore; log: Logger; signal: AbortSignal; isFull?: boolean },
  reportStep: ReportStep,
): Promise<void> {
  const { store, log, signal, isFull = false } = options
  const names = billingStreams(connector.source)
  const whileFollowing = async <T>(work: Promise<T>): Promise<T> => {
    const done = new AbortController()
    const catchUp = () => connector.catchUp(customerPatienceMs)
    const steps = [every(everyMs.events, realClocks, catchUp, everyMs.events)]
    const following = repeat(() => runDue(steps), log, AbortSignal.any([signal, done.signal]))
    try {
      const result = await work
      done.abort()
      await following
      return result
    } finally {
      done.abort()
    }
  }
  const lastRunAt = (await readStreams(store)).get(names.events)?.succeeded_at ?? null
  do {
    reportStep('backfill', await whileFollowing(connector.backfill()))
    reportStep('catchUp', await connector.catchUp())
    // The loop repeats after a gap in the events, which only a full list can close.
  } while (!(await connector.isListed()))
  signal.throwIfAborted()
  const relist = (await readStreams(store)).get(names.relist)
  const pages = isFull ? undefined : relistPages(connector, relist, lastRunAt, realClocks)
  if (pages !== 0) reportStep('relist', await whileFollowing(connector.relist(isFull, pages)))
  reportStep('rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
  const again = await connector.retrySetAside('all')
  if (again !== null) reportStep('retrySetAside', again)
}

/**
 * Returns how many pages of the relist (the repeated list of all invoices) one run reads. Returns 0 unless a relist is unfinished or would
 * be due before the next run.
 */
export function relistPages(
  connector: Pick<Connector, 'source'>,
  relist: Stream | undefined,
  lastRunAt: number | null,
  clocks: Pick<Clocks, 'calendar'>,
): number {
  const sinceLastRun = lastRunAt === null ? 0 : Math.max(0, clocks.calendar() - lastRunAt)
  const relistEvery = relistEveryOf(connector)
  const remainingMs = remainingSince(relist?.succeeded_at ?? null, relistEvery, clocks)
  // A relist that ended in this run must not be due again at once. So at most half of the relist's interval counts here.
  const isDue = remainingMs <= Math.min(sinceLastRun, relistEvery / 2)
  if (!isDue && (relist?.cursor ?? null) === null) return 0
  return Math.max(relistPagesAtLeast, Math.floor((sinceLastRun / 1_000) * relistPagesPerSecond))
}
