/** The connector's paced calls to Stripe. Data that the key may not read is left out for some minutes. */
import type Stripe from 'stripe'
import { createPacedCall, type Pace } from '../calls/paced-calls.ts'
import type { Urgency } from '../source.ts'
import { createStripe, type StripeOptions } from './client.ts'
import { forbidden, stripeFailures, unlessForbidden } from './failures.ts'

/** Time for which tax rates or payments are not requested after Stripe refused the key to read them. */
const forbiddenForMs = 10 * 60_000

const lacks = {
  taxRates: `${forbidden('tax_rate')}. If a rate is not known, the percentage is computed from the amounts`,
  payments:
    'Stripe refused the key to read the payments of invoices, so the payments of an invoice are not known',
}
type Lacking = keyof typeof lacks

type Query = Record<string, string | number | null | undefined>

export class BillingCalls {
  readonly stripe: Stripe
  private readonly paced: ReturnType<typeof createPacedCall>
  /** Time of Stripe's last refusal, by permission. */
  private readonly forbiddenAt = new Map<Lacking, number>()

  constructor(options: StripeOptions, pace: Pace) {
    this.paced = createPacedCall(pace, stripeFailures)
    this.stripe = createStripe(options, this.paced.refusal)
  }

  call<T>(endpoint: string, urgency: Urgency, work: () => Promise<T>): Promise<T> {
    return this.paced(work, { endpoint, urgency })
  }

  isForbidden(what: Lacking): boolean {
    return performance.now() - (this.forbiddenAt.get(what) ?? Number.NEGATIVE_INFINITY) < forbiddenForMs
  }

  recordForbidden(what: Lacking): void {
    this.forbiddenAt.set(what, performance.now())
  }

  recordAllowed(what: Lacking): void {
    this.forbiddenAt.delete(what)
  }

  /** Describes the permissions that the key lacks. Null when the key lacks none. */
  describeLacks(): string | null {
    const lacking = (Object.keys(lacks) as Lacking[]).filter(what => this.forbiddenAt.has(what))
    return lacking.length === 0 ? null : lacking.map(what => lacks[what]).join('. ')
  }

  /**
   * Sends a raw request. The methods of Stripe's client convert every decimal
   * to an object, which is slow for long lists and fails for an unusual value.
   */
  getPlain<T>(path: string, query: Query): Promise<T> {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
    return this.stripe.rawRequest('GET', `${path}?${new URLSearchParams(given as [string, string][])}`)
  }

  /** Requests an invoice or a list of invoices, with customer and payments. Payments are left out when the key may not read them. */
  async getExpanded<T>(path: string, prefix: '' | 'data.', query: Query = {}): Promise<T> {
    const withCustomer = { ...query, 'expand[0]': `${prefix}customer` }
    if (this.isForbidden('payments')) return this.getPlain(path, withCustomer)
    const whole = await unlessForbidden(
      this.getPlain<T>(path, { ...withCustomer, 'expand[1]': `${prefix}payments` }),
    )
    if (whole !== null) {
      this.recordAllowed('payments')
      return whole
    }
    // The same request without payments. If it succeeds, only the permission to read payments is missing. If another permission is missing,
    // it fails too.
    const rest = await this.getPlain<T>(path, withCustomer)
    this.recordForbidden('payments')
    return rest
  }
}
