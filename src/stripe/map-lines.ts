/** Maps Stripe's line items to ours. Pure. */
import type { Line } from '../invoice.ts'
import type { LineItem } from './invoice-shape.ts'
import { divide, ratioPercent } from './map-invoice.ts'

export function mapLine(source: LineItem): Line {
  // Before the API version of December 2025 a line had no subtotal of its own.
  const subtotal_cents = source.subtotal ?? source.amount
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

/** A whole number for people: money is never computed from it. */
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

/** A decimal as a fraction, from text or from an object with a text form; null when it is none. */
function readDecimal(value: unknown): { numerator: bigint; denominator: bigint } | null {
  const [, whole, places = ''] = /^(-?\d+)(?:\.(\d+))?$/.exec(String(value)) ?? []
  if (whole === undefined) return null
  return { numerator: BigInt(whole + places), denominator: 10n ** BigInt(places.length) }
}
