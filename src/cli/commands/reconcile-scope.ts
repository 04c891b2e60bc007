/** The scope of a reconciliation, from its flags. */
import { dayMs, dayOf, isCalendarDay, lastDayOf } from '../../calendar.ts'
import type { Scope as ReconcileScope } from '../../checks/read-pairs.ts'
import { isCustomerId } from '../../invoice.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'
import { createTimeZone, type TimeZone } from './time-zone.ts'

export interface Scope extends ReconcileScope {
  zone: TimeZone
}

export function readScope(options: Record<string, unknown>): Scope {
  const { customer = null, month, timezone = 'UTC' } = options as Record<string, string | undefined>
  let { from, to } = options as Record<string, string | undefined>
  if (customer !== null && !isCustomerId(customer))
    throw new CliError(`--customer must be an ID like cus_PeR0ABnnQ5iOEe, not '${printable(customer)}'.`)
  const zone = createTimeZone(timezone)
  if (month !== undefined) {
    if (from !== undefined || to !== undefined)
      throw new CliError('Use --month, or --from and --to, not both.')
    ;({ from, to } = daysOf(month))
  }
  for (const [name, day] of Object.entries({ '--from': from, '--to': to }))
    if (day !== undefined && !isCalendarDay(day))
      throw new CliError(`${name} must be a calendar day, written YYYY-MM-DD, not '${printable(day)}'.`)
  if (from !== undefined && to !== undefined && from > to)
    throw new CliError(`--from ${from} is after --to ${to}: there is no day between them.`)
  const isBounded = from !== undefined || to !== undefined
  return {
    customer,
    days: isBounded ? { from: from ?? '0000-01-01', to: to ?? '9999-12-31' } : null,
    from: from === undefined ? Number.NEGATIVE_INFINITY : zone.startOf(from),
    to: to === undefined ? Number.POSITIVE_INFINITY : zone.startOf(nextDay(to)),
    zone,
  }
}

/** The first day of a month and its last. */
export function daysOf(month: string): { from: string; to: string } {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
    throw new CliError(`--month must be a calendar month, written YYYY-MM, not '${printable(month)}'.`)
  return { from: `${month}-01`, to: lastDayOf(month) }
}

export function nextDay(day: string): string {
  return dayOf(Date.parse(day) + dayMs)
}
