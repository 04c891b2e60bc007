/** Calls that the connector makes to an upstream. They keep the upstream's rate limits and are retried after a failure that may pass. */
import {
  ExponentialBackoff,
  handleWhen,
  retry,
  TaskCancelledError,
  TimeoutStrategy,
  timeout,
} from 'cockatiel'
import { SourceError, type Urgency } from '../source.ts'
import { HeldBack, overdue } from './exchange.ts'
import { type Failures, outcomeOf } from './failures.ts'
import { type UpstreamOutcome, upstreamCalled, upstreamWaiting } from './telemetry.ts'
import { type Rates, Throttle } from './throttle.ts'

export interface Pace extends Rates {
  attempts: number
  /**
   * Timeout of one call with its whole answer, in milliseconds. The HTTP client's own timeout may limit only the silence between two bytes.
   */
  patienceMs: number
}

/** `endpoint` names the kind of request, for an upstream with a rate limit for each kind. */
export type PacedCall = <T>(
  call: () => Promise<T>,
  asking?: { endpoint?: string; urgency?: Urgency },
) => Promise<T>

/**
 * Returns a function that makes paced calls. Its `refusal` stops calls that already have a slot but are not sent yet when a pause
 * begins.
 */
export function createPacedCall(pace: Pace, failures: Failures) {
  const throttle = new Throttle(pace)
  // By default, cockatiel aborts its signal after every call. No call uses the signal, and aborting it costs more than the rest of the
  // policy.
  const bounded = timeout(pace.patienceMs, { strategy: TimeoutStrategy.Aggressive, abortOnReturn: false })
  const policy = retry(
    handleWhen(error => error instanceof TaskCancelledError || failures.mayPass(error)),
    {
      maxAttempts: pace.attempts,
      backoff: new ExponentialBackoff({ initialDelay: 200, maxDelay: 5_000 }),
    },
  )
  const system = failures.name

  async function callInSlot<T>(call: () => Promise<T>, endpoint: string, urgency: Urgency): Promise<T> {
    for (;;) {
      upstreamWaiting.publish({ system, change: 1 })
      await throttle.take(endpoint, urgency)
      upstreamWaiting.publish({ system, change: -1 })
      const began = performance.now()
      const count = (outcome: UpstreamOutcome) =>
        upstreamCalled.publish({ system, outcome, seconds: (performance.now() - began) / 1000 })
      try {
        const answer = await bounded.execute(call)
        count('ok')
        return answer
      } catch (error) {
        const explained = failures.explain(error)
        if (explained instanceof HeldBack) continue
        const pauseMs = failures.pauseFor(error)
        throttle.pause(pauseMs)
        count(error instanceof TaskCancelledError ? 'timeout' : outcomeOf(explained, pauseMs))
        throw error
      } finally {
        throttle.done()
      }
    }
  }

  const paced: PacedCall = async (call, { endpoint = '', urgency = 'soon' } = {}) => {
    try {
      return await policy.execute(() => callInSlot(call, endpoint, urgency))
    } catch (error) {
      throw error instanceof TaskCancelledError ? overdue(system) : failures.explain(error)
    }
  }
  const refusal = () =>
    throttle.isPaused() ? new SourceError('failed', `${system} asked for a pause`) : null
  return Object.assign(paced, { refusal })
}
