/** Which invoices an export holds: the API's filters as flags. */
import { ApiError } from '../../errors.ts'
import { type FilterParameters, readFilterTexts } from '../../http/read-filter.ts'
import { isCustomerId } from '../../invoice.ts'
import type { InvoiceWalk, WholeFilter } from '../../store/store.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'
import { daysOf, nextDay } from './reconcile-scope.ts'
import { createTimeZone, type TimeZone } from './time-zone.ts'

export interface FilterOptions {
  customer?: string[]
  status?: string
  ixStatus?: string
  from?: string
  to?: string
  month?: string
  timezone?: string
  q?: string
}

export interface ExportScope {
  walk: Omit<InvoiceWalk, 'withLines'>
  zone: TimeZone
}

/** What the API calls a parameter, as a flag. */
const flags: Readonly<Record<keyof FilterParameters, string>> = {
  status: '--status',
  ix_status: '--ix-status',
  date_from: '--from',
  date_to: '--to',
  q: '--q',
}

export function readExportScope(options: FilterOptions): ExportScope {
  const { customer: customers = null, status, ixStatus, month, timezone = 'UTC', q } = options
  for (const customer of customers ?? [])
    if (!isCustomerId(customer))
      throw new CliError(`--customer must be an ID like cus_PeR0ABnnQ5iOEe, not '${printable(customer)}'.`)
  let { from, to } = options
  if (month !== undefined) {
    if (from !== undefined || to !== undefined)
      throw new CliError('Use --month, or --from and --to, not both.')
    ;({ from, to } = daysOf(month))
  }
  const zone = createTimeZone(timezone)
  const filter = readTexts({ status, ix_status: ixStatus, date_from: from, date_to: to, q })
  return {
    zone,
    walk: {
      customers,
      ...filter,
      // The same days as the API's, but as the given place counts them.
      issued_from: filter.issued_from === undefined ? undefined : zone.startOf(from ?? ''),
      issued_before: filter.issued_before === undefined ? undefined : zone.startOf(nextDay(to ?? '')),
    },
  }
}

/** Every parameter is named: one that is added later is missing here, and does not compile. */
type Texts = Record<keyof FilterParameters, string | undefined>

function readTexts(texts: Texts): WholeFilter {
  try {
    return readFilterTexts(texts)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { message } = error
    const param = error.param as keyof FilterParameters
    const given = printable(texts[param] ?? '')
    throw new CliError(
      message.replace(param, flags[param]).replace(/\.$/, given.length > 60 ? '.' : `, not '${given}'.`),
    )
  }
}
