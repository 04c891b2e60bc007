/**
 * Calls that the API makes to an upstream while a client waits. Each has a timeout. A circuit breaker refuses calls that would probably
 * fail.
 */
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

/** Default `Retry-After` after a failure that may pass. */
const retryAfterSeconds = 5

/** Largest share of time that this process may be busy during a call. Above it, the process cannot judge whether the upstream was late. */
const busyShare = 0.9

/** The upstream did not answer in time, although this process was not too busy to listen. */
class Overdue extends Error {}

/** The call timed out while this process was busy, so perhaps this process was late and not the upstream. */
class TooBusy extends Error {}

/** The client that waited for the answer has disconnected. */
class Unwanted extends Error {}

/**
 * Returns a function that calls one upstream. It fails at once during a pause and while the circuit breaker is open. Its errors are in
 * our own words.
 */
export function createGuardedCall(failures: Failures) {
  const upstream = new GuardedUpstream(failures)
  /**
   * Calls the upstream. The signal `given` is aborted at the timeout. The signal `wanted` is aborted when the client no longer waits. A
   * failure after that does not count against the upstream.
   */
  const guarded = <T>(timeoutMs: number, wanted: AbortSignal, call: (given: AbortSignal) => Promise<T>) =>
    upstream.call(timeoutMs, wanted, call)
  return Object.assign(guarded, { refusal: () => upstream.refusal() })
}

class GuardedUpstream {
  private readonly failures: Failures
  private readonly breaker: CircuitBreakerPolicy
  private pausedUntil = 0
  private brokenUntil = 0

  constructor(failures: Failures) {
    this.failures = failures
    const { name: system } = failures
    this.breaker = circuitBreaker(
      handleWhen(error => {
        if (error instanceof TooBusy || error instanceof Unwanted || error instanceof HeldBack) return false
        return error instanceof Overdue || failures.isFault(error)
      }),
      { halfOpenAfter: breakMs, breaker: new ConsecutiveBreaker(failuresToBreak) },
    )
    this.breaker.onBreak(() => {
      this.brokenUntil = Date.now() + breakMs
      breakerTurned.publish({ system, isOpen: true })
    })
    this.breaker.onReset(() => breakerTurned.publish({ system, isOpen: false }))
  }

  async call<T>(
    timeoutMs: number,
    wanted: AbortSignal,
    call: (given: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { failures } = this
    const began = performance.now()
    const publish = (outcome: UpstreamOutcome, seconds = (performance.now() - began) / 1000) =>
      upstreamCalled.publish({ system: failures.name, outcome, seconds })
    const refused = this.refusal()
    if (refused !== null) {
      publish('not_asked', 0)
      throw refused
    }
    try {
      const answer = await this.breaker.execute(() => attempt(failures, timeoutMs, wanted, call))
      publish('ok')
      return answer
    } catch (error) {
      const explained = this.explain(error)
      const isAsked = !(error instanceof BrokenCircuitError || error instanceof HeldBack)
      if (!(error instanceof Unwanted))
        publish(isAsked ? outcomeOf(explained, failures.pauseFor(error)) : 'not_asked')
      throw explained
    }
  }

  /** Returns the error with which a call would fail at once. Null when a call would be sent. */
  refusal(): SourceError | null {
    const { pausedUntil } = this
    if (isAhead(pausedUntil, longestPauseMs))
      return new SourceError('failed', `${this.failures.name} asked for a pause`, {
        retryAfter: secondsUntil(pausedUntil),
      })
    const isBroken = this.breaker.state === CircuitState.Open && isAhead(this.brokenUntil, breakMs)
    return isBroken ? this.circuitOpenError() : null
  }

  private explain(error: unknown): SourceError {
    const { failures } = this
    const { name } = failures
    if (error instanceof Overdue || error instanceof TooBusy)
      return new SourceError('timeout', `${name} did not answer in time`, { retryAfter: retryAfterSeconds })
    if (error instanceof Unwanted) return new SourceError('failed', `${name} was no longer asked`)
    if (error instanceof BrokenCircuitError) return this.circuitOpenError()
    if (error instanceof HeldBack) return error
    const pause = failures.pauseFor(error)
    const { failure, message, retryAfter } = failures.explain(error)
    if (pause > 0) return new SourceError(failure, message, { retryAfter: this.startPause(pause) })
    const wait = failures.mayPass(error) ? retryAfterSeconds : retryAfter
    return new SourceError(failure, message, wait === undefined ? {} : { retryAfter: wait })
  }

  /** Starts a pause. A longer pause that is already running stays. Returns the remaining seconds. */
  private startPause(ms: number): number {
    const before = isAhead(this.pausedUntil, longestPauseMs) ? this.pausedUntil : 0
    this.pausedUntil = Math.max(before, Date.now() + ms)
    return secondsUntil(this.pausedUntil)
  }

  private circuitOpenError(): SourceError {
    return new SourceError(
      'failed',
      `${this.failures.name} failed too often and gets no requests for a while`,
      {
        retryAfter: Math.min(secondsUntil(this.brokenUntil), breakMs / 1000),
      },
    )
  }
}

/** Makes one call within its timeout. The class of a rejection tells whether the upstream, this process or the client was the cause. */
async function attempt<T>(
  failures: Failures,
  timeoutMs: number,
  wanted: AbortSignal,
  call: (given: AbortSignal) => Promise<T>,
): Promise<T> {
  const before = performance.eventLoopUtilization()
  try {
    return await timeout(timeoutMs, TimeoutStrategy.Aggressive).execute(({ signal }) => call(signal))
  } catch (error) {
    const explained = failures.explain(error)
    if (error instanceof TaskCancelledError || explained.failure === 'timeout')
      throw performance.eventLoopUtilization(before).utilization > busyShare ? new TooBusy() : new Overdue()
    if (explained instanceof HeldBack) throw explained
    throw wanted.aborted ? new Unwanted() : error
  }
}

/** Whether `moment` is in the future by at most `longest` milliseconds. A later moment comes from a clock that was set back. */
function isAhead(moment: number, longest: number): boolean {
  const remaining = moment - Date.now()
  return remaining > 0 && remaining <= longest
}

/** Returns at least 1, because a client would retry at once after a `Retry-After` of 0. */
function secondsUntil(moment: number): number {
  return Math.max(1, Math.ceil((moment - Date.now()) / 1000))
}
