import type Stripe from 'stripe'
import { type Failures, readRetryAfter } from '../calls/failures.ts'
import { SourceError, UnfitRecord } from '../source.ts'
import { StripeSdk } from './sdk.ts'

/** Pause after a 429 answer without `Retry-After`, in milliseconds. Stripe counts requests by the second. */
const defaultPauseMs = 1_000

export const stripeFailures: Failures = {
  name: 'Stripe',
  /** A refusal of the key or of the request is permanent. Any other failure may pass. */
  mayPass: error => {
    // A record that fails the checks is set aside at once, and fetched again later.
    if (error instanceof UnfitRecord) return error.mayPass
    if (error instanceof SourceError) return error.failure !== 'missing'
    const status = statusOf(error)
    return status === undefined || status === 409 || status === 429 || status >= 500
  },
  /** A 4xx answer concerns the request, the key or the rate limit. It shows that Stripe works. */
  isFault: error => {
    const status = statusOf(error)
    return status === undefined || status < 400 || status >= 500
  },
  pauseFor: error =>
    error instanceof StripeSdk.errors.StripeRateLimitError
      ? readRetryAfter(error.headers?.['retry-after'], Date.now(), defaultPauseMs)
      : 0,
  explain(error) {
    if (error instanceof SourceError) return error
    // Stripe's client wraps the errors that `createExchange` throws.
    if (error instanceof StripeSdk.errors.StripeConnectionError && error.detail instanceof SourceError)
      return error.detail
    if (!(error instanceof StripeSdk.errors.StripeError))
      return new SourceError('failed', 'Stripe sent an unreadable answer')
    if (isMissing(error)) return new SourceError('missing', 'Stripe does not know it')
    if (isOfOtherMode(error))
      return new SourceError(
        'failed',
        'the key and the record have different modes: one has test mode and the other has live mode',
      )
    if (error.statusCode === 401)
      return new SourceError('failed', 'Stripe refused the key, because it is mistyped, revoked or expired')
    if (error.statusCode === 403) return new SourceError('failed', forbidden(rightIn(error.message)))
    return new SourceError('failed', `Stripe answered ${error.type} ${error.statusCode ?? ''}`.trim())
  },
}

/** Resolves with null only when Stripe itself answers that no object has this id. A gateway's 404 must not delete an invoice. */
export async function unlessGone<T>(id: string, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    if (!isMissing(error)) throw error
    const { statusCode, message } = error as Stripe.errors.StripeInvalidRequestError
    if (statusCode === 404 && message.includes(`'${id}'`)) return null
    throw new SourceError(
      'failed',
      'Stripe answered that an object does not exist, but it is not the requested one',
    )
  }
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof StripeSdk.errors.StripeInvalidRequestError &&
    error.code === 'resource_missing' &&
    !isOfOtherMode(error)
  )
}

/** Whether the key is for test mode and the object exists in live mode, or the reverse. */
function isOfOtherMode({ message }: Error): boolean {
  return /similar object exists in (live|test) mode/.test(message)
}

/**
 * Permissions that the key needs. Each property name is the word in
 * Stripe's error message. Each value is the name in Stripe's dashboard.
 */
export const rights = {
  invoice: 'Invoices',
  customer: 'Customers',
  event: 'Events',
  tax_rate: 'Tax rates',
} as const

export function forbidden(right: keyof typeof rights | null): string {
  const lack =
    right === null
      ? `it lacks one of the permissions ${Object.values(rights).join(', ')}: Read`
      : `it lacks the permission "${rights[right]}: Read"`
  return `Stripe refused the key: ${lack}`
}

/** Finds the permission in a message such as "Having the 'rak_tax_rate_read' permission would allow this request to continue." */
function rightIn(message: string): keyof typeof rights | null {
  const [, right = ''] = /'rak_(\w+)_read'/.exec(message) ?? []
  return Object.hasOwn(rights, right) ? (right as keyof typeof rights) : null
}

export async function unlessForbidden<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch(error => {
    if ((error as { statusCode?: number }).statusCode === 403) return null
    throw error
  })
}

/** Returns the status of Stripe's answer. Undefined without an answer, and for a 404 of a gateway or proxy. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof StripeSdk.errors.StripeError)) return undefined
  return error.statusCode === 404 && error.code !== 'resource_missing' ? undefined : error.statusCode
}
