/** A single run over all invoices; and the repetition of steps. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { WriteStore } from '../store/store.ts'
import { billingStreams } from '../stream-names.ts'
import type { Connector } from './connector.ts'
import { customerPatienceMs, type ReportStep, relistPages } from './rounds.ts'
import { createTimer, everyMs, realClocks, runDue } from './schedule.ts'
import { readStreams } from './streams.ts'

export const retryPauseMs = 5_000

/** Repeats a step until the signal, after the pause that it resolves with, or the pause after a failure. */
export async function repeat(step: () => Promise<number>, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const pauseMs = await step().catch(error => {
      if (!signal.aborted) log.error({ err: error }, 'sync failed; trying again')
      return retryPauseMs
    })
    await pause(pauseMs, signal)
  }
}

export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {})
}

/** All invoices of the account. Events are followed meanwhile: the list of a large account takes hours. */
export async function syncInvoices(
  connector: Connector,
  options: { store: WriteStore; log: Logger; signal: AbortSignal; isFull?: boolean },
  reportStep: ReportStep,
): Promise<void> {
  const { store, log, signal, isFull = false } = options
  const names = billingStreams(connector.source)
  const whileFollowing = async <T>(work: Promise<T>): Promise<T> => {
    const done = new AbortController()
    const timer = createTimer(everyMs.events, realClocks, everyMs.events)
    const steps = [{ timer, run: () => connector.catchUp(customerPatienceMs) }]
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
    // The events had a gap that only the list can close.
  } while (!(await connector.isListed()))
  signal.throwIfAborted()
  const relist = (await readStreams(store)).get(names.relist)
  const pages = isFull ? undefined : relistPages(connector, relist, lastRunAt, realClocks)
  if (pages !== 0) reportStep('relist', await whileFollowing(connector.relist(isFull, pages)))
  reportStep('rereadUnsettled', await connector.rereadUnsettled(connector.startedAt))
  for (const name of ['retryWaiting', 'retrySetAside'] as const) {
    const done = await connector[name]()
    if (done !== null) reportStep(name, done)
  }
}
