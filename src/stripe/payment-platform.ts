/** What the API asks of Stripe while a client waits: the lines of an invoice, and its PDF. */
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
import Stripe from 'stripe'
import { fetchPdf, type PdfGuard } from '../pdf/fetch-pdf.ts'
import { type PaymentPlatform, SourceError } from '../sources.ts'
import { createStripe, isStripesOwn, readRetryAfter, type StripeOptions } from './client.ts'
import { listLines, readLinePage } from './list-lines.ts'
import { explainFailure } from './paced-calls.ts'

/** Below what a client of ours waits for lines, so that a silent Stripe counts as a failure of Stripe's. */
const linesTimeout = 700
const retrieveTimeout = 5_000

/** After so many failures in a row Stripe is left alone for a while, and is then asked again. */
const failuresToBreak = 5
const breakFor = 10_000

/** Stripe's PDFs, and the pages that lead to them. */
const pdfOrigins = ['https://pay.stripe.com', 'https://invoice.stripe.com', 'https://files.stripe.com']

export function createPaymentPlatform(options: StripeOptions): PaymentPlatform {
  const stripe = createStripe(options)
  const guarded = guardCalls()
  const guard = pdfGuard(options.base)

  return {
    async fetchLines(invoiceId, signal) {
      return guarded(linesTimeout, given =>
        listLines(async params => {
          given.throwIfAborted()
          signal.throwIfAborted()
          return readLinePage(
            await stripe.invoices.listLineItems(invoiceId, params, { timeout: linesTimeout }),
          )
        }),
      ).catch(error => {
        if (error instanceof SourceError && error.failure === 'missing') return null
        throw error
      })
    },
    async openPdf(invoiceId, signal) {
      const { invoice_pdf } = await guarded(retrieveTimeout, () =>
        stripe.invoices.retrieve(invoiceId, {}, { timeout: retrieveTimeout }),
      )
      // A new address for every download: it holds a secret, and it expires.
      if (!invoice_pdf) throw new SourceError('not_ready', 'Stripe has no PDF of this invoice yet')
      return fetchPdf(invoice_pdf, guard, signal)
    },
  }
}

/** A base that is not Stripe's own is a sandbox: it serves its PDFs itself, from this machine. */
function pdfGuard(base: string): PdfGuard {
  return isStripesOwn(base)
    ? { origins: pdfOrigins, allowPrivate: false }
    : { origins: [new URL(base).origin], allowPrivate: true }
}

/** The signal is aborted when the time for the whole call is over, whatever of it is still to come. */
type Guarded = <T>(limit: number, call: (given: AbortSignal) => Promise<T>) => Promise<T>

/**
 * Fails at once while Stripe asked for a pause, or failed too often; says in our words why a call failed. Stripe's client
 * bounds only the silence between two bytes, so that the time of the whole is bounded here.
 */
function guardCalls(): Guarded {
  const breaker: CircuitBreakerPolicy = circuitBreaker(handleWhen(isStripesFault), {
    halfOpenAfter: breakFor,
    breaker: new ConsecutiveBreaker(failuresToBreak),
  })
  let pausedUntil = 0
  return async (limit, call) => {
    if (Date.now() < pausedUntil) throw new SourceError('failed', 'Stripe asked for a pause')
    const bounded = timeout(limit, TimeoutStrategy.Aggressive)
    try {
      return await breaker.execute(() => bounded.execute(({ signal }) => call(signal)))
    } catch (error) {
      if (error instanceof Stripe.errors.StripeRateLimitError)
        pausedUntil = Math.max(
          pausedUntil,
          Date.now() + readRetryAfter(error.headers?.['retry-after'], Date.now()),
        )
      if (error instanceof TaskCancelledError)
        throw new SourceError('timeout', 'Stripe did not answer in time')
      if (error instanceof BrokenCircuitError)
        throw new SourceError('failed', 'Stripe failed too often and is left alone for a while')
      throw explainFailure(error)
    }
  }
}

/** Anything but an answer that says there is no such thing. */
function isStripesFault(error: unknown): boolean {
  return !(error instanceof Stripe.errors.StripeInvalidRequestError && error.statusCode === 404)
}
