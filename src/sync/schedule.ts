/** Steps that repeat: intervals, timers, pauses. Pauses run on a monotonic clock; only stored moments are compared by the calendar. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

const second = 1_000
const minute = 60 * second

/** The intervals of the connector's steps, in milliseconds. */
export const everyMs = {
  /** A change is seen within 10 s without webhooks. */
  events: 5 * second,
  backfill: 5 * second,
  unsettled: 15 * minute,
  /** A look for records that were set aside and are due. */
  aside: 30 * second,
  /** From the end of a list of everything to the beginning of the next. */
  relist: 24 * 60 * minute,
  /** Reads of recent documents, and of documents that may still change. */
  recent: minute,
  open: 5 * minute,
  /** Sweeps of all documents, from one beginning to the next; a sweep that takes longer is followed by the next at once. */
  all: 5 * minute,
}

export interface Clocks {
  /** Monotonic, in milliseconds. */
  elapsed(): number
  /** In milliseconds since the epoch; it may be set at any time. */
  calendar(): number
}

export const realClocks: Clocks = { elapsed: () => performance.now(), calendar: () => Date.now() }

/** It is first due after `firstMs`. */
export function createTimer(intervalMs: number, { elapsed }: Clocks, firstMs = 0) {
  let dueAt = elapsed() + firstMs
  return {
    left: () => Math.max(0, dueAt - elapsed()),
    /** Makes it due after its interval from now on, or after the given pause. */
    restart(pauseMs = intervalMs) {
      dueAt = elapsed() + pauseMs
    },
  }
}

/** The rest of an interval since a stored moment. A moment in the future was stored by a wrong clock: nothing is left. */
export function leftSince(moment: number | null, intervalMs: number, { calendar }: Pick<Clocks, 'calendar'>) {
  const age = moment === null ? intervalMs : calendar() - moment
  return age < 0 ? 0 : Math.max(0, intervalMs - age)
}

export interface Step {
  timer: ReturnType<typeof createTimer>
  /** Restarts the timer, unless more of it is due at once. It does so also when it fails: others have their turn before it. */
  run(): Promise<unknown>
}

/** A step with a constant interval. It is first due after `firstMs`: at once, so also after each start. */
export function every(ms: number, clocks: Clocks, work: () => Promise<unknown>, firstMs = 0): Step {
  const timer = createTimer(ms, clocks, firstMs)
  return {
    timer,
    run() {
      timer.restart()
      return work()
    },
  }
}

/** Runs the first due step; returns the milliseconds until the next. */
export async function runDue(steps: readonly Step[]): Promise<number> {
  const due = steps.find(({ timer }) => timer.left() === 0)
  if (due === undefined) return Math.min(...steps.map(({ timer }) => timer.left()))
  await due.run()
  return 0
}

export const retryPauseMs = 5_000
const longestRetryPauseMs = 60_000

/** The pause after so many failures in a row: twice as long each time, up to a minute. */
export function pauseAfter(failures: number): number {
  return Math.min(longestRetryPauseMs, retryPauseMs * 2 ** (failures - 1))
}

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
