/** Calls of the API to an upstream, while a client waits: bounded in time, and not made when they are bound to fail. */
import { performance } from 'node:perf_hooks'
import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
  TaskCancelledError,
  TimeoutStrategy,
  timeout,
} from 'cockatiel'
import { SourceError } from '../source.ts'
import { HeldBack } from './exchange.ts'
import { type Failures, longestPauseMs, outcomeOf } from './failures.ts'
import { breakerTurned, type UpstreamOutcome, upstreamCalled } from './telemetry.ts'

const failuresToBreak = 5
const breakMs = 10_000

/** Default Retry-After, after a failure that may pass. */
const retryAfterSeconds = 5

/** Above this share of its time, this process is too busy to judge whether an upstream was late. */
const busyShare = 0.9

/** The upstream did not answer within the call's time, though this process had time to listen. */
class Overdue extends Error {}

/** The call's time was over, and it may be this process that was late. */
class TooBusy extends Error {}

/** Nobody waits for the answer any more. */
class Unwanted extends Error {}

/** Fails at once while the upstream asked for a pause, or failed too often; errors are in our words. */
export function createGuardedCall(failures: Failures) {
  const { name } = failures
  const breaker: CircuitBreakerPolicy = circuitBreaker(
    handleWhen(error => {
      if (error instanceof TooBusy || error instanceof Unwanted || error instanceof HeldBack) return false
      return error instanceof Overdue || failures.isFault(error)
    }),
    { halfOpenAfter: breakMs, breaker: new ConsecutiveBreaker(failuresToBreak) },
  )
  let pausedUntil = 0
  let brokenUntil = 0
  breaker.onBreak(() => {
    brokenUntil = Date.now() + breakMs
    breakerTurned.publish({ system: name, isOpen: true })
  })
  breaker.onReset(() => breakerTurned.publish({ system: name, isOpen: false }))

  function explain(error: unknown): SourceError {
    if (error instanceof Overdue || error instanceof TooBusy)
      return new SourceError('timeout', `${name} did not answer in time`, { retryAfter: retryAfterSeconds })
    if (error instanceof Unwanted) return new SourceError('failed', `${name} was no longer asked`)
    if (error instanceof BrokenCircuitError) return leftAlone()
    if (error instanceof HeldBack) return error
    const pause = failures.pauseFor(error)
    const pausedFor = isAhead(pausedUntil, longestPauseMs) ? pausedUntil : 0
    if (pause > 0) pausedUntil = Math.max(pausedFor, Date.now() + pause)
    const { failure, message, retryAfter } = failures.explain(error)
    const wait =
      pause > 0 ? secondsUntil(pausedUntil) : failures.mayPass(error) ? retryAfterSeconds : retryAfter
    return new SourceError(failure, message, wait === undefined ? {} : { retryAfter: wait })
  }

  function leftAlone(): SourceError {
    return new SourceError('failed', `${name} failed too often and is left alone for a while`, {
      retryAfter: Math.min(secondsUntil(brokenUntil), breakMs / 1000),
    })
  }

  /** The reason for which a call would fail at once; null when it would be made. */
  function refusal(): SourceError | null {
    if (isAhead(pausedUntil, longestPauseMs))
      return new SourceError('failed', `${name} asked for a pause`, { retryAfter: secondsUntil(pausedUntil) })
    return breaker.state === CircuitState.Open && isAhead(brokenUntil, breakMs) ? leftAlone() : null
  }

  /** The signal is aborted when the time is over. A failure after `wanted` was aborted is not counted against the upstream. */
  async function guarded<T>(
    timeoutMs: number,
    wanted: AbortSignal,
    call: (given: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const refused = refusal()
    if (refused !== null) {
      upstreamCalled.publish({ system: name, outcome: 'not_asked', seconds: 0 })
      throw refused
    }
    const attempt = async () => {
      const before = performance.eventLoopUtilization()
      try {
        return await timeout(timeoutMs, TimeoutStrategy.Aggressive).execute(({ signal }) => call(signal))
      } catch (error) {
        const explained = failures.explain(error)
        if (error instanceof TaskCancelledError || explained.failure === 'timeout')
          throw performance.eventLoopUtilization(before).utilization > busyShare
            ? new TooBusy()
            : new Overdue()
        if (explained instanceof HeldBack) throw explained
        throw wanted.aborted ? new Unwanted() : error
      }
    }
    const began = performance.now()
    const count = (outcome: UpstreamOutcome) =>
      upstreamCalled.publish({ system: name, outcome, seconds: (performance.now() - began) / 1000 })
    try {
      const answer = await breaker.execute(attempt)
      count('ok')
      return answer
    } catch (error) {
      const explained = explain(error)
      const isAsked = !(error instanceof BrokenCircuitError || error instanceof HeldBack)
      if (!(error instanceof Unwanted))
        count(isAsked ? outcomeOf(explained, failures.pauseFor(error)) : 'not_asked')
      throw explained
    }
  }
  return Object.assign(guarded, { refusal })
}

/** A time further ahead than possible comes from a clock that was set back. */
function isAhead(moment: number, longest: number): boolean {
  const left = moment - Date.now()
  return left > 0 && left <= longest
}

/** At least one: after a 0, a client would ask at once. */
function secondsUntil(moment: number): number {
  return Math.max(1, Math.ceil((moment - Date.now()) / 1000))
}
