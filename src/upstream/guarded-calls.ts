/** Calls of the API to an upstream, while a client waits: bounded in time, and not made when they are bound to fail. */
import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
  TaskCancelledError,
  TimeoutStrategy,
  timeout,
} from 'cockatiel'
import { SourceError } from '../sources.ts'
import type { Failures } from './failures.ts'

/** After so many failures in a row an upstream is left alone for a while, and is then asked again. */
const failuresToBreak = 5
const breakFor = 10_000

/** The signal is aborted when the time for the whole call is over, whatever of it is still to come. */
export type GuardedCall = <T>(limit: number, call: (given: AbortSignal) => Promise<T>) => Promise<T>

/** Fails at once while the upstream asked for a pause, or failed too often; says in our words why a call failed. */
export function createGuardedCall(failures: Failures): GuardedCall {
  const { name } = failures
  const breaker: CircuitBreakerPolicy = circuitBreaker(
    handleWhen(error => error instanceof TaskCancelledError || failures.isFault(error)),
    { halfOpenAfter: breakFor, breaker: new ConsecutiveBreaker(failuresToBreak) },
  )
  let pausedUntil = 0
  return async (limit, call) => {
    if (performance.now() < pausedUntil) throw new SourceError('failed', `${name} asked for a pause`)
    const bounded = timeout(limit, TimeoutStrategy.Aggressive)
    try {
      return await breaker.execute(() => bounded.execute(({ signal }) => call(signal)))
    } catch (error) {
      const pause = failures.pauseFor(error)
      if (pause > 0) pausedUntil = Math.max(pausedUntil, performance.now() + pause)
      if (error instanceof TaskCancelledError)
        throw new SourceError('timeout', `${name} did not answer in time`)
      if (error instanceof BrokenCircuitError)
        throw new SourceError('failed', `${name} failed too often and is left alone for a while`)
      throw failures.explain(error)
    }
  }
}
