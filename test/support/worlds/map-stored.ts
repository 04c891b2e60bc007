/** An invoice of Stripe as it is stored. */
import type { Invoice, Line } from '../../../src/domain/invoice.ts'
import { completePaymentFacts } from '../../../src/domain/payment.ts'
import { completeRecord } from '../../../src/sources/platform-invoice.ts'
import type { Refusal } from '../../../src/sources/source.ts'
import { mapInvoice, type TaxRates } from '../../../src/sources/stripe/map-invoice.ts'

/** `previous` is the stored invoice before. */
export function mapStored(
  source: Parameters<typeof mapInvoice>[0],
  rates: TaxRates,
  previous: Invoice | null,
  lines: readonly Line[],
): { invoice: Invoice } | { refusal: Refusal } {
  const mapped = mapInvoice(source, rates, lines)
  if ('refusal' in mapped) return mapped
  const unread = { ...mapped.unread, payments: false }
  const told = { invoice: mapped.invoice, lines, payment: completePaymentFacts(mapped.invoice), unread }
  return { invoice: completeRecord(told, previous && { invoice: previous, payment: null }).invoice }
}
