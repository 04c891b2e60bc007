/** Reads the scope of a reconciliation from its flags, and converts days of a time zone. */
import { dayIn, dayMs, dayOf, isCalendarDay, isTimeZone, lastDayOf } from '../../domain/calendar.ts'
import { isCustomerId } from '../../domain/invoice.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

export type Scope = ReturnType<typeof readScope>

export function readScope(options: Record<string, unknown>, defaultZone = 'UTC') {
  const { customer = null, timezone = defaultZone } = options as Record<string, string | undefined>
  const { from, to } = readDays(options)
  if (customer !== null) checkCustomer(customer)
  const zone = createTimeZone(timezone)
  for (const [name, day] of Object.entries({ '--from': from, '--to': to }))
    if (day !== undefined && !isCalendarDay(day))
      throw new CliError(`${name} must be a calendar day, written YYYY-MM-DD, not '${printable(day)}'.`)
  if (from !== undefined && to !== undefined && from > to)
    throw new CliError(`--from ${from} is after --to ${to}. It must be the same day or an earlier day.`)
  const isBounded = from !== undefined || to !== undefined
  return {
    customer,
    days: isBounded ? { from: from ?? '0000-01-01', to: to ?? '9999-12-31' } : null,
    from: from === undefined ? Number.NEGATIVE_INFINITY : zone.startOf(from),
    to: to === undefined ? Number.POSITIVE_INFINITY : zone.startOf(nextDay(to)),
    zone,
  }
}

export function checkCustomer(id: string): void {
  if (!isCustomerId(id))
    throw new CliError(`--customer must be an ID such as cus_PeR0ABnnQ5iOEe, not '${printable(id)}'.`)
}

export type DayFlags = Partial<Record<'month' | 'from' | 'to', string | undefined>>

/** Returns the days of `--from` and `--to`, or the first and last day of `--month`. */
export function readDays({ month, from, to }: DayFlags): Omit<DayFlags, 'month'> {
  if (month === undefined) return { from, to }
  if (from !== undefined || to !== undefined) throw new CliError('Use --month, or --from and --to, not both.')
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
    throw new CliError(`--month must be a calendar month, written YYYY-MM, not '${printable(month)}'.`)
  return { from: `${month}-01`, to: lastDayOf(month) }
}

export function nextDay(day: string): string {
  return dayOf(Date.parse(day) + dayMs)
}

export function createTimeZone(name: string) {
  if (!isTimeZone(name))
    throw new CliError(
      `--timezone must be the name of a time zone, such as Europe/Lisbon or UTC, not '${printable(name)}'.`,
    )
  const dayOf = dayIn(name)
  // UTC needs no formatter. Creating a formatter takes longer than opening a store.
  if (name === 'UTC')
    return {
      dayOf,
      startOf: (day: string) => Date.parse(`${day}T00:00:00Z`),
      writeMoment: (moment: string) => moment.slice(0, 19).replace('T', ' '),
    }
  const times = new Intl.DateTimeFormat('en-GB', { timeZone: name, timeStyle: 'medium' })
  return {
    /** Returns the day of a moment, which is given in milliseconds. */
    dayOf,
    /** Returns the start of a day in milliseconds. The day is written YYYY-MM-DD. */
    startOf(day: string) {
      // A binary search finds the first moment of the day. No local time is more than a day away from UTC. Midnight may not exist on a day
      // when clocks go forward.
      const noon = Date.parse(`${day}T12:00:00Z`)
      let [before, from] = [noon - 2 * dayMs, noon + 2 * dayMs]
      while (from - before > 1) {
        const middle = Math.floor((before + from) / 2)
        if (dayOf(middle) >= day) from = middle
        else before = middle
      }
      return from
    },
    /** Writes an ISO 8601 moment as local time, YYYY-MM-DD HH:MM:SS. */
    writeMoment(text: string) {
      const moment = Date.parse(text)
      return `${dayOf(moment)} ${times.format(moment)}`
    },
  }
}
