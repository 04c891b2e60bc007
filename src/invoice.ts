/** The domain: what an invoice is, in the contract's own words. */
import type { Claim } from './document.ts'

export const invoiceStatuses = ['draft', 'open', 'paid', 'void', 'uncollectible'] as const
export type InvoiceStatus = (typeof invoiceStatuses)[number]

/** Those that still change where they come from: what is uncollectible may still be paid. */
export const unsettledStatuses = ['draft', 'open', 'uncollectible'] as const satisfies InvoiceStatus[]

export const syncStates = ['not_synced', 'creating', 'synced', 'failed', 'ignored'] as const
export type SyncState = (typeof syncStates)[number]

/** An invoice summary: an element of the list. */
export interface Invoice {
  id: string
  number: string | null
  display_name: string
  customer_name: string | null
  customer_id: string
  customer_email: string | null
  company_name: string | null
  customer_tax_id: string | null
  issued_at: string
  ix_created_at: string | null
  subtotal_cents: number
  discount_cents: number
  tax_cents: number
  tax_percent: number | null
  total_cents: number
  currency: string
  status: InvoiceStatus
  ix_sync_state: SyncState
  ix_id: number | null
  ix_status: string | null
}

export interface Line {
  id: string
  description: string | null
  quantity: number | null
  subtotal_cents: number
  discount_cents: number
  discount_percent: number
  unit_amount_cents: number | null
  amount_cents: number
  currency: string
}

/** What names a record, and the order in which records are walked through. */
export interface InvoiceKey {
  customer_id: string
  id: string
}

/** What a writer hands to the store. `lines` is null when they are not known, never a part of them. */
export interface InvoiceRecord {
  invoice: Invoice
  lines: readonly Line[] | null
  /** What is recorded of its document at the payment platform; not given for an invoice from elsewhere. */
  claim?: Claim
}

export type LinesSource = 'payments' | 'none'

/** The two systems a PDF can come from, named as in the download paths. */
export const documentKinds = ['ix', 'payments'] as const
export type DocumentKind = (typeof documentKinds)[number]

/** The contract's fields in the contract's order: what is sent, and nothing else. */
export const invoiceFields = [
  'id',
  'number',
  'display_name',
  'customer_name',
  'customer_id',
  'customer_email',
  'company_name',
  'customer_tax_id',
  'issued_at',
  'ix_created_at',
  'subtotal_cents',
  'discount_cents',
  'tax_cents',
  'tax_percent',
  'total_cents',
  'currency',
  'status',
  'ix_sync_state',
  'ix_id',
  'ix_status',
] as const satisfies readonly (keyof Invoice)[]

export const lineFields = [
  'id',
  'description',
  'quantity',
  'subtotal_cents',
  'discount_cents',
  'discount_percent',
  'unit_amount_cents',
  'amount_cents',
  'currency',
] as const satisfies readonly (keyof Line)[]

export const customerIdPattern = '^cus_[A-Za-z0-9_-]{1,251}$'
export const invoiceIdPattern = '^in_[A-Za-z0-9_-]{1,252}$'

const customerId = new RegExp(customerIdPattern)
const invoiceId = new RegExp(invoiceIdPattern)

export function isCustomerId(value: string): boolean {
  return customerId.test(value)
}

export function isInvoiceId(value: string): boolean {
  return invoiceId.test(value)
}

/** In characters. It stands in indexes, whose entries have a limit; documents' statuses are single words. */
export const longestIxStatus = 255

export function isIxStatus(value: string): boolean {
  return value.length <= longestIxStatus || [...value].length <= longestIxStatus
}

export const defaultPageSize = 10
export const maximumPageSize = 50

/** The page asked for: below 1 is the first. The store lowers one above the last to the last. */
export function clampPage(page = 1): number {
  return Math.min(Math.max(page, 1), Number.MAX_SAFE_INTEGER)
}

export function clampPageSize(size = defaultPageSize): number {
  return size < 1 ? defaultPageSize : Math.min(size, maximumPageSize)
}

export function countPages(total: number, pageSize: number): number {
  return Math.ceil(total / pageSize)
}

export function downloadPath(customerId: string, invoiceId: string, kind: DocumentKind): string {
  return `/api/v1/client/${customerId}/invoice/${invoiceId}/${kind}/download`
}

/** The summary as the JSON text that is sent: written once, when the invoice is saved. */
export function writeSummary(invoice: Invoice): string {
  return JSON.stringify(invoice, invoiceFields as unknown as string[])
}

/** The lines as the JSON text that is sent. */
export function writeLines(lines: readonly Line[]): string {
  return JSON.stringify(lines, lineFields as unknown as string[])
}

/**
 * The detail as the JSON text that is sent. `summary` is text of `writeSummary`, `lines` of `writeLines` or null when
 * unavailable. The summary is not parsed: the detail's fields are cut out of it and put into the detail's order. A
 * field begins where `,"name":` stands, and nowhere else: inside a JSON string, a quote has a backslash before it.
 */
export function writeDetail(summary: string, lines: string | null): string {
  const number = summary.indexOf(',"number":')
  const displayName = summary.indexOf(',"display_name":', number)
  const customerName = summary.indexOf(',"customer_name":', displayName)
  const customer = summary.indexOf(',"customer_id":', customerName)
  const email = summary.indexOf(',"customer_email":', customer)
  const issuedAt = summary.indexOf(',"issued_at":', email)
  const ixCreatedAt = summary.indexOf(',"ix_created_at":', issuedAt)
  const subtotal = summary.indexOf(',"subtotal_cents":', ixCreatedAt)
  const ixId = summary.indexOf(',"ix_id":', subtotal)

  const upToNumber = summary.slice(0, displayName)
  const customerField = summary.slice(customer, email)
  const display = summary.slice(displayName, customerName)
  const issued = summary.slice(issuedAt, ixCreatedAt)
  const fromSubtotal = summary.slice(subtotal, -1)

  const customerId = summary.slice(customer + ',"customer_id":"'.length, email - 1)
  const id = summary.slice('{"id":"'.length, number - 1)
  const hasDocument = !summary.startsWith('null', ixId + ',"ix_id":'.length)
  const ix = hasDocument ? `"${downloadPath(customerId, id, 'ix')}"` : 'null'
  const payments = downloadPath(customerId, id, 'payments')
  const source: LinesSource = lines === null ? 'none' : 'payments'
  return `${upToNumber}${customerField}${display}${issued}${fromSubtotal},"lines":${lines ?? '[]'},"lines_source":"${source}","downloads":{"ix":${ix},"payments":"${payments}"}}`
}

const pageStart = Buffer.from('{"invoices":[')

/** One page of the list as the JSON that is sent. `summaries` are texts of `writeSummary`, joined by commas, in UTF-8. */
export function writePage(
  { summaries, page, total }: { summaries: Uint8Array; page: number; total: number },
  pageSize: number,
): Buffer {
  const end = `],"page":${page},"page_size":${pageSize},"total":${total},"total_pages":${countPages(total, pageSize)},"source":"synchronized_records"}`
  const length = pageStart.length + summaries.length
  const written = Buffer.allocUnsafe(length + end.length)
  written.set(pageStart)
  written.set(summaries, pageStart.length)
  written.write(end, length, 'latin1')
  return written
}
