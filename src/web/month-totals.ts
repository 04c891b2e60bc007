/** Billed amounts by currency and month. Pure. */
import type { CustomerSummary, Invoice } from '../client/client.ts'

/** A draft is not billed yet, a cancelled invoice no longer. */
export const isBilled = ({ status }: Pick<Invoice, 'status'>) => status !== 'draft' && status !== 'void'

/** By currency, then by month as in 2026-03, in the order of months. */
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

/** Every month from the first to the last, also without an invoice. */
export function monthsBetween(months: readonly string[]): string[] {
  const sorted = months.toSorted()
  const [first, last] = [sorted[0], sorted.at(-1)]
  if (first === undefined || last === undefined) return []
  const all: string[] = []
  const [year = 0, month = 1] = first.split('-').map(Number)
  for (let index = year * 12 + month - 1; ; index++) {
    const next = `${String(Math.trunc(index / 12)).padStart(4, '0')}-${String((index % 12) + 1).padStart(2, '0')}`
    all.push(next)
    if (next >= last) return all
  }
}
