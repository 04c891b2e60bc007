/** Days of a time zone. */
import { dayIn, dayMs, isTimeZone } from '../../calendar.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

export type TimeZone = ReturnType<typeof createTimeZone>

export function createTimeZone(name: string) {
  if (!isTimeZone(name))
    throw new CliError(
      `--timezone must be the name of a time zone, such as Europe/Lisbon or UTC, not '${printable(name)}'.`,
    )
  const dayOf = dayIn(name)
  // Without a format, which takes longer to make than a store to open.
  if (name === 'UTC')
    return {
      dayOf,
      startOf: (day: string) => Date.parse(`${day}T00:00:00Z`),
      writeMoment: (moment: string) => moment.slice(0, 19).replace('T', ' '),
    }
  const times = new Intl.DateTimeFormat('en-GB', { timeZone: name, timeStyle: 'medium' })
  return {
    /** YYYY-MM-DD of a moment in milliseconds. */
    dayOf,
    /** Beginning of a day, YYYY-MM-DD, in milliseconds. */
    startOf(day: string) {
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
    /** A moment, ISO 8601, as YYYY-MM-DD HH:MM:SS of its clocks. */
    writeMoment(text: string) {
      const moment = Date.parse(text)
      return `${dayOf(moment)} ${times.format(moment)}`
    },
  }
}
