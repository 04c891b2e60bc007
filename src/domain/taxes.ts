/** Lists the taxes of an invoice by rate, for bookkeeping. Pure functions. */
import type { TaxOfRate } from './expanded.ts'
import type { Invoice, InvoiceDocument } from './invoice.ts'
import { writeAmount } from './money.ts'
import type { PaymentFacts } from './payment.ts'

/**
 * Returns the certified document's taxes when they are known and in the invoice's currency. Otherwise returns the payment platform's taxes.
 * Null when neither is known.
 */
export function taxesOf(
  { currency }: Pick<Invoice, 'currency'>,
  facts: PaymentFacts | null,
  document: InvoiceDocument | null,
): readonly TaxOfRate[] | null {
  const certified = document?.currency === currency ? document.taxes : null
  return certified ?? facts?.taxes ?? null
}

/** Returns the sum of the tax bases of all rates. Null when a base is unknown. */
export function sumBases(taxes: readonly TaxOfRate[] | null): number | null {
  if (taxes === null) return null
  return taxes.reduce<number | null>(
    (sum, { base_cents }) => (sum === null || base_cents === null ? null : sum + base_cents),
    0,
  )
}

/** Writes rate, base and tax of each rate, such as "23% 90.00 20.70; 6% 10.00 0.60". A question mark stands for an unknown value. */
export function writeTaxes(taxes: readonly TaxOfRate[] | null, currency: string): string | null {
  if (taxes === null) return null
  const write = (amount: number | null) => (amount === null ? '?' : writeAmount(amount, currency))
  const parts = taxes.map(
    ({ rate_percent, base_cents, tax_cents }) =>
      `${rate_percent ?? '?'}% ${write(base_cents)} ${write(tax_cents)}`,
  )
  return parts.join('; ')
}
