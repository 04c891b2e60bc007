/** Compares this machine's clock with another clock. Stripe's webhooks are refused when the clocks differ by minutes. */
import type { Report } from './findings.ts'

const warnAboveMs = 5_000
/** Stripe's client refuses a signature whose time differs by more than 5 minutes. */
const failAboveMs = 300_000

/** The time of another clock, and this machine's time before and after that clock was read. All in milliseconds. */
export type ClockReading = NonNullable<ReturnType<typeof readDateHeader>>

/** Returns null when the header holds no valid time. */
export function readDateHeader(date: string | undefined, before: number, after: number) {
  const theirs = Date.parse(date ?? '')
  // `grain` is the resolution of the other clock. A Date header has whole seconds.
  return Number.isNaN(theirs) ? null : { theirs, before, after, grain: 1_000 }
}

/** A sandbox has a simulated clock, which is expected to differ. */
export function checkClock(
  report: Report,
  whose: 'Stripe' | 'InvoiceXpress' | 'the database',
  reading: ClockReading | null,
  isSimulated = false,
): void {
  const clock = report(`Clock: ${whose}`)
  if (reading === null) {
    clock.skip('no answer of this system contained the time')
    return
  }
  const { theirs, before, after, grain } = reading
  const skew = theirs + grain / 2 - (before + after) / 2
  const distance = Math.abs(skew)
  const detail = `the clock of this machine is ${formatSpan(distance)} ${skew > 0 ? 'behind' : 'ahead of'} it`
  const next = 'Set the clock of this machine with NTP or chrony.'
  if (distance <= warnAboveMs) clock.ok('the clock of this machine is within 5 s of it')
  else if (isSimulated) clock.skip(`the clock of a sandbox is simulated; ${detail}`)
  else if (distance <= failAboveMs) clock.warn(detail, next)
  else if (whose !== 'Stripe') clock.fail(detail, next)
  else clock.fail(`${detail}. Webhooks are refused when the clocks differ by more than 300 s`, next)
}

export function formatSpan(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000)
  if (seconds < 120) return `${seconds} s`
  if (seconds < 2 * 3_600) return `${Math.round(seconds / 60)} min`
  return seconds < 2 * 86_400 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}
