/** Calls to Stripe at a bounded rate, retried as Stripe asks. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ExponentialBackoff,
  handleWhen,
  retry,
  TaskCancelledError,
  TimeoutStrategy,
  timeout,
} from 'cockatiel'
import Stripe from 'stripe'
import { SourceError } from '../sources.ts'
import { isStripesOwn, readRetryAfter } from './client.ts'

export interface Pace {
  /** Below the 25 a second that Stripe allows for one endpoint. */
  perSecond: number
  /** How often a call that failed is tried again. */
  attempts: number
  /** In milliseconds, for the whole of one answer: Stripe's client bounds only the silence between two bytes. */
  patience: number
}

const stripesPace: Pace = { perSecond: 20, attempts: 6, patience: 60_000 }
/** A sandbox has limits only when it is told to. */
const sandboxPace: Pace = { perSecond: 10_000, attempts: 6, patience: 60_000 }

export function paceFor(base: string): Pace {
  return isStripesOwn(base) ? stripesPace : sandboxPace
}

export type PacedCall = <T>(call: () => Promise<T>) => Promise<T>

/** Every call waits for its turn, and again for as long as Stripe asked for after a refusal. */
export function createPacedCall({ perSecond, attempts, patience }: Pace): PacedCall {
  const waitForTurn = createTurns(perSecond)
  let pausedUntil = 0
  const bounded = timeout(patience, TimeoutStrategy.Aggressive)
  const policy = retry(handleWhen(mayPass), {
    maxAttempts: attempts,
    backoff: new ExponentialBackoff({ initialDelay: 200, maxDelay: 5_000 }),
  })
  return async call => {
    try {
      return await policy.execute(async () => {
        await sleep(Math.max(0, pausedUntil - Date.now()))
        await waitForTurn()
        try {
          return await bounded.execute(call)
        } catch (error) {
          if (error instanceof Stripe.errors.StripeRateLimitError)
            pausedUntil = Math.max(
              pausedUntil,
              Date.now() + readRetryAfter(error.headers?.['retry-after'], Date.now()),
            )
          throw error
        }
      })
    } catch (error) {
      throw explainFailure(error)
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

/** A refusal of the key or of the question will be the same next time; anything else may pass. */
function mayPass(error: unknown): boolean {
  if (error instanceof SourceError) return error.failure !== 'missing'
  if (!(error instanceof Stripe.errors.StripeError)) return true
  return (
    error.statusCode === undefined ||
    error.statusCode === 429 ||
    error.statusCode === 409 ||
    error.statusCode >= 500
  )
}

/** Stripe's words stay out: they may hold an address or a part of a key. */
export function explainFailure(error: unknown): SourceError {
  if (error instanceof SourceError) return error
  if (error instanceof TaskCancelledError) return new SourceError('timeout', 'Stripe did not answer in time')
  if (!(error instanceof Stripe.errors.StripeError))
    return new SourceError('failed', 'Stripe answered what cannot be read')
  if (error.statusCode === 404 || error.code === 'resource_missing')
    return new SourceError('missing', 'Stripe does not know it')
  if (error.statusCode === 401 || error.statusCode === 403)
    return new SourceError(
      'failed',
      'Stripe refused the key: it must be valid, and may read invoices, customers, events and tax rates',
    )
  if (
    error instanceof Stripe.errors.StripeConnectionError &&
    /timeout|timed out|aborted/i.test(error.message)
  )
    return new SourceError('timeout', 'Stripe did not answer in time')
  return new SourceError('failed', `Stripe answered ${error.type} ${error.statusCode ?? ''}`.trim())
}
