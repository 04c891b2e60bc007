/** Reads invoices with all their lines, payments and tax rates, and maps them. */
import type Stripe from 'stripe'
import type { Line } from '../../domain/invoice.ts'
import type { PlatformInvoice } from '../platform-invoice.ts'
import {
  type AnswerPage,
  type InvoiceAnswer,
  type ListFilter,
  type Refusal,
  UnfitRecord,
  type Urgency,
  unlessMissing,
} from '../source.ts'
import type { BillingCalls } from './billing-calls.ts'
import { unlessForbidden, unlessGone } from './failures.ts'
import { type InvoiceHead, invoiceShape, type PaymentItem, readAs } from './invoice-shape.ts'
import { areDistinct, listLines, readLinePage } from './list-lines.ts'
import { listPayments, readPaymentPage } from './list-payments.ts'
import { type MetadataKeys, mapClaim } from './map-claim.ts'
import { addsUp, customerOf, mapInvoice } from './map-invoice.ts'
import { mapPaymentFacts } from './map-payment.ts'
import { checkPage, sortOut } from './read-page.ts'
import { TaxRates } from './tax-rates.ts'

export const pageSize = 100

export class InvoiceReader {
  private readonly calls: BillingCalls
  private readonly keys: MetadataKeys
  private readonly rates: TaxRates

  constructor(calls: BillingCalls, keys: MetadataKeys) {
    this.calls = calls
    this.keys = keys
    this.rates = new TaxRates(calls)
  }

  async list(after: string | null, filter: ListFilter, urgency: Urgency): Promise<AnswerPage> {
    const { customerId, status, from, before } = filter
    const query = {
      ...{ limit: pageSize, starting_after: after },
      ...{ customer: customerId, status, 'created[gte]': from, 'created[lt]': before },
    }
    const page = await this.calls.call('invoices', urgency, async () => {
      const path = '/v1/invoices'
      const answer = await this.calls.getExpanded<Stripe.ApiList<Stripe.Invoice>>(path, 'data.', query)
      const { data, ...rest } = checkPage(answer, after)
      return { ...rest, ...(await sortOut(data, async invoice => checkInvoice(invoice))) }
    })
    const { fitting, nameless, next } = page
    const whole = await sortOut(fitting, checked => this.complete(checked, urgency, false), page.unfit)
    return {
      answers: whole.fitting,
      unfit: whole.unfit,
      nameless,
      next,
      began: fitting[0]?.invoice.created ?? 0,
      reached: fitting.at(-1)?.invoice.created ?? 0,
    }
  }

  /** `isAgain`: this is the second read, because the invoice changed during the first. */
  async retrieve(
    id: string,
    customerId: string | null,
    urgency: Urgency,
    isAgain: boolean,
  ): Promise<InvoiceAnswer> {
    const checked = await this.calls.call('invoice', urgency, () =>
      unlessGone(id, async () => {
        const path = `/v1/invoices/${encodeURIComponent(id)}`
        const answer = await this.calls.getExpanded<Stripe.Invoice>(path, '')
        if (answer.id !== id)
          throw new UnfitRecord('Stripe sent another invoice than the requested one', true)
        // Stripe marks some deleted drafts with `deleted`. Other deleted drafts are not found.
        return (answer as { deleted?: unknown }).deleted === true ? null : checkInvoice(answer)
      }),
    )
    return checked === null
      ? { id, customer_id: customerId, found: null }
      : this.complete(checked, urgency, isAgain)
  }

  /** Requests the lines, payments and tax rates that are not in the invoice's record, and maps the invoice. */
  private async complete(
    { invoice, lines: carried, payments: firstPayments }: CheckedInvoice,
    urgency: Urgency,
    isAgain: boolean,
  ): Promise<InvoiceAnswer> {
    const payments = firstPayments?.has_more
      ? await this.readPayments(invoice.id, firstPayments.payments, urgency)
      : (firstPayments?.payments ?? null)
    if (carried !== null && areDistinct(carried.lines) && this.rates.areSettled(invoice))
      return this.map(invoice, carried.lines, payments)
    const path = `/v1/invoices/${encodeURIComponent(invoice.id)}/lines`
    const list = (after: string | undefined) =>
      this.calls.call('lines', urgency, async () =>
        readLinePage(await this.calls.getPlain(path, { limit: pageSize, starting_after: after })),
      )
    const reading = unlessMissing(listLines(list, carried ?? undefined))
    const [lines] = await Promise.all([reading, this.rates.learn(invoice, urgency)])
    // The lines are gone, or do not add up to the total: the invoice changed after it was read.
    const isOld = lines === null || (carried === null && !addsUp(invoice, lines))
    if (isOld && !isAgain) return this.retrieve(invoice.id, customerOf(invoice), urgency, true)
    if (lines === null) throw new UnfitRecord('Stripe does not know the lines of an invoice')
    return this.map(invoice, lines, payments)
  }

  /**
   * Returns all payments of an invoice. When the key may not read payments, returns only `carried`, the payments in the invoice's record.
   */
  private async readPayments(invoiceId: string, carried: readonly PaymentItem[], urgency: Urgency) {
    const { calls } = this
    if (calls.isForbidden('payments')) return carried
    const list = (after: string | undefined) =>
      calls.call('invoice_payments', urgency, async () => {
        const query = { invoice: invoiceId, limit: pageSize, starting_after: after }
        const answer = await unlessForbidden(calls.getPlain('/v1/invoice_payments', query))
        if (answer !== null) return readPaymentPage(answer)
        calls.recordForbidden('payments')
        return { payments: carried, has_more: false }
      })
    const all = await unlessMissing(listPayments(list))
    if (all === null) throw new UnfitRecord('Stripe does not know the payments of an invoice')
    return all
  }

  private map(
    invoice: InvoiceHead,
    lines: readonly Line[],
    payments: readonly PaymentItem[] | null,
  ): InvoiceAnswer {
    const found = this.mapFound(invoice, lines, payments)
    return { id: invoice.id, customer_id: customerOf(invoice), found }
  }

  private mapFound(
    invoice: InvoiceHead,
    lines: readonly Line[],
    payments: readonly PaymentItem[] | null,
  ): PlatformInvoice | { refusal: Refusal } {
    const { known } = this.rates
    const mapped = mapInvoice(invoice, known, lines)
    if ('refusal' in mapped) return mapped
    return {
      invoice: mapped.invoice,
      lines,
      payment: mapPaymentFacts(invoice, mapped.invoice, known, payments),
      claim: mapClaim(invoice.metadata as Record<string, string> | null | undefined, this.keys),
      unread: { ...mapped.unread, payments: payments === null },
    }
  }
}

type CheckedInvoice = ReturnType<typeof checkInvoice>

/**
 * Returns an invoice that passed the checks. `lines` is null when the record holds
 * only some of its lines. `payments` is null when it holds no list of payments.
 */
function checkInvoice(answer: unknown) {
  const invoice = readAs(invoiceShape, answer, 'an invoice')
  const { lines } = invoice
  const isCut = typeof lines === 'object' && lines !== null && 'has_more' in lines && lines.has_more === true
  const payments = invoice.payments == null ? null : readPaymentPage(invoice.payments)
  return { id: invoice.id, invoice, lines: isCut ? null : readLinePage(lines), payments }
}
