/** Calendar days, written YYYY-MM-DD, in UTC. */

export const dayMs = 86_400_000

/** Whether there is such a day, so that the 31st of February is not taken for a day of March. */
export function isCalendarDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const day = new Date(`${text}T00:00:00.000Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

/** Of the years of four digits, whose texts are in the order of time. */
const writableMs = { from: Date.parse('0000-01-01'), before: Date.parse('9999-12-31') + dayMs }

/** Milliseconds of an ISO 8601 text with a time zone. Null for any other text, and for a day or a time that does not exist. */
export function readMoment(text: string): number | null {
  const [, day = '', rest = ''] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))$/.exec(text) ?? []
  if (!isCalendarDay(day)) return null
  const moment = Date.parse(day + rest)
  // A time zone can lead out of these years. What is no number is not within them either.
  return moment >= writableMs.from && moment < writableMs.before ? moment : null
}

/** The day of a moment in milliseconds. */
export function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10)
}

/** The day of a moment in milliseconds, in a time zone. */
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

/** The month of a moment, written YYYY-MM. */
export function monthOf(moment: number): string {
  return dayOf(moment).slice(0, 7)
}

export function lastDayOf(month: string): string {
  const day = new Date(`${month}-01`)
  day.setUTCMonth(day.getUTCMonth() + 1, 0)
  return dayOf(day.getTime())
}

/** The working day that is so many after a day. They are Monday to Friday: public holidays count as any other day. */
export function addWorkingDays(day: string, count: number): string {
  let at = Date.parse(day)
  for (let left = count; left > 0; ) {
    at += dayMs
    const weekday = new Date(at).getUTCDay()
    if (weekday !== 0 && weekday !== 6) left--
  }
  return dayOf(at)
}
