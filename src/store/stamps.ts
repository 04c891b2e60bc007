import { observationStamp } from './store.ts'

/**
 * Returns a stamp for the next question to an upstream system. A stamp is a time in microseconds. Stamps only grow, and they begin above
 * all stored stamps. A clock that was set back therefore makes no observation look old. While stamps are ahead of the clock, they grow as
 * fast as time passes, so that the difference of two stamps stays a duration.
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
