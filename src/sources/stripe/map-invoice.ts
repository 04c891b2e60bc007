/** Maps Stripe's invoices and line items to the types of `domain`. Pure. */
import { invoiceStatuses, isCustomerId, isInvoiceId, type Line } from '../../domain/invoice.ts'
import type { Checked } from '../calls/shape.ts'
import type { BilledInvoice, Unread } from '../platform-invoice.ts'
import type { Refusal } from '../source.ts'
import type { InvoiceHead, LineItem, taxRateShape } from './invoice-shape.ts'

/** Percentages by tax rate id. Null: Stripe does not know the rate. Absent: the rate could not be read. */
export type TaxRates = ReadonlyMap<string, number | null>

/** Returns the ids of tax rates that the invoice names but does not contain. */
export function rateIds(source: InvoiceHead): string[] {
  const rates = (source.total_taxes ?? []).flatMap(({ tax_rate_details }) => tax_rate_details?.tax_rate ?? [])
  return [...new Set(rates)].filter(rate => embeddedRate(source, rate) === null)
}

export function percentOfRate(source: InvoiceHead, rate: string, rates: TaxRates): number | null {
  return embeddedRate(source, rate) ?? rates.get(rate) ?? null
}

export type MappedInvoice = { invoice: BilledInvoice; unread: Pick<Unread, 'customer' | 'rate'> }

export function mapInvoice(
  source: InvoiceHead,
  rates: TaxRates,
  lines: readonly Line[],
): MappedInvoice | { refusal: Refusal } {
  if (!isInvoiceId(source.id)) return { refusal: 'preview' }
  const customer_id = customerOf(source)
  if (customer_id === null) return { refusal: 'no_customer' }
  if (!isCustomerId(customer_id)) return { refusal: 'invalid_customer' }
  const status = invoiceStatuses.find(known => known === source.status)
  if (status === undefined) return { refusal: 'unknown_status' }
  const issuedSeconds = source.effective_at ?? source.status_transitions?.finalized_at ?? source.created
  const tax_cents = taxOf(source)
  const { tax_percent, isRateUnread } = taxPercentOf(source, tax_cents, rates)
  return {
    unread: { customer: readCustomer(source) === null, rate: isRateUnread },
    invoice: {
      id: source.id,
      number: source.number ?? null,
      ...namesOf(source, customer_id),
      customer_id,
      customer_tax_id: taxIdOf(source),
      issued_at: new Date(issuedSeconds * 1000).toISOString(),
      subtotal_cents: addsUp(source, lines) ? subtotalOf(lines) : ownSubtotal(source),
      discount_cents: sumOf(source.total_discount_amounts),
      tax_cents,
      tax_percent,
      total_cents: source.total,
      currency: source.currency,
      status,
    },
  }
}

export function customerOf({ customer }: InvoiceHead): string | null {
  return typeof customer === 'string' ? customer : (customer?.id ?? null)
}

/** Returns null when the customer was deleted, or when the key may not read customers. */
function readCustomer({ customer }: InvoiceHead) {
  return typeof customer !== 'object' || customer === null || customer.deleted ? null : customer
}

function namesOf(source: InvoiceHead, customerId: string) {
  const customer = readCustomer(source)
  const customer_name = source.customer_name ?? null
  const customer_email = source.customer_email ?? null
  const company_name = customer?.business_name ?? null
  const display_name =
    company_name || customer_name || customer?.individual_name || customer_email || customerId
  return { display_name, customer_name, customer_email, company_name }
}

/** Prefers a Portuguese tax number, because the certified document needs one. */
function taxIdOf({ customer_tax_ids }: InvoiceHead): string | null {
  const ids = (customer_tax_ids ?? []).filter(({ value }) => value)
  const best =
    ids.find(({ type }) => type === 'pt_nif') ??
    ids.find(({ type, value }) => type === 'eu_vat' && value?.startsWith('PT')) ??
    ids.find(({ type }) => type === 'eu_vat') ??
    ids[0]
  return best?.value ?? null
}

/** Whether the lines add up to the invoice's total. If not, the invoice changed between two answers, or has a charge that is on no line. */
export function addsUp(source: InvoiceHead, lines: readonly Line[]): boolean {
  const { total_discount_amounts, total_pretax_credit_amounts, total_taxes, amount_shipping, total } = source
  // Stripe's list of credits contains the discounts too. They are left out here, because they are subtracted already.
  const grants = (total_pretax_credit_amounts ?? []).filter(({ type }) => type !== 'discount')
  const added = (total_taxes ?? []).filter(({ tax_behavior }) => tax_behavior === 'exclusive')
  const net = subtotalOf(lines) - sumOf(total_discount_amounts) - sumOf(grants)
  return net + sumOf(added) + (amount_shipping ?? 0) === total
}

function subtotalOf(lines: readonly Line[]): number {
  return lines.reduce((sum, { subtotal_cents }) => sum + subtotal_cents, 0)
}

/**
 * Returns the subtotal before all discounts. Stripe's `subtotal` is after
 * the discounts of single items and before the discounts of the invoice.
 */
function ownSubtotal({ subtotal, discounts, total_discount_amounts }: InvoiceHead): number {
  const idOf = (discount: string | { id: string }) => (typeof discount === 'string' ? discount : discount.id)
  const ofInvoice = new Set((discounts ?? []).map(idOf))
  const ofItems = (total_discount_amounts ?? []).filter(
    ({ discount }) => !ofInvoice.has(idOf(discount ?? '')),
  )
  return subtotal + sumOf(ofItems)
}

function taxOf({ total, total_excluding_tax, total_taxes }: InvoiceHead): number {
  return total_excluding_tax === null || total_excluding_tax === undefined
    ? sumOf(total_taxes)
    : total - total_excluding_tax
}

/** Returns the percentage of the only tax rate. With several rates or an unread rate, the percentage is computed from the amounts. */
function taxPercentOf(source: InvoiceHead, tax: number, rates: TaxRates) {
  const rate = onlyRate(source)
  const percentage = rate === null ? null : percentOfRate(source, rate, rates)
  if (percentage !== null) return { tax_percent: percentage, isRateUnread: false }
  if (tax === 0) return { tax_percent: 0, isRateUnread: false }
  const base = source.total_excluding_tax ?? source.total - tax
  return { tax_percent: base > 0 ? ratioPercent(tax, base) : null, isRateUnread: rate !== null }
}

/** Returns the only tax rate of the invoice. Null without tax, with several rates, or when some tax names no rate. */
function onlyRate({ total_taxes }: InvoiceHead): string | null {
  const [first, ...others] = (total_taxes ?? []).filter(({ amount }) => amount !== 0)
  const rate = first?.tax_rate_details?.tax_rate ?? null
  return others.every(({ tax_rate_details }) => tax_rate_details?.tax_rate === rate) ? rate : null
}

function embeddedRate({ default_tax_rates }: InvoiceHead, id: string): number | null {
  const rate = (default_tax_rates ?? []).find(other => other.id === id)
  return rate === undefined ? null : percentageOf(rate)
}

export function percentageOf({ effective_percentage, percentage }: Checked<typeof taxRateShape>): number {
  return effective_percentage ?? percentage
}

function sumOf(amounts: readonly { amount: number }[] | null | undefined): number {
  return (amounts ?? []).reduce((sum, { amount }) => sum + amount, 0)
}

export function mapLine(source: LineItem): Line {
  const subtotal_cents = lineSubtotalOf(source)
  const discount_cents = (source.discount_amounts ?? []).reduce((sum, { amount }) => sum + amount, 0)
  return {
    id: source.id,
    description: source.description ?? null,
    quantity: quantityOf(source),
    subtotal_cents,
    discount_cents,
    discount_percent: subtotal_cents === 0 ? 0 : ratioPercent(discount_cents, subtotal_cents),
    unit_amount_cents: unitAmountOf(source, subtotal_cents),
    amount_cents: subtotal_cents - discount_cents,
    currency: source.currency,
  }
}

/**
 * Returns a line's amount before discounts, with the tax that the price includes. Stripe does not say whether a line's
 * `subtotal` includes that tax, but its `amount` does. Before the API version of December 2025, a line had no `subtotal`.
 */
function lineSubtotalOf({ subtotal, amount, taxes }: LineItem): number {
  const holdsTax = (taxes ?? []).some(({ tax_behavior }) => tax_behavior === 'inclusive')
  return holdsTax ? amount : (subtotal ?? amount)
}

/** Returns the quantity as a whole number for people. No amount of money is computed from it. */
function quantityOf({ quantity, quantity_decimal }: LineItem): number | null {
  if (quantity !== null && quantity !== undefined) return quantity
  const units = readDecimal(quantity_decimal)
  return units === null ? null : Number(units.numerator / units.denominator)
}

function unitAmountOf({ pricing, quantity, quantity_decimal }: LineItem, subtotal: number): number | null {
  const price = readDecimal(pricing?.unit_amount_decimal)
  if (price !== null) return divide(price.numerator, price.denominator)
  const units = readDecimal(quantity_decimal ?? quantity)
  if (units === null || units.numerator === 0n) return null
  return divide(BigInt(subtotal) * units.denominator, units.numerator)
}

/** Converts a decimal to a fraction. The value is text or an object with a text form. Null when it is no decimal. */
function readDecimal(value: unknown): { numerator: bigint; denominator: bigint } | null {
  const [, whole, places = ''] = /^(-?\d+)(?:\.(\d+))?$/.exec(String(value)) ?? []
  if (whole === undefined) return null
  return { numerator: BigInt(whole + places), denominator: 10n ** BigInt(places.length) }
}

/** Returns `part` as a percentage of `whole`, rounded to two decimal places. */
export function ratioPercent(part: number, whole: number): number {
  if (part === 0) return 0
  return divide(10_000n * BigInt(part), BigInt(whole)) / 100
}

/** Divides and rounds to the nearest whole number, halves away from zero. Floating-point numbers would round some halves wrongly. */
export function divide(dividend: bigint, divisor: bigint): number {
  const half = dividend < 0n === divisor < 0n ? divisor : -divisor
  return Number((2n * dividend + half) / (2n * divisor))
}
