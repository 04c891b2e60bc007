/** Billed amounts by currency and month. Pure. */
import type { CustomerSummary, Invoice } from '../sdk/client.ts'

/** Drafts are not billed yet. Void invoices are no longer billed. */
export const isBilled = ({ status }: Pick<Invoice, 'status'>) => status !== 'draft' && status !== 'void'

/** Returns amounts by currency, then by month (YYYY-MM), in the order of the months. */
export function billedByMonth({ currencies }: CustomerSummary) {
  const totals = new Map<string, Map<string, number>>()
  for (const { currency, months } of currencies) {
    const sums = new Map<string, number>()
    for (const { month, total_cents } of months.filter(isBilled))
      sums.set(month, (sums.get(month) ?? 0) + total_cents)
    if (sums.size > 0) totals.set(currency, sums)
  }
  return totals
}

/** Returns every month from the first to the last, including months without an invoice. */
export function monthsBetween(months: readonly string[]): string[] {
  const sorted = months.toSorted()
  const last = sorted.at(-1) ?? ''
  const all = sorted.slice(0, 1)
  const day = new Date(`${all[0]}-01`)
  while ((all.at(-1) ?? last) < last) {
    day.setUTCMonth(day.getUTCMonth() + 1)
    all.push(day.toISOString().slice(0, 7))
  }
  return all
}
