/** Our clock against another: signatures of webhooks are refused when the two are minutes apart. */
import type { Reporter } from './findings.ts'

const warnAboveMs = 5_000
/** As far as Stripe's client lets a signature's moment be from ours. */
const failAboveMs = 300_000

/** A moment by somebody else's clock, and ours before and after it was asked for. All in milliseconds. */
export interface ClockReading {
  theirs: number
  before: number
  after: number
  /** How coarse theirs is: a Date header tells whole seconds. */
  grain: number
}

/** Null when the header tells nothing. */
export function readDateHeader(date: string | undefined, before: number, after: number): ClockReading | null {
  const theirs = Date.parse(date ?? '')
  return Number.isNaN(theirs) ? null : { theirs, before, after, grain: 1_000 }
}

/** A clock that is simulated is expected to differ, and says nothing of ours. */
export function checkClock(
  report: Reporter,
  whose: 'Stripe' | 'InvoiceXpress' | 'the database',
  reading: ClockReading | null,
  isSimulated = false,
): void {
  const check = `Clock: ${whose}`
  if (reading === null) {
    report.skip(check, 'no answer contained the time')
    return
  }
  const { theirs, before, after, grain } = reading
  const skew = theirs + grain / 2 - (before + after) / 2
  const distance = `${tellSpan(Math.abs(skew))} ${skew > 0 ? 'behind' : 'ahead of'} it`
  const next = 'Let NTP or chrony set the clock of this machine.'
  if (Math.abs(skew) <= warnAboveMs) report.ok(check, 'the clock of this machine is within 5 s of it')
  else if (isSimulated)
    report.skip(check, `a sandbox has a simulated clock; the clock of this machine is ${distance}`)
  else if (Math.abs(skew) <= failAboveMs) report.warn(check, `the clock of this machine is ${distance}`, next)
  else
    report.fail(
      check,
      `the clock of this machine is ${distance}${whose === 'Stripe' ? beyondTolerance : ''}`,
      next,
    )
}

const beyondTolerance = ': webhooks are refused when the clocks differ by more than 300 s'

export function tellSpan(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000)
  if (seconds < 120) return `${seconds} s`
  if (seconds < 2 * 3_600) return `${Math.round(seconds / 60)} min`
  return seconds < 2 * 86_400 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}
