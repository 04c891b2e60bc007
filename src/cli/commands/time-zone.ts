/** Days of a time zone. */
import { dayIn, dayMs, dayOf, isTimeZone } from '../../calendar.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

export interface TimeZone {
  /** YYYY-MM-DD of a moment in milliseconds. */
  dayOf(moment: number): string
  /** Beginning of a day, YYYY-MM-DD, in milliseconds. */
  startOf(day: string): number
  /** A moment, ISO 8601, as YYYY-MM-DD HH:MM:SS of its clocks. */
  writeMoment(moment: string): string
}

/** Without a format, which takes longer to make than a store to open. */
const utc: TimeZone = {
  dayOf,
  startOf: day => Date.parse(`${day}T00:00:00Z`),
  writeMoment: moment => moment.slice(0, 19).replace('T', ' '),
}

export function createTimeZone(name: string): TimeZone {
  if (name === 'UTC') return utc
  if (!isTimeZone(name))
    throw new CliError(
      `--timezone must be the name of a time zone, such as Europe/Lisbon or UTC, not '${printable(name)}'.`,
    )
  const dayOf = dayIn(name)
  const times = new Intl.DateTimeFormat('en-GB', { timeZone: name, timeStyle: 'medium' })
  return {
    dayOf,
    startOf(day) {
      // No clock is more than a day away from UTC's. Midnight itself may be left out where clocks go forward then.
      const noon = Date.parse(`${day}T12:00:00Z`)
      let [before, from] = [noon - 2 * dayMs, noon + 2 * dayMs]
      while (from - before > 1) {
        const middle = Math.floor((before + from) / 2)
        if (dayOf(middle) >= day) from = middle
        else before = middle
      }
      return from
    },
    writeMoment(text) {
      const moment = Date.parse(text)
      return `${dayOf(moment)} ${times.format(moment)}`
    },
  }
}
