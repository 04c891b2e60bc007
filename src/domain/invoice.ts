/** Types of invoices, with the field names of the API's contract. */
import type { Claim, Multibanco } from './document.ts'
import type { Expanded } from './expanded.ts'
import type { PaymentFacts } from './payment.ts'

export const invoiceStatuses = ['draft', 'open', 'paid', 'void', 'uncollectible'] as const
export type InvoiceStatus = (typeof invoiceStatuses)[number]

/** Statuses that may still change at the payment platform. An uncollectible invoice may still be paid. */
export const unsettledStatuses = ['draft', 'open', 'uncollectible'] as const satisfies InvoiceStatus[]

export const syncStates = ['not_synced', 'creating', 'synced', 'failed', 'ignored'] as const
export type SyncState = (typeof syncStates)[number]

/** An invoice summary, which is an element of the list. */
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

/** Key of an invoice. Passes over all invoices follow the order of these keys. */
export interface InvoiceKey {
  customer_id: string
  id: string
}

export function keyOf({ customer_id, id }: InvoiceKey): string {
  return `${customer_id} ${id}`
}

/** An invoice as the connector hands it to the store. `lines` is null when the lines are unknown, and otherwise holds all lines. */
export interface InvoiceRecord {
  invoice: Invoice
  lines: readonly Line[] | null
  /** The payment platform's record of the certified document. Absent for an invoice that did not come from the payment platform. */
  claim?: Claim
  /** The linked document as far as it was read. Absent means no document. */
  document?: InvoiceDocument | null
  /** Amounts owed and paid. When absent, they are derived from status and total. */
  payment?: PaymentFacts
}

/** The certified document of an invoice, as the API sends it. An unknown value is null. */
export interface InvoiceDocument {
  id: number
  /** `type` and `status` are the invoicing system's own words. */
  type: string
  status: string
  /** Printed number, such as "FR A/123". `number`, `series` and `atcud` are null before the document is issued. */
  number: string | null
  series: string | null
  atcud: string | null
  /** `date` and `due_date` are written YYYY-MM-DD. */
  date: string | null
  due_date: string | null
  before_tax_cents: number | null
  tax_cents: number | null
  /** Amount that the document charges: `before_tax_cents` plus `tax_cents`. */
  gross_cents: number | null
  /** Tax that the client withholds, in percent of the amount before taxes. Null when nothing is withheld. */
  retention_percent: number | null
  retention_cents: number | null
  /** Amount to pay: `gross_cents` less `retention_cents`. */
  total_cents: number | null
  /** Currency of the document's amounts, which is the account's currency at the invoicing system. */
  currency: string
  in_invoice_currency: ConvertedTotal | null
  /** Taxes by rate, the highest rate first and an unknown rate last. */
  taxes: readonly { rate_percent: number | null; base_cents: number; tax_cents: number }[] | null
  /** Code of the reason why no tax is due, such as M07. */
  exemption_code: string | null
  /** Name of the buyer as printed on the document. */
  buyer_name: string | null
  buyer_tax_id: string | null
  multibanco: Multibanco | null
  /** Path of the QR code's image on this service's host. Null without a QR code. */
  qr_path: string | null
  /** Credit notes, debit notes and receipts that refer to the document. Null until they were read. */
  related: readonly DocumentAbout[] | null
}

/** A credit note, debit note or receipt, as the API sends it. */
export type DocumentAbout = Pick<
  InvoiceDocument,
  'id' | 'type' | 'number' | 'date' | 'gross_cents' | 'total_cents' | 'in_invoice_currency' | 'status'
>

/** A document's total in the invoice's currency. Present when the document has another currency. */
export interface ConvertedTotal {
  currency: string
  total_cents: number | null
  /** Units of this currency that one unit of the document's currency is worth. */
  rate: number | null
}

export type LinesSource = 'payments' | 'none'

/** All data of one invoice, as the API sends it. */
export interface InvoiceDetail
  extends Omit<
      Invoice,
      'customer_name' | 'customer_email' | 'company_name' | 'customer_tax_id' | 'ix_created_at'
    >,
    Expanded {
  /** All lines of the invoice, or no line when the lines are unknown. */
  lines: readonly Line[]
  lines_source: LinesSource
  /** Paths of the PDFs on this service's host. */
  downloads: { ix: string | null; payments: string }
}

/** One page of the list, as the API sends it. */
export interface InvoiceList {
  invoices: readonly (Invoice & Expanded)[]
  page: number
  page_size: number
  total: number
  total_pages: number
  source: 'synchronized_records'
}

/** Sum of a customer's invoices that have the same currency, status and UTC month of issue. A month is written like 2026-03. */
export type InvoiceSum = Record<'currency' | 'month', string> &
  Omit<StatusSum, 'total_cents'> & { total_cents: bigint }

/**
 * Sum of the invoices of one status, as the API sends it. The JSON holds all digits, but a JavaScript `number` rounds values above 2^53.
 */
export type StatusSum = { status: InvoiceStatus; count: number; total_cents: number }

/** A customer's sums, as the API sends them: for each currency by status, and by month and status. */
export interface CustomerSummary {
  currencies: readonly {
    currency: string
    /** Amount to pay of open invoices, exact in the JSON. The customer's credit is not subtracted. */
    remaining_cents: number
    /** Sum of credit notes in force on the certified documents of open invoices. */
    credited_cents: number
    statuses: readonly StatusSum[]
    months: readonly ({ month: string } & StatusSum)[]
  }[]
}

/** Systems from which a PDF can come, named as in the download paths. */
export const documentKinds = ['ix', 'payments'] as const
export type DocumentKind = (typeof documentKinds)[number]

/** Returns why an invoice has no PDF of the kind: no document is linked, or only a draft exists. Null when there should be a PDF. */
export function findNoPdf(
  kind: DocumentKind,
  { status, ix_id, ix_status }: Pick<Invoice, 'status' | 'ix_id' | 'ix_status'>,
): 'no_document' | 'draft' | null {
  if (kind === 'payments') return status === 'draft' ? 'draft' : null
  return ix_id === null ? 'no_document' : ix_status === 'draft' ? 'draft' : null
}

/**
 * Copies the contract's fields in the contract's order, and nothing else. `JSON.stringify` with a list of names takes five times as long.
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
// The PURE annotations let the bundler leave these two constants out of the billing page, which does not use them.
export const invoiceFields = /* @__PURE__ */ fieldsOf(onlySummary)
export const lineFields = /* @__PURE__ */ fieldsOf(onlyLine)

export const customerIdPattern = '^cus_[A-Za-z0-9_-]{1,251}$'
export const invoiceIdPattern = '^in_[A-Za-z0-9_-]{1,252}$'

const customerId = new RegExp(customerIdPattern)
const invoiceId = new RegExp(invoiceIdPattern)
export const isCustomerId = (value: string) => customerId.test(value)
export const isInvoiceId = (value: string) => invoiceId.test(value)

/** Maximum length of an `ix_status` in characters. Indexes contain the status, and index entries have a size limit. */
export const longestIxStatus = 255

export function isIxStatus(value: string): boolean {
  return value.length <= longestIxStatus || [...value].length <= longestIxStatus
}

export function qrPath(customerId: string, invoiceId: string): string {
  return `/api/v1/client/${customerId}/invoice/${invoiceId}/document/qr`
}

export function downloadPath(customerId: string, invoiceId: string, kind: DocumentKind): string {
  return `/api/v1/client/${customerId}/invoice/${invoiceId}/${kind}/download`
}
