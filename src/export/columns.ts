/** The columns of exported files, in their order. */

import { creditedCents } from '../domain/document-json.ts'
import {
  type Invoice,
  type InvoiceDocument,
  invoiceFields,
  type Line,
  type LinesSource,
  lineFields,
} from '../domain/invoice.ts'
import { writeAmount } from '../domain/money.ts'
import { type PaymentFacts, toPayCents } from '../domain/payment.ts'
import { sumBases, taxesOf, writeTaxes } from '../domain/taxes.ts'

/**
 * `decimal` is an amount in the currency's major unit, as text. `moment` is ISO 8601 in UTC with milliseconds.
 * `integer` fits a JavaScript number.
 */
export type ColumnKind = 'text' | 'integer' | 'number' | 'decimal' | 'moment'

export type Value = string | number | null

export interface Column<Source = never> {
  name: string
  kind: ColumnKind
  read(source: Source): Value
  /** Set on columns that are no field of the API's list. NDJSON leaves out such columns. */
  isBesideList?: true
}

export interface ExportedInvoice extends Invoice {
  document?: InvoiceDocument | null
  /** Due date and paid amounts, which are not part of the list's `Invoice`. */
  facts?: PaymentFacts
}

/** Resolves when more bytes may be written. */
export type Write = (bytes: string | Uint8Array) => Promise<void>

export interface RowWriter<Source> {
  write(rows: readonly Source[]): Promise<void>
  end(): Promise<void>
}

/** Writes rows as text below a header. An export without rows still has its header. */
export function createTextWriter<Source>(
  header: string,
  writeRow: (row: Source) => string,
  write: Write,
): RowWriter<Source> {
  let above = header
  async function add(rows: readonly Source[]): Promise<void> {
    await write(above + rows.map(writeRow).join(''))
    above = ''
  }
  return { write: add, end: async () => (above === '' ? undefined : add([])) }
}

export interface RowOptions<Source> {
  columns: readonly Column<Source>[]
  /** Formats a moment for `csv-pt`. */
  writeMoment(moment: string): string
  write: Write
}

/**
 * One row of a table of lines. An invoice without lines gets one row whose `line` is null, so that no invoice is
 * missing.
 */
export interface InvoiceLine {
  invoice: ExportedInvoice
  line: Line | null
  position: number | null
  source: LinesSource
}

const kinds: Partial<Record<keyof Invoice | keyof Line, ColumnKind>> = {
  issued_at: 'moment',
  ix_created_at: 'moment',
  tax_percent: 'number',
  discount_percent: 'number',
  ix_id: 'integer',
  quantity: 'integer',
}

/**
 * The columns of one field. An amount gets two columns, for example `total_cents` in the smallest unit and `total` as
 * a decimal.
 */
function withDecimal<Fields extends { currency: string }, Source>(
  name: string,
  field: keyof Fields & (keyof Invoice | keyof Line),
  fieldsOf: (source: Source) => Fields | null,
): Column<Source>[] {
  const read = (source: Source) => (fieldsOf(source)?.[field] ?? null) as Value
  if (!field.endsWith('_cents')) return [{ name, kind: kinds[field] ?? 'text', read }]
  const writeDecimal = (source: Source) => {
    const [amount, currency] = [read(source), fieldsOf(source)?.currency]
    return typeof amount === 'number' && currency !== undefined ? writeAmount(amount, currency) : null
  }
  return [
    { name, kind: 'integer', read },
    { name: name.slice(0, -'_cents'.length), kind: 'decimal', read: writeDecimal },
  ]
}

/** Columns that the API's list does not have. They follow the columns of the list's fields. */
const columnsBesideList: readonly Column<ExportedInvoice>[] = [
  { name: 'document_number', kind: 'text', read: ({ document }) => document?.number ?? null },
  { name: 'atcud', kind: 'text', read: ({ document }) => document?.atcud ?? null },
  { name: 'document_type', kind: 'text', read: ({ document }) => document?.type ?? null },
  { name: 'document_date', kind: 'text', read: ({ document }) => document?.date ?? null },
  { name: 'due_date', kind: 'text', read: ({ facts }) => facts?.due_date ?? null },
  ...besideList('tax_base_cents', invoice => sumBases(readTaxes(invoice))),
  { name: 'taxes_by_rate', kind: 'text', read: invoice => writeTaxes(readTaxes(invoice), invoice.currency) },
  ...besideList('paid_cents', ({ facts }) => facts?.amount_paid_cents ?? null),
  ...besideList('remaining_cents', invoice => (invoice.facts ? toPayCents(invoice, invoice.facts) : null)),
  ...besideList('credited_cents', ({ document, currency }) => creditedCents(document ?? null, currency)),
]

function besideList(
  name: `${string}_cents`,
  amountOf: (invoice: ExportedInvoice) => number | null,
): Column<ExportedInvoice>[] {
  const read = amountOf
  const writeDecimal = (invoice: ExportedInvoice) => {
    const amount = read(invoice)
    return amount === null ? null : writeAmount(amount, invoice.currency)
  }
  return [
    { name, kind: 'integer', read },
    { name: name.slice(0, -'_cents'.length), kind: 'decimal', read: writeDecimal },
  ]
}

const readTaxes = (invoice: ExportedInvoice) =>
  taxesOf(invoice, invoice.facts ?? null, invoice.document ?? null)

export const invoiceColumns: readonly Column<ExportedInvoice>[] = [
  ...invoiceFields.flatMap(field => withDecimal<Invoice, ExportedInvoice>(field, field, invoice => invoice)),
  ...columnsBesideList.map(column => ({ ...column, isBesideList: true as const })),
]

/** Columns of the invoice, for a table whose rows refer to an invoice. The column `id` becomes `invoice_id`. */
export function columnsOfInvoice(...names: string[]): Column<{ invoice: ExportedInvoice }>[] {
  return names.flatMap(wanted =>
    invoiceColumns
      .filter(({ name }) => name === wanted)
      .map(column => {
        const name = wanted === 'id' ? 'invoice_id' : wanted
        return { ...column, name, read: ({ invoice }) => column.read(invoice) }
      }),
  )
}

/** The invoice's totals are left out, because a sum over the column would count each total once per line. */
export const lineColumns: readonly Column<InvoiceLine>[] = [
  ...columnsOfInvoice('id', 'number', 'customer_id', 'display_name', 'customer_tax_id', 'issued_at'),
  ...columnsOfInvoice('status', 'ix_sync_state', 'ix_id', 'ix_status'),
  { name: 'lines_source', kind: 'text', read: ({ source }) => source },
  { name: 'line', kind: 'integer', read: ({ position }) => position },
  ...lineFields.flatMap(field =>
    withDecimal<Line, InvoiceLine>(field === 'id' ? 'line_id' : field, field, ({ line }) => line),
  ),
  ...columnsOfInvoice('document_number', 'atcud'),
]

/** `lines` is null when the invoice's lines are unknown. */
export function linesOf(invoice: ExportedInvoice, lines: readonly Line[] | null): InvoiceLine[] {
  const source: LinesSource = lines === null ? 'none' : 'payments'
  if (lines === null || lines.length === 0) return [{ invoice, line: null, position: null, source }]
  return lines.map((line, index) => ({ invoice, line, position: index + 1, source }))
}
