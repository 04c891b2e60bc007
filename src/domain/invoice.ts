/** The domain: invoices, in the contract's own words. */
import type { Claim, Multibanco } from './document.ts'
import type { Expanded, Expansion } from './expanded.ts'
import type { PaymentFacts } from './payment.ts'

export const invoiceStatuses = ['draft', 'open', 'paid', 'void', 'uncollectible'] as const
export type InvoiceStatus = (typeof invoiceStatuses)[number]

/** Statuses that still change at the platform: an uncollectible invoice may still be paid. */
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

/** The key of a record, and the order in which records are walked through. */
export interface InvoiceKey {
  customer_id: string
  id: string
}

/** A key of maps and sets. */
export function keyOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

/** The record that a writer hands to the store. `lines` is null when they are not known, never a part of them. */
export interface InvoiceRecord {
  invoice: Invoice
  lines: readonly Line[] | null
  /** The payment platform's record of its document; absent for an invoice from elsewhere. */
  claim?: Claim
  /** The associated document as far as it was read. Absent: none. */
  document?: InvoiceDocument | null
  /** What is owed and what was paid. Absent: derived from status and total. */
  payment?: PaymentFacts
}

/** The certified document that is associated with an invoice, as it is sent. A field that is not known is null. */
export interface InvoiceDocument {
  id: number
  /** The invoicing system's own word, as the next. */
  type: string
  status: string
  /** As printed, such as "FR A/123"; null before it is issued, and so are the next two. */
  number: string | null
  series: string | null
  atcud: string | null
  /** YYYY-MM-DD, as the next. */
  date: string | null
  due_date: string | null
  before_tax_cents: number | null
  tax_cents: number | null
  /** Before and with taxes: what the document charges. */
  gross_cents: number | null
  /** Tax that the client withholds, in percent of the amount before taxes; null for none. */
  retention_percent: number | null
  retention_cents: number | null
  /** What is to be paid: the gross amount less the retention. */
  total_cents: number | null
  /** The document's own currency, which its amounts are in: the account's at the invoicing system. */
  currency: string
  in_invoice_currency: ConvertedTotal | null
  /** The highest rate first, and one that is not known last. */
  taxes: readonly { rate_percent: number | null; base_cents: number; tax_cents: number }[] | null
  /** The reason for which no tax is due, such as M07. */
  exemption_code: string | null
  /** The buyer as printed, and what is typed at a Portuguese cash machine to pay. */
  buyer_name: string | null
  buyer_tax_id: string | null
  multibanco: Multibanco | null
  /** Path of the QR code's image on the service's host; null when there is none. */
  qr_path: string | null
  /** Credit notes, debit notes and receipts; null until they were read. */
  related: readonly DocumentAbout[] | null
}

/** A document about another, as it is sent. */
export type DocumentAbout = Pick<
  InvoiceDocument,
  'id' | 'type' | 'number' | 'date' | 'gross_cents' | 'total_cents' | 'in_invoice_currency' | 'status'
>

/** A document's total in the invoice's own currency, where that is not the document's. */
export interface ConvertedTotal {
  currency: string
  total_cents: number | null
  /** How many of this currency one of the document's is worth. */
  rate: number | null
}

export type LinesSource = 'payments' | 'none'

/** One invoice whole, as it is sent. */
export interface InvoiceDetail
  extends Omit<
      Invoice,
      'customer_name' | 'customer_email' | 'company_name' | 'customer_tax_id' | 'ix_created_at'
    >,
    Expanded {
  /** All of them, or none. */
  lines: readonly Line[]
  lines_source: LinesSource
  /** Paths on the service's host. */
  downloads: { ix: string | null; payments: string }
}

/** One page of a list, as it is sent. */
export interface InvoiceList {
  invoices: readonly (Invoice & Expanded)[]
  page: number
  page_size: number
  total: number
  total_pages: number
  source: 'synchronized_records'
}

/** Of a customer's invoices of one currency, status and UTC month of issue, as 2026-03. */
export type InvoiceSum = Record<'currency' | 'month', string> &
  Omit<StatusSum, 'total_cents'> & { total_cents: bigint }

/** A sum as it is sent: beyond 2^53, its digits are exact in the JSON, and rounded in a `number`. */
export type StatusSum = { status: InvoiceStatus; count: number; total_cents: number }

/** A customer's sums, as they are sent: by currency, in each by status, and by month and status. */
export interface CustomerSummary {
  currencies: readonly {
    currency: string
    /** What is to be paid of open invoices: exact in the JSON as the other sums. Nothing is taken off it. */
    remaining_cents: number
    /** Sum of the certified documents' credit notes in force of open invoices. */
    credited_cents: number
    statuses: readonly StatusSum[]
    months: readonly ({ month: string } & StatusSum)[]
  }[]
}

/** The filters of a list, by the names of its parameters. One that is undefined or empty is none. */
export interface InvoiceFilters {
  status?: InvoiceStatus | undefined
  ix_status?: string | undefined
  /** YYYY-MM-DD, in UTC, inclusive. */
  date_from?: string | undefined
  date_to?: string | undefined
  q?: string | undefined
}

export interface ListQuery extends InvoiceFilters {
  page?: number | undefined
  /** 1 to 50. */
  page_size?: number | undefined
  expand?: readonly Expansion[] | undefined
}

const parameters: Readonly<Record<keyof ListQuery, true>> = {
  page: true,
  page_size: true,
  status: true,
  ix_status: true,
  date_from: true,
  date_to: true,
  q: true,
  expand: true,
}
export const listParameters = Object.keys(parameters)

/** The two systems a PDF can come from, named as in the download paths. */
export const documentKinds = ['ix', 'payments'] as const
export type DocumentKind = (typeof documentKinds)[number]

/** The reason for which an invoice has no PDF of a kind: no document is associated with it, or only a draft. Null when there should be one. */
export function findNoPdf(
  kind: DocumentKind,
  { status, ix_id, ix_status }: Pick<Invoice, 'status' | 'ix_id' | 'ix_status'>,
): 'no_document' | 'draft' | null {
  if (kind === 'payments') return status === 'draft' ? 'draft' : null
  return ix_id === null ? 'no_document' : ix_status === 'draft' ? 'draft' : null
}

/**
 * The contract's fields in the contract's order: what is sent, and nothing else. One by one: to give JSON.stringify a list of
 * names takes five times as long.
 */
export const onlySummary = (invoice: Invoice): Invoice => ({
  id: invoice.id,
  number: invoice.number,
  display_name: invoice.display_name,
  customer_name: invoice.customer_name,
  customer_id: invoice.customer_id,
  customer_email: invoice.customer_email,
  company_name: invoice.company_name,
  customer_tax_id: invoice.customer_tax_id,
  issued_at: invoice.issued_at,
  ix_created_at: invoice.ix_created_at,
  subtotal_cents: invoice.subtotal_cents,
  discount_cents: invoice.discount_cents,
  tax_cents: invoice.tax_cents,
  tax_percent: invoice.tax_percent,
  total_cents: invoice.total_cents,
  currency: invoice.currency,
  status: invoice.status,
  ix_sync_state: invoice.ix_sync_state,
  ix_id: invoice.ix_id,
  ix_status: invoice.ix_status,
})

export const onlyLine = (line: Line): Line => ({
  id: line.id,
  description: line.description,
  quantity: line.quantity,
  subtotal_cents: line.subtotal_cents,
  discount_cents: line.discount_cents,
  discount_percent: line.discount_percent,
  unit_amount_cents: line.unit_amount_cents,
  amount_cents: line.amount_cents,
  currency: line.currency,
})

const fieldsOf = <Row extends object>(only: (row: Row) => Row) =>
  Object.keys(only({} as Row)) as (string & keyof Row)[]
// Pure: the page, which uses neither, is bundled without them.
export const invoiceFields = /* @__PURE__ */ fieldsOf(onlySummary)
export const lineFields = /* @__PURE__ */ fieldsOf(onlyLine)

export const customerIdPattern = '^cus_[A-Za-z0-9_-]{1,251}$'
export const invoiceIdPattern = '^in_[A-Za-z0-9_-]{1,252}$'

const customerId = new RegExp(customerIdPattern)
const invoiceId = new RegExp(invoiceIdPattern)
export const isCustomerId = (value: string) => customerId.test(value)
export const isInvoiceId = (value: string) => invoiceId.test(value)

/** In characters. It stands in indexes, whose entries have a limit; documents' statuses are single words. */
export const longestIxStatus = 255

export function isIxStatus(value: string): boolean {
  return value.length <= longestIxStatus || [...value].length <= longestIxStatus
}

export const defaultPageSize = 10
export const maxPageSize = 50

/** The page asked for: below 1 is the first. The store lowers one above the last to the last. */
export function clampPage(page = 1): number {
  return Math.min(Math.max(page, 1), Number.MAX_SAFE_INTEGER)
}

export function clampPageSize(size = defaultPageSize): number {
  return size < 1 ? defaultPageSize : Math.min(size, maxPageSize)
}

export function countPages(total: number, pageSize: number): number {
  return Math.ceil(total / pageSize)
}

export function qrPath(customerId: string, invoiceId: string): string {
  return `/api/v1/client/${customerId}/invoice/${invoiceId}/document/qr`
}

export function downloadPath(customerId: string, invoiceId: string, kind: DocumentKind): string {
  return `/api/v1/client/${customerId}/invoice/${invoiceId}/${kind}/download`
}
