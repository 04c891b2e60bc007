/** The connector's calls to Stripe: paced, and without what the key was just refused. */
import type Stripe from 'stripe'
import { createPacedCall, type Pace } from '../calls/paced-calls.ts'
import type { Urgency } from '../source.ts'
import { createStripe, type StripeOptions } from './client.ts'
import { forbidden, stripeFailures, unlessForbidden } from './failures.ts'

/** A key that may not read tax rates or payments is not tried with each invoice. */
const forbiddenForMs = 10 * 60_000

/** What is told of a permission that the key lacks. */
const lacks = {
  taxRates: `${forbidden('tax_rate')}; where a rate is not known, the percentage is computed from the amounts`,
  payments:
    'Stripe refused the key to read the payments of invoices; which payments paid an invoice is not known',
}
type Lacking = keyof typeof lacks

type Query = Record<string, string | number | null | undefined>

export class BillingCalls {
  readonly stripe: Stripe
  private readonly paced: ReturnType<typeof createPacedCall>
  /** When Stripe last refused the key to read it. */
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

  noteForbidden(what: Lacking): void {
    this.forbiddenAt.set(what, performance.now())
  }

  noteAllowed(what: Lacking): void {
    this.forbiddenAt.delete(what)
  }

  /** The permissions that the key lacks, as sentences; null when none was missing. */
  describeLacks(): string | null {
    const lacking = (Object.keys(lacks) as Lacking[]).filter(what => this.forbiddenAt.has(what))
    return lacking.length === 0 ? null : lacking.map(what => lacks[what]).join('. ')
  }

  /** The client's own methods turn every decimal into an object, which is slow for long lists, or fail where one is odd. */
  getPlain<T>(path: string, query: Query): Promise<T> {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
    return this.stripe.rawRequest('GET', `${path}?${new URLSearchParams(given as [string, string][])}`)
  }

  /** An invoice, or a list of them, with its customer and its payments; without these when the key may not read them. */
  async getExpanded<T>(path: string, prefix: '' | 'data.', query: Query = {}): Promise<T> {
    const withCustomer = { ...query, 'expand[0]': `${prefix}customer` }
    if (this.isForbidden('payments')) return this.getPlain(path, withCustomer)
    const whole = await unlessForbidden(
      this.getPlain<T>(path, { ...withCustomer, 'expand[1]': `${prefix}payments` }),
    )
    if (whole !== null) {
      this.noteAllowed('payments')
      return whole
    }
    // It may lack another permission too: then this fails by it.
    const rest = await this.getPlain<T>(path, withCustomer)
    this.noteForbidden('payments')
    return rest
  }
}
