/**
 * Sums of a customer's invoices by currency, status and UTC month of issue. A customer with counters has them kept as one
 * text, of which a transaction replaces the months it touched; for any other they are made of the rows at each request.
 */
import { dayMs, lastDayOf, monthOf } from '../../calendar.ts'
import type { InvoiceStatus, InvoiceSum } from '../../invoice.ts'

/** A sum is in two parts: SQLite's integers end at 2^63, and JSON's here at 2^53. */
type SumRow = [
  currency: string,
  status: InvoiceStatus,
  month: string,
  count: number,
  high: number,
  low: number,
]

const lowBits = 24

const monthOfIssue = {
  sqlite: "strftime('%Y-%m', issued_at / 1000.0, 'unixepoch')",
  postgres: "to_char(to_timestamp(issued_at / 1000.0::float8) AT TIME ZONE 'UTC', 'YYYY-MM')",
}

/** The columns of a statement that is grouped by the first three, in the order of a `SumRow`. */
export function sumColumns(engine: keyof typeof monthOfIssue): string {
  return `currency, status, ${monthOfIssue[engine]} AS month, count(*) AS n, sum(total_cents >> ${lowBits}) AS high, sum(total_cents & ${2 ** lowBits - 1}) AS low`
}

/** A UTC month, from its first moment up to, not including, the next one's. */
interface Month {
  name: string
  from: number
  before: number
}

/** The months of some days, counted from the epoch. */
export function monthsOf(days: Iterable<number>): Month[] {
  const names = new Set(Array.from(days, day => monthOf(day * dayMs)))
  return Array.from(names, name => ({
    name,
    from: Date.parse(`${name}-01`),
    before: Date.parse(lastDayOf(name)) + dayMs,
  }))
}

/** The text to keep, with some months made anew: `made` is the rows of statements, each as JSON. */
export function replaceMonths(
  kept: string | null,
  months: readonly Month[],
  made: readonly (string | null)[],
): string {
  const others = parse(kept).filter(([, , month]) => !months.some(({ name }) => name === month))
  return write([...others, ...made.flatMap(parse)])
}

/** The text to keep, all of it made anew. */
export function keepSums(made: string | null): string {
  return write(parse(made))
}

export function readSums(text: string | null): InvoiceSum[] {
  return parse(text).map(([currency, status, month, count, high, low]) => ({
    currency,
    status,
    month,
    count,
    total_cents: (BigInt(high) << BigInt(lowBits)) + BigInt(low),
  }))
}

function parse(text: string | null): SumRow[] {
  return JSON.parse(text ?? '[]')
}

function write(rows: readonly SumRow[]): string {
  return `[${rows
    .map(row => JSON.stringify(row))
    .sort()
    .join(',')}]`
}
