import { observationStamp } from './store.ts'

/**
 * The moments at which the platform is asked: they only rise, within this process and beyond what was stored before, so
 * that a clock that is set back cannot make new observations look old.
 */
export type NextStamp = () => number

export function createStamps(lastObserved: number, now: () => number = Date.now): NextStamp {
  let last = lastObserved
  return () => {
    last = Math.max(observationStamp(now()), last + 1)
    return last
  }
}
