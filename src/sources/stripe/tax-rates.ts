/** Percentages of Stripe's tax rates. The percentage of a rate cannot change, so each rate is fetched once. */
import { type Urgency, unlessMissing } from '../source.ts'
import type { BillingCalls } from './billing-calls.ts'
import { unlessForbidden } from './failures.ts'
import { type InvoiceHead, readAs, taxRateShape } from './invoice-shape.ts'
import { percentageOf, rateIds } from './map-invoice.ts'

export class TaxRates {
  private readonly calls: BillingCalls
  private readonly percentages = new Map<string, number | null>()
  private readonly fetching = new Map<string, Promise<number | null | undefined>>()

  constructor(calls: BillingCalls) {
    this.calls = calls
  }

  /** Percentages that are known now, by tax rate id. Null: Stripe does not know the rate. */
  get known(): ReadonlyMap<string, number | null> {
    return this.percentages
  }

  /**
   * Whether every tax rate of the invoice is known, or forbidden to the
   * key. The percentage of a forbidden rate is computed from the amounts.
   */
  areSettled(invoice: InvoiceHead): boolean {
    return rateIds(invoice).every(id => this.isSettled(id))
  }

  async learn(invoice: InvoiceHead, urgency: Urgency): Promise<void> {
    for (const id of rateIds(invoice)) {
      if (this.isSettled(id)) continue
      const fetching = this.fetching.get(id) ?? this.fetch(id, urgency)
      this.fetching.set(id, fetching)
      const percentage = await fetching.finally(() => this.fetching.delete(id))
      if (percentage === undefined) this.calls.recordForbidden('taxRates')
      else {
        this.calls.recordAllowed('taxRates')
        this.percentages.set(id, percentage)
      }
    }
  }

  private isSettled(id: string): boolean {
    return this.percentages.has(id) || this.calls.isForbidden('taxRates')
  }

  /** Resolves with null for a rate that Stripe does not know, and with undefined when the key may not read tax rates. */
  private fetch(id: string, urgency: Urgency): Promise<number | null | undefined> {
    const { calls } = this
    const fetching = calls.call('tax_rates', urgency, async () => {
      const rate = await unlessForbidden(calls.stripe.taxRates.retrieve(id))
      return rate === null ? undefined : percentageOf(readAs(taxRateShape, rate, 'a tax rate'))
    })
    return unlessMissing(fetching)
  }
}
