/** Calls of the connector to an upstream: at a bounded rate, retried as the upstream asks. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ExponentialBackoff,
  handleWhen,
  retry,
  TaskCancelledError,
  TimeoutStrategy,
  timeout,
} from 'cockatiel'
import { SourceError } from '../sources.ts'
import type { Failures } from './failures.ts'

export interface Pace {
  perSecond: number
  /** How often a call that failed is tried again. */
  attempts: number
  /** In milliseconds, for the whole of one answer: a client may bound only the silence between two bytes. */
  patience: number
}

export type PacedCall = <T>(call: () => Promise<T>) => Promise<T>

/** Every call waits for its turn, and again for as long as the upstream asked for after a refusal. */
export function createPacedCall({ perSecond, attempts, patience }: Pace, failures: Failures): PacedCall {
  const waitForTurn = createTurns(perSecond)
  let pausedUntil = 0
  const bounded = timeout(patience, TimeoutStrategy.Aggressive)
  const policy = retry(
    handleWhen(error => error instanceof TaskCancelledError || failures.mayPass(error)),
    {
      maxAttempts: attempts,
      backoff: new ExponentialBackoff({ initialDelay: 200, maxDelay: 5_000 }),
    },
  )
  return async call => {
    try {
      return await policy.execute(async () => {
        await sleep(Math.max(0, pausedUntil - Date.now()))
        await waitForTurn()
        try {
          return await bounded.execute(call)
        } catch (error) {
          const pause = failures.pauseFor(error)
          if (pause > 0) pausedUntil = Math.max(pausedUntil, Date.now() + pause)
          throw error
        }
      })
    } catch (error) {
      if (error instanceof TaskCancelledError)
        throw new SourceError('timeout', `${failures.name} did not answer in time`)
      throw failures.explain(error)
    }
  }
}

/** Evenly spaced, so that no second ever holds more than it may. */
function createTurns(perSecond: number): () => Promise<void> {
  const spacing = 1000 / perSecond
  let next = 0
  return async () => {
    const now = performance.now()
    const turn = Math.max(now, next)
    next = turn + spacing
    if (turn > now) await sleep(turn - now)
  }
}
