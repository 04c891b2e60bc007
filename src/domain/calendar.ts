/** Functions for calendar days, written YYYY-MM-DD. Days are in UTC unless a time zone is given. */

export const dayMs = 86_400_000

/** Returns false for a day that does not exist. JavaScript would read 31 February as a day of March. */
export function isCalendarDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const day = new Date(`${text}T00:00:00.000Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

/** First moment of the year 0000, and first moment after the year 9999. A moment between the two is written with a year of four digits. */
const writableMs = { from: Date.parse('0000-01-01'), before: Date.parse('9999-12-31') + dayMs }

/**
 * Reads an ISO 8601 time with a time zone and returns milliseconds. Returns null for any other text, and for a day or time that does not
 * exist.
 */
export function readMoment(text: string): number | null {
  const [, day = '', rest = ''] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))$/.exec(text) ?? []
  if (!isCalendarDay(day)) return null
  const moment = Date.parse(day + rest)
  // A time zone can move a moment out of the years with four digits. Comparisons with NaN are false, so a time that does not exist gives
  // null.
  return moment >= writableMs.from && moment < writableMs.before ? moment : null
}

/** Returns the UTC day of a moment in milliseconds. */
export function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10)
}

/** Returns a function that converts a moment in milliseconds to its day in the time zone. */
export function dayIn(timeZone: string): (moment: number) => string {
  if (timeZone === 'UTC') return dayOf
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', numberingSystem: 'latn' },
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
  })
  return moment => {
    const parts = format.formatToParts(moment).map(({ type, value }) => [type, value])
    const { year = '', month, day } = Object.fromEntries(parts) as Record<string, string>
    return `${year.padStart(4, '0')}-${month}-${day}`
  }
}

export function isTimeZone(name: string): boolean {
  try {
    dayIn(name)
    return true
  } catch {
    return false
  }
}

/** Returns the UTC month, YYYY-MM, of a moment in milliseconds. */
export function monthOf(moment: number): string {
  return dayOf(moment).slice(0, 7)
}

export function lastDayOf(month: string): string {
  const day = new Date(`${month}-01`)
  day.setUTCMonth(day.getUTCMonth() + 1, 0)
  return dayOf(day.getTime())
}

/** Returns the day that lies `count` working days after `day`. Monday to Friday are working days, even on public holidays. */
export function addWorkingDays(day: string, count: number): string {
  let at = Date.parse(day)
  for (let remaining = count; remaining > 0; ) {
    at += dayMs
    const weekday = new Date(at).getUTCDay()
    if (weekday !== 0 && weekday !== 6) remaining--
  }
  return dayOf(at)
}
