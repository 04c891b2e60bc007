/** Intervals and timers of steps that repeat. Pauses run on a monotonic clock; only stored moments are compared by the calendar. */

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
  /** Whether it stays due until it restarts its timer itself. */
  isBitByBit?: true
  run(): Promise<unknown>
}

/** A step with a constant interval, which is due at once, so also after each start. */
export function every(ms: number, clocks: Clocks, run: Step['run']): Step {
  return { timer: createTimer(ms, clocks), run }
}

/** Runs the first due step; returns the milliseconds until the next. The step's timer restarts before the step runs: one that fails must not block others. */
export async function runDue(steps: readonly Step[]): Promise<number> {
  const due = steps.find(({ timer }) => timer.left() === 0)
  if (due === undefined) return Math.min(...steps.map(({ timer }) => timer.left()))
  if (due.isBitByBit !== true) due.timer.restart()
  await due.run()
  return 0
}
