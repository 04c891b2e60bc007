/** What a single run does with invoices. */
import type { Logger } from 'pino'
import type { WriteStore } from '../../store/store.ts'
import { billingStreams } from '../../stream-names.ts'
import type { Connector } from '../../sync/connector.ts'
import { eventsEvery } from '../../sync/intervals.ts'
import { customerPatienceMs, type ReportStep, relistPages, retryAll } from '../../sync/rounds.ts'
import { createTimer, realClocks, runDue } from '../../sync/schedule.ts'
import { readStreams } from '../../sync/streams.ts'
import { repeat } from './repeat.ts'

interface BringOptions {
  store: WriteStore
  log: Logger
  signal: AbortSignal
  /** Whether everything is to be listed again, whatever was listed before. */
  isFull?: boolean
}

/** Everything that is there now. What happens meanwhile is followed too: the list of a large account takes hours. */
export async function bringEverything(
  connector: Connector,
  options: BringOptions,
  reportStep: ReportStep,
): Promise<void> {
  const { store, signal, isFull = false } = options
  const names = billingStreams(connector.source)
  const lastRunAt = (await readStreams(store)).get(names.events)?.succeeded_at ?? null
  do {
    reportStep('backfill', await whileFollowing(connector, options, connector.backfill()))
    reportStep('catchUp', await connector.catchUp())
    // The events had a gap that only the list can close.
  } while (!(await connector.isListed()))
  signal.throwIfAborted()
  const relist = (await readStreams(store)).get(names.relist)
  const pages = isFull ? undefined : relistPages(connector, relist, lastRunAt, realClocks)
  if (pages !== 0)
    reportStep('relist', await whileFollowing(connector, options, connector.relist(isFull, pages)))
  reportStep('rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
  await retryAll(connector, reportStep)
}

async function whileFollowing<T>(connector: Connector, options: BringOptions, work: Promise<T>): Promise<T> {
  const done = new AbortController()
  const signal = AbortSignal.any([options.signal, done.signal])
  const timer = createTimer(eventsEvery, realClocks, eventsEvery)
  const steps = [{ timer, run: () => connector.catchUp(customerPatienceMs) }]
  const following = repeat(() => runDue(steps), options.log, signal)
  try {
    const result = await work
    done.abort()
    await following
    return result
  } finally {
    done.abort()
  }
}
