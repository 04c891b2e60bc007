/** What Stripe's client throws, told apart. */
import type Stripe from 'stripe'
import { SourceError } from '../sources.ts'
import type { Failures } from '../upstream/failures.ts'
import { readRetryAfter } from '../upstream/retry-after.ts'
import { StripeSdk } from './sdk.ts'

export const stripeFailures: Failures = {
  name: 'Stripe',
  mayPass,
  /** Not Stripe's own answer about the question, the key or how often it was asked: with such a one Stripe works. */
  isFault: error => {
    if (!(error instanceof StripeSdk.errors.StripeError) || error.statusCode === undefined) return true
    if (error.statusCode === 404) return error.code !== 'resource_missing'
    return error.statusCode < 400 || error.statusCode >= 500
  },
  pauseFor: error =>
    error instanceof StripeSdk.errors.StripeRateLimitError
      ? readRetryAfter(error.headers?.['retry-after'], Date.now())
      : 0,
  explain,
}

/**
 * What `ask` resolves to, or null when Stripe itself says that there is no object of this very id. Any other 404 is a
 * failure: a gateway or a proxy on the way answers one too, and nothing is deleted on its word.
 */
export async function unlessGone<T>(id: string, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    if (!isMissing(error)) throw error
    const { statusCode, message } = error as Stripe.errors.StripeInvalidRequestError
    if (statusCode === 404 && message.includes(`'${id}'`)) return null
    throw new SourceError(
      'failed',
      'Stripe says of another object than was asked for that it does not know it',
    )
  }
}

/** Stripe's own word that it has no such object, whichever it was. */
function isMissing(error: unknown): boolean {
  return (
    error instanceof StripeSdk.errors.StripeInvalidRequestError &&
    error.code === 'resource_missing' &&
    !isOfOtherMode(error)
  )
}

/** The object is there, but for a live key and not for a test key, or the other way round. */
function isOfOtherMode({ message }: Error): boolean {
  return /similar object exists in (live|test) mode/.test(message)
}

/** The rights that are needed, by the word that Stripe has for each in its refusals; as its dashboard calls them. */
const rights = {
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

/** As in "Having the 'rak_tax_rate_read' permission would allow this request to continue." */
function rightIn(message: string): keyof typeof rights | null {
  const [, right = ''] = /'rak_(\w+)_read'/.exec(message) ?? []
  return Object.hasOwn(rights, right) ? (right as keyof typeof rights) : null
}

/** Null when the key may not read it. */
export async function unlessForbidden<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch(error => {
    if ((error as { statusCode?: number }).statusCode === 403) return null
    throw error
  })
}

/** A refusal of the key or of the question will be the same next time; anything else may pass. */
function mayPass(error: unknown): boolean {
  if (error instanceof SourceError) return error.failure !== 'missing'
  if (!(error instanceof StripeSdk.errors.StripeError)) return true
  const { statusCode } = error
  // A 404 that is not Stripe's own comes from what is in between.
  if (statusCode === 404) return error.code !== 'resource_missing'
  return statusCode === undefined || statusCode === 429 || statusCode === 409 || statusCode >= 500
}

function explain(error: unknown): SourceError {
  if (error instanceof SourceError) return error
  // How the client passes on what our own code says of the connection.
  if (error instanceof StripeSdk.errors.StripeConnectionError && error.detail instanceof SourceError)
    return error.detail
  if (!(error instanceof StripeSdk.errors.StripeError))
    return new SourceError('failed', 'Stripe answered what cannot be read')
  if (isMissing(error)) return new SourceError('missing', 'Stripe does not know it')
  if (isOfOtherMode(error))
    return new SourceError(
      'failed',
      'Stripe has it in the other mode: the key is for test mode and the invoices are live, or the other way round',
    )
  if (error.statusCode === 401)
    return new SourceError('failed', 'Stripe refused the key: it is mistyped, revoked or expired')
  if (error.statusCode === 403) return new SourceError('failed', forbidden(rightIn(error.message)))
  return new SourceError('failed', `Stripe answered ${error.type} ${error.statusCode ?? ''}`.trim())
}
