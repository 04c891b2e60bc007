/** Intervals, timers and pauses of repeated steps. Pauses use a monotonic clock. Only stored times are compared with the calendar clock. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

const second = 1_000
const minute = 60 * second

export const everyMs = {
  /** Without webhooks, a change is seen within 10 s. */
  events: 5 * second,
  backfill: 5 * second,
  unsettled: 15 * minute,
  /** Checks for set-aside records that are due. */
  aside: 30 * second,
  /** Time from the end of a full list to the beginning of another. */
  relist: 24 * 60 * minute,
  recent: minute,
  /** Reads of documents that may still change. */
  open: 5 * minute,
  /** Time between the beginnings of two sweeps of all documents. A sweep that takes longer is followed by another at once. */
  all: 5 * minute,
}

export interface Clocks {
  /** Monotonic time in milliseconds. */
  elapsed(): number
  /** Milliseconds since the epoch. This clock may be set at any time. */
  calendar(): number
}

export const realClocks: Clocks = { elapsed: () => performance.now(), calendar: () => Date.now() }

export function createTimer(intervalMs: number, { elapsed }: Clocks, firstMs = 0) {
  let dueAt = elapsed() + firstMs
  return {
    remaining: () => Math.max(0, dueAt - elapsed()),
    /** Makes the timer due after its interval, or after the given pause. */
    restart(pauseMs = intervalMs) {
      dueAt = elapsed() + pauseMs
    },
  }
}

/** Returns the rest of an interval since a stored moment. A moment in the future comes from a wrong clock, so the rest is 0. */
export function remainingSince(
  moment: number | null,
  intervalMs: number,
  { calendar }: Pick<Clocks, 'calendar'>,
) {
  const age = moment === null ? intervalMs : calendar() - moment
  return age < 0 ? 0 : Math.max(0, intervalMs - age)
}

export interface Step {
  timer: ReturnType<typeof createTimer>
  /**
   * Runs the step and restarts its timer, even after a failure, so that
   * other steps run first. The timer stays due when the step has more to do.
   */
  run(): Promise<unknown>
}

/** Creates a step with a constant interval. The step is first due after `firstMs`, by default at once. */
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

/** Runs the first due step. Returns the milliseconds until another step may be due. */
export async function runDue(steps: readonly Step[]): Promise<number> {
  const due = steps.find(({ timer }) => timer.remaining() === 0)
  if (due === undefined) return Math.min(...steps.map(({ timer }) => timer.remaining()))
  await due.run()
  return 0
}

export const retryPauseMs = 5_000
const longestRetryPauseMs = 60_000

/** Returns the pause after this many failures in a row. The pause doubles each time, up to a minute. */
export function pauseAfter(failures: number): number {
  return Math.min(longestRetryPauseMs, retryPauseMs * 2 ** (failures - 1))
}

/** Repeats a step until `signal` is aborted. The step resolves with the pause before its next run. */
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
