/** Days of a time zone. */
import { dayIn, dayOf } from '../../calendar.ts'
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

export function createTimeZone(name: string): TimeZone {
  const { dayOf, timeOf, startOf } = name === 'UTC' ? utc : openPlace(name)
  let last = { moment: '', text: '' }
  return {
    dayOf,
    startOf,
    writeMoment(moment) {
      // The rows of an invoice's lines have one moment.
      if (moment !== last.moment) last = { moment, text: timeOf(Date.parse(moment)) }
      return last.text
    },
  }
}

/** `timeOf` writes a moment in milliseconds as YYYY-MM-DD HH:MM:SS. */
interface Clocks extends Pick<TimeZone, 'dayOf' | 'startOf'> {
  timeOf(moment: number): string
}

/** Without a format, which takes longer to make than a store to open. */
const utc: Clocks = {
  dayOf,
  timeOf: moment => new Date(moment).toISOString().slice(0, 19).replace('T', ' '),
  startOf: day => Date.parse(`${day}T00:00:00Z`),
}

function openPlace(name: string): Clocks {
  const dayOf = openDays(name)
  const times = new Intl.DateTimeFormat('en-GB', { timeZone: name, timeStyle: 'medium' })
  return {
    dayOf,
    timeOf: moment => `${dayOf(moment)} ${times.format(moment)}`,
    startOf(day) {
      // No clock is more than a day away from UTC's. Midnight itself may be left out where clocks go forward then.
      const noon = Date.parse(`${day}T12:00:00Z`)
      let [before, from] = [noon - 2 * 86_400_000, noon + 2 * 86_400_000]
      while (from - before > 1) {
        const middle = Math.floor((before + from) / 2)
        if (dayOf(middle) >= day) from = middle
        else before = middle
      }
      return from
    },
  }
}

function openDays(timeZone: string): Clocks['dayOf'] {
  try {
    return dayIn(timeZone)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new CliError(
      `--timezone must be the name of a time zone, such as Europe/Lisbon or UTC, not '${printable(timeZone)}'.`,
    )
  }
}
