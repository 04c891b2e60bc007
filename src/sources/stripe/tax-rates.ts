/** The percentages of tax rates. A rate's percentage cannot change, so it is fetched once. */
import { type Urgency, unlessMissing } from '../source.ts'
import type { BillingCalls } from './billing-calls.ts'
import { unlessForbidden } from './failures.ts'
import { type InvoiceHead, readAs, taxRateShape } from './invoice-shape.ts'
import { percentageOf, rateIds } from './map-invoice.ts'

export class TaxRates {
  private readonly calls: BillingCalls
  private readonly percentages = new Map<string, number | null>()
  /** Requests under way. */
  private readonly fetching = new Map<string, Promise<number | null | undefined>>()

  constructor(calls: BillingCalls) {
    this.calls = calls
  }

  /** Those that are known by now; null for a rate that Stripe does not know. */
  get known(): ReadonlyMap<string, number | null> {
    return this.percentages
  }

  /** Whether none of its rates needs a request. Without one that the key may not read, the percentage is computed from the amounts. */
  areSettled(invoice: InvoiceHead): boolean {
    return rateIds(invoice).every(id => this.isSettled(id))
  }

  async learn(invoice: InvoiceHead, urgency: Urgency): Promise<void> {
    for (const id of rateIds(invoice)) {
      if (this.isSettled(id)) continue
      const fetching = this.fetching.get(id) ?? this.fetch(id, urgency)
      this.fetching.set(id, fetching)
      const percentage = await fetching.finally(() => this.fetching.delete(id))
      if (percentage === undefined) this.calls.noteForbidden('taxRates')
      else {
        this.calls.noteAllowed('taxRates')
        this.percentages.set(id, percentage)
      }
    }
  }

  private isSettled(id: string): boolean {
    return this.percentages.has(id) || this.calls.isForbidden('taxRates')
  }

  /** Null for a rate that Stripe does not know; undefined when the key may not read it. */
  private fetch(id: string, urgency: Urgency): Promise<number | null | undefined> {
    const { calls } = this
    const fetching = calls.call('tax_rates', urgency, async () => {
      const rate = await unlessForbidden(calls.stripe.taxRates.retrieve(id))
      return rate === null ? undefined : percentageOf(readAs(taxRateShape, rate, 'a tax rate'))
    })
    return unlessMissing(fetching)
  }
}
