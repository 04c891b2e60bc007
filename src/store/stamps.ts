import { observationStamp } from './store.ts'

/** Moments of questions: they only rise, beyond those stored before, so that a clock set back makes no observation look old. */
export type NextStamp = () => number

export function createStamps(lastObserved: number, now: () => number = Date.now): NextStamp {
  let last = lastObserved
  return () => {
    last = Math.max(observationStamp(now()), last + 1)
    return last
  }
}
