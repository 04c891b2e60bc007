/** The domain: the taxes of an invoice by rate, as books want them. Pure. */
import type { TaxOfRate } from './expanded.ts'
import type { Invoice, InvoiceDocument } from './invoice.ts'
import { writeAmount } from './money.ts'
import type { PaymentFacts } from './payment.ts'

/** As certified, where the document is in the invoice's currency; else as the payment platform has them; null when neither knows. */
export function taxesOf(
  { currency }: Pick<Invoice, 'currency'>,
  facts: PaymentFacts | null,
  document: InvoiceDocument | null,
): readonly TaxOfRate[] | null {
  const certified = document?.currency === currency ? document.taxes : null
  return certified ?? facts?.taxes ?? null
}

/** What is taxed, at all rates together; null when a base is not known. */
export function sumBases(taxes: readonly TaxOfRate[] | null): number | null {
  if (taxes === null) return null
  return taxes.reduce<number | null>(
    (sum, { base_cents }) => (sum === null || base_cents === null ? null : sum + base_cents),
    0,
  )
}

/** Rate, base and tax of each, as in "23% 90.00 20.70; 6% 10.00 0.60"; `?` is not known. */
export function writeTaxes(taxes: readonly TaxOfRate[] | null, currency: string): string | null {
  if (taxes === null) return null
  const write = (amount: number | null) => (amount === null ? '?' : writeAmount(amount, currency))
  const parts = taxes.map(
    ({ rate_percent, base_cents, tax_cents }) =>
      `${rate_percent ?? '?'}% ${write(base_cents)} ${write(tax_cents)}`,
  )
  return parts.join('; ')
}
