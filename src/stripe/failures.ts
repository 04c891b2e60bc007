/** What Stripe's client throws, told apart. */
import Stripe from 'stripe'
import { SourceError } from '../sources.ts'
import type { Failures } from '../upstream/failures.ts'
import { readRetryAfter } from '../upstream/retry-after.ts'

export const stripeFailures: Failures = {
  name: 'Stripe',
  mayPass,
  /** Not an answer that is about the question, the key or how often it was asked: then Stripe works. */
  isFault: error => {
    if (!(error instanceof Stripe.errors.StripeError) || error.statusCode === undefined) return true
    return error.statusCode < 400 || error.statusCode >= 500
  },
  pauseFor: error =>
    error instanceof Stripe.errors.StripeRateLimitError
      ? readRetryAfter(error.headers?.['retry-after'], Date.now())
      : 0,
  explain,
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

function explain(error: unknown): SourceError {
  if (error instanceof SourceError) return error
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
