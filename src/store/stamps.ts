import { observationStamp } from './store.ts'

/**
 * Moments of questions: they only rise, beyond those stored before, so that a clock set back makes no observation look old. While
 * they are ahead of the calendar, they go on at its pace: what is between two of them is the time that passed.
 */
export type NextStamp = () => number

export function createStamps(
  lastObserved: number,
  now: () => number = Date.now,
  elapsed: () => number = () => performance.now(),
): NextStamp {
  let last = lastObserved
  let askedAt = elapsed()
  return () => {
    const passed = observationStamp(Math.floor(elapsed() - askedAt))
    askedAt += passed / observationStamp(1)
    last = Math.max(observationStamp(now()), last + Math.max(passed, 1))
    return last
  }
}
