/** Builds the JSON texts that the API sends. The texts of an invoice are built when it is saved, so no request serializes an invoice. */
import type { ExactStatement } from './account.ts'
import type { CustomerBalance, ExactBalance, OpenSum } from './balance.ts'
import {
  downloadPath,
  type Invoice,
  type InvoiceSum,
  invoiceStatuses,
  type Line,
  type LinesSource,
  onlyLine,
  onlySummary,
} from './invoice.ts'
import { countPages } from './list-query.ts'

export function serializeSummary(invoice: Invoice): string {
  return JSON.stringify(onlySummary(invoice))
}

export function serializeLines(lines: readonly Line[]): string {
  return JSON.stringify(lines.map(onlyLine))
}

/**
 * Builds the JSON text of the detail. `summary` comes from `serializeSummary`. `lines` comes from `serializeLines`, or is null when
 * unavailable. `expansions` comes from `expandOne`.
 * The summary is not parsed. Its fields are cut out and put into the detail's order. A field begins at `,"name":`, which cannot occur
 * inside a JSON string, because quotes have a backslash there.
 */
export function serializeDetail(summary: string, lines: string | null, expansions = ''): string {
  const at = (field: string) => summary.indexOf(field)
  const upToNumber = summary.slice(0, at(',"display_name":'))
  const display = summary.slice(at(',"display_name":'), at(',"customer_name":'))
  const customer = summary.slice(at(',"customer_id":'), at(',"customer_email":'))
  const issued = summary.slice(at(',"issued_at":'), at(',"ix_created_at":'))
  const fromSubtotal = summary.slice(at(',"subtotal_cents":'), -1)

  const customerId = customer.slice(',"customer_id":"'.length, -1)
  const id = summary.slice('{"id":"'.length, at(',"number":') - 1)
  const hasDocument = !summary.includes(',"ix_id":null')
  const ix = hasDocument ? `"${downloadPath(customerId, id, 'ix')}"` : 'null'
  const payments = downloadPath(customerId, id, 'payments')
  const source: LinesSource = lines === null ? 'none' : 'payments'
  return `${upToNumber}${customer}${display}${issued}${fromSubtotal},"lines":${lines ?? '[]'},"lines_source":"${source}","downloads":{"ix":${ix},"payments":"${payments}"}${expansions}}`
}

/** Builds the JSON text of one page of the list. `summaries` holds texts of `serializeSummary`, joined by commas. */
export function serializePage(
  { summaries, page, total }: { summaries: string; page: number; total: number },
  pageSize: number,
): string {
  return `{"invoices":[${summaries}],"page":${page},"page_size":${pageSize},"total":${total},"total_pages":${countPages(total, pageSize)},"source":"synchronized_records"}`
}

/**
 * Builds the JSON text of a customer's sums by hand, because JSON.stringify rejects bigints. `open` holds the sums of the customer's open
 * invoices.
 */
export function serializeSums(
  sums: readonly InvoiceSum[],
  credited: ReadonlyMap<string, bigint>,
  open: readonly OpenSum[],
): string {
  const remaining = new Map<string, bigint>()
  for (const { currency, to_pay_cents } of open)
    remaining.set(currency, (remaining.get(currency) ?? 0n) + to_pay_cents)
  const inOrder = sums.toSorted(
    (a, b) =>
      compare(a.currency, b.currency) ||
      compare(a.month, b.month) ||
      invoiceStatuses.indexOf(a.status) - invoiceStatuses.indexOf(b.status),
  )
  const currencies = [...Map.groupBy(inOrder, ({ currency }) => currency)].map(([currency, of]) => {
    const statuses = invoiceStatuses.flatMap(status => {
      const months = of.filter(sum => sum.status === status)
      const count = months.reduce((n, sum) => n + sum.count, 0)
      const total_cents = months.reduce((n, sum) => n + sum.total_cents, 0n)
      return count === 0 ? [] : `{${writeSum({ status, count, total_cents })}}`
    })
    const months = of.map(sum => `{"month":"${sum.month}",${writeSum(sum)}}`)
    return `{"currency":${JSON.stringify(currency)},"remaining_cents":${remaining.get(currency) ?? 0},"credited_cents":${credited.get(currency) ?? 0},"statuses":[${statuses.join(',')}],"months":[${months.join(',')}]}`
  })
  return `{"currencies":[${currencies.join(',')}]}`
}

export function serializeBalance(
  { day, invoices, more }: Omit<CustomerBalance, 'currencies'>,
  balances: readonly ExactBalance[],
): string {
  return `{"day":"${day}","currencies":[${balances.map(writeExact).join(',')}],"invoices":${JSON.stringify(invoices)},"more":${more}}`
}

export function serializeStatement(statement: ExactStatement): string {
  return writeExact(statement)
}

/** Returns a value as JSON text. A bigint keeps all its digits. */
function writeExact(value: unknown): string {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map(writeExact).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${writeExact(member)}`,
  )
  return `{${members.join(',')}}`
}

function writeSum({ status, count, total_cents }: Pick<InvoiceSum, 'status' | 'count' | 'total_cents'>) {
  return `"status":"${status}","count":${count},"total_cents":${total_cents}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
