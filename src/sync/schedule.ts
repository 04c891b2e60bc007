/** When what is due again and again. Pauses run on a clock that nobody sets; only what is stored is told by the calendar. */

export interface Clocks {
  /** In milliseconds, from anywhere; it never goes back. */
  elapsed(): number
  /** In milliseconds since the epoch; it may be set at any time. */
  calendar(): number
}

export const realClocks: Clocks = { elapsed: () => performance.now(), calendar: () => Date.now() }

export interface Timer {
  /** In milliseconds until it is due; 0 when it is. */
  left(): number
  /** Due again when its pause has passed from now on, or the given one. */
  restart(after?: number): void
}

/** `after` is how long until it is due for the first time. */
export function createTimer(every: number, { elapsed }: Clocks, after = 0): Timer {
  let dueAt = elapsed() + after
  return {
    left: () => Math.max(0, dueAt - elapsed()),
    restart(pause = every) {
      dueAt = elapsed() + pause
    },
  }
}

/** What is left of a pause since a stored moment. One that lies ahead was stored by a clock that was wrong: nothing is left. */
export function leftSince(
  moment: number | null,
  every: number,
  { calendar }: Pick<Clocks, 'calendar'>,
): number {
  const age = moment === null ? every : calendar() - moment
  return age < 0 ? 0 : Math.max(0, every - age)
}

export interface Step {
  timer: Timer
  /** Whether it stays due until it restarts its timer itself, as what is done bit by bit. */
  isBitByBit?: true
  run(): Promise<unknown>
}

/**
 * Runs the first of these steps that is due, and says after how many milliseconds to come back. A step's next turn is
 * settled before it runs: one that fails must not keep the others from theirs.
 */
export async function runDue(steps: readonly Step[]): Promise<number> {
  const due = steps.find(({ timer }) => timer.left() === 0)
  if (due === undefined) return Math.min(...steps.map(({ timer }) => timer.left()))
  if (due.isBitByBit !== true) due.timer.restart()
  await due.run()
  return 0
}
