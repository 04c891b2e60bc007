/** Days as a place counts them. */
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'

export interface TimeZone {
  /** YYYY-MM-DD of a moment in milliseconds. */
  dayOf(moment: number): string
  /** When a day, YYYY-MM-DD, begins there, in milliseconds. */
  startOf(day: string): number
  /** A moment, ISO 8601, as YYYY-MM-DD HH:MM:SS of its clocks. */
  writeMoment(moment: string): string
}

export function createTimeZone(name: string): TimeZone {
  const format = openFormat(name)
  const clock = openFormat(name, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
  function dayOf(moment: number): string {
    const parts = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, value]))
    return `${parts.year?.padStart(4, '0')}-${parts.month}-${parts.day}`
  }
  let last = { moment: '', text: '' }
  function writeTime(time: number): string {
    if (name === 'UTC') return new Date(time).toISOString().slice(0, 19).replace('T', ' ')
    const parts = Object.fromEntries(clock.formatToParts(time).map(({ type, value }) => [type, value]))
    return `${parts.year?.padStart(4, '0')}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}:${parts.second}`
  }
  return {
    dayOf,
    writeMoment(moment) {
      // The rows of an invoice's lines have one moment.
      if (moment !== last.moment) last = { moment, text: writeTime(Date.parse(moment)) }
      return last.text
    },
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

function openFormat(timeZone: string, more: Intl.DateTimeFormatOptions = {}): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      ...more,
    })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new CliError(
      `--timezone must be the name of a time zone, such as Europe/Lisbon or UTC, not '${printable(timeZone)}'.`,
    )
  }
}
