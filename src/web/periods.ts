/** Accounting periods. Pure. */

export interface Period {
  name: 'thisMonth' | 'lastMonth' | 'thisQuarter' | 'lastQuarter'
  from: string
  to: string
}

/** `today` is YYYY-MM-DD. */
export function periodsOf(today: string): Period[] {
  const [year = 0, month = 1] = today.split('-').map(Number)
  const quarter = month - ((month - 1) % 3)
  return [
    { name: 'thisMonth', ...span(year, month, 1) },
    { name: 'lastMonth', ...span(year, month - 1, 1) },
    { name: 'thisQuarter', ...span(year, quarter, 3) },
    { name: 'lastQuarter', ...span(year, quarter - 3, 3) },
  ]
}

/** Returns a range of whole months. Month 0 or less belongs to the year before. */
function span(year: number, month: number, months: number): { from: string; to: string } {
  const dayOf = (month: number, day: number) =>
    new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10)
  return { from: dayOf(month, 1), to: dayOf(month + months, 0) }
}
