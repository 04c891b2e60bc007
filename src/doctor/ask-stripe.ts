/** Single questions to Stripe, each answered in time or given up; whatever comes of it is told, not thrown. */
import type Stripe from 'stripe'
import { createStripe, type StripeOptions } from '../stripe/client.ts'
import { stripeFailures } from '../stripe/failures.ts'
import { type ClockReading, readDateHeader } from './check-clock.ts'
import { answerLimitMs, within } from './findings.ts'

/** What Stripe said, in the three ways that matter. */
export type Asked<T = object> =
  | { kind: 'answer'; body: T }
  | { kind: 'refused'; status: 401 | 403 }
  | { kind: 'failed'; why: string }

export interface StripeAsker {
  ask<T extends object>(call: (stripe: Stripe) => Promise<T>): Promise<Asked<T>>
  /** As the first answer told it, be it a refusal; null before. */
  readonly clock: ClockReading | null
}

export function createAsker(options: StripeOptions): StripeAsker {
  const stripe = createStripe({ ...options, timeoutMs: answerLimitMs })
  let clock: ClockReading | null = null
  return {
    get clock() {
      return clock
    },
    async ask(call) {
      const before = Date.now()
      const note = (headers: Record<string, string> | undefined) => {
        clock ??= readDateHeader(headers?.date, before, Date.now())
      }
      try {
        const body = await within(answerLimitMs + 1_000, () => call(stripe))
        note((body as { lastResponse?: { headers?: Record<string, string> } }).lastResponse?.headers)
        return { kind: 'answer', body }
      } catch (error) {
        const { statusCode, headers } = error as { statusCode?: number; headers?: Record<string, string> }
        note(headers)
        if (statusCode === 401 || statusCode === 403) return { kind: 'refused', status: statusCode }
        return { kind: 'failed', why: stripeFailures.explain(error).message }
      }
    },
  }
}
