/** Timers of steps that repeat. Pauses run on a monotonic clock; only stored moments are compared by the calendar. */

export interface Clocks {
  /** Monotonic, in milliseconds. */
  elapsed(): number
  /** In milliseconds since the epoch; it may be set at any time. */
  calendar(): number
}

export const realClocks: Clocks = { elapsed: () => performance.now(), calendar: () => Date.now() }

/** It is first due after `firstMs`. */
export function createTimer(everyMs: number, { elapsed }: Clocks, firstMs = 0) {
  let dueAt = elapsed() + firstMs
  return {
    left: () => Math.max(0, dueAt - elapsed()),
    /** Makes it due after its interval from now on, or after the given pause. */
    restart(pauseMs = everyMs) {
      dueAt = elapsed() + pauseMs
    },
  }
}

/** The rest of an interval since a stored moment. A moment in the future was stored by a wrong clock: nothing is left. */
export function leftSince(
  moment: number | null,
  everyMs: number,
  { calendar }: Pick<Clocks, 'calendar'>,
): number {
  const age = moment === null ? everyMs : calendar() - moment
  return age < 0 ? 0 : Math.max(0, everyMs - age)
}

export interface Step {
  timer: ReturnType<typeof createTimer>
  /** Whether it stays due until it restarts its timer itself. */
  isBitByBit?: true
  run(): Promise<unknown>
}

/** A step with a constant interval, due at once. */
export function every(ms: number, clocks: Clocks, run: Step['run']): Step {
  return { timer: createTimer(ms, clocks), run }
}

/** Runs the first due step; returns the milliseconds until the next. Its timer restarts before: a step that fails must not block others. */
export async function runDue(steps: readonly Step[]): Promise<number> {
  const due = steps.find(({ timer }) => timer.left() === 0)
  if (due === undefined) return Math.min(...steps.map(({ timer }) => timer.left()))
  if (due.isBitByBit !== true) due.timer.restart()
  await due.run()
  return 0
}
