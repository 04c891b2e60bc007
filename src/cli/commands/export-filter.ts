/** Filters of an export. They are the API's filters, given as flags. */
import { Option } from 'commander'
import { ApiError } from '../../domain/errors.ts'
import { invoiceStatuses } from '../../domain/invoice.ts'
import type { InvoiceFilters } from '../../domain/list-query.ts'
import { readFilterTexts } from '../../http/read-filter.ts'
import type { InvoiceFilter } from '../../store/store.ts'
import { CliError } from '../terminal/cli-error.ts'
import { printable } from '../terminal/table.ts'
import { checkCustomer, createTimeZone, type DayFlags, nextDay, readDays } from './reconcile-scope.ts'

/**
 * Flags by parameter of the API, in the help's order. The type names every parameter, so a new parameter without a flag does not compile.
 */
export const filterFlags: Readonly<Record<'customer' | keyof InvoiceFilters | 'month' | 'timezone', Option>> =
  {
    customer: new Option(
      '--customer <id>',
      'only the invoices of this customer, cus_… (repeat the option for more customers)',
    ).argParser<string[]>((value, before = []) => [...before, value]),
    status: new Option('--status <status>', `only invoices with this status: ${invoiceStatuses.join(', ')}`),
    ix_status: new Option(
      '--ix-status <status>',
      'only invoices whose document has this status, for example settled',
    ),
    month: new Option('--month <month>', 'only invoices issued in this month, YYYY-MM'),
    date_from: new Option('--from <day>', 'only invoices issued on this day or later, YYYY-MM-DD'),
    date_to: new Option('--to <day>', 'only invoices issued on this day or earlier, YYYY-MM-DD'),
    timezone: new Option(
      '--timezone <name>',
      'the time zone of --month, --from and --to, for example Europe/Lisbon (default: TIME_ZONE)',
    ),
    q: new Option('--q <text>', "only invoices that the API's search finds for this text"),
  }

/** Values of the command's flags, under commander's names of the flags. */
export interface FilterOptions extends Readonly<Record<string, unknown>>, DayFlags {
  customer?: string[]
  timezone?: string
}

export function readExportScope(options: FilterOptions, defaultZone = 'UTC') {
  const { customer: customers = null, timezone = defaultZone } = options
  customers?.forEach(checkCustomer)
  const { from, to } = readDays(options)
  const zone = createTimeZone(timezone)
  const filter = readFlags({ ...options, from, to })
  return {
    zone,
    walk: {
      customers,
      ...filter,
      // `readFlags` counts days in UTC. Here the same days begin at midnight of the given time zone.
      issued_from: filter.issued_from === undefined ? undefined : zone.startOf(from ?? ''),
      issued_before: filter.issued_before === undefined ? undefined : zone.startOf(nextDay(to ?? '')),
    },
  }
}

function readFlags(options: Readonly<Record<string, unknown>>): InvoiceFilter {
  const { customer, month, timezone, ...parameters } = filterFlags
  const texts: Partial<Record<string, string>> = {}
  for (const [name, flag] of Object.entries(parameters)) {
    const text = options[flag.attributeName()]
    if (typeof text === 'string') texts[name] = text
  }
  try {
    return readFilterTexts(texts)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { message } = error
    const param = error.param as keyof InvoiceFilters
    const given = printable(texts[param] ?? '')
    throw new CliError(
      message
        .replace(param, filterFlags[param].long ?? '')
        .replace(/\.$/, given.length > 60 ? '.' : `, not '${given}'.`),
    )
  }
}
