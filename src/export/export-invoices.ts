/** Exports invoices from a store, in constant memory. */
import type { Expanded } from '../domain/expanded.ts'
import { expansionColumns } from '../domain/expansion.ts'
import type { Invoice } from '../domain/invoice.ts'
import { createInvoiceCsv } from '../domain/invoice-csv.ts'
import { taxesOf } from '../domain/taxes.ts'
import type { InvoiceWalk, OperatorStore, WalkedInvoice } from '../store/store.ts'
import {
  createTextWriter,
  type ExportedInvoice,
  invoiceColumns,
  lineColumns,
  linesOf,
  type RowOptions,
  type RowWriter,
} from './columns.ts'
import { createCsvWriter } from './csv.ts'

export const exportFormats = ['csv', 'csv-pt', 'ndjson', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]

export interface ExportOptions extends Omit<RowOptions<never>, 'columns'> {
  format: ExportFormat
  /** Whether each line item gets a row. Otherwise each invoice gets one. */
  perLine: boolean
  /** Whether CSV includes drafts, which do not belong in the books. NDJSON and Parquet always include drafts. */
  withDrafts: boolean
  /** Returns the day of a moment, for `csv-pt`. */
  dayOf(moment: number): string
  signal: AbortSignal
  onProgress(invoices: number): void
}

/** Rows written together. The number is bounded, because one invoice may have a thousand lines. */
const rowsAtOnce = 500

export async function exportInvoices(
  store: Pick<OperatorStore, 'walkInvoices'>,
  walk: Omit<InvoiceWalk, 'withLines'>,
  options: ExportOptions,
): Promise<{ invoices: number; rows: number }> {
  const batches = store.walkInvoices({ ...walk, withLines: options.perLine })
  if (options.perLine)
    return exportRows(batches, readLines, await createWriter({ ...options, columns: lineColumns }), options)
  const readOne = (walked: WalkedInvoice) => [readInvoice(walked)]
  if (options.format !== 'csv-pt')
    return exportRows(batches, readOne, await createWriter({ ...options, columns: invoiceColumns }), options)
  // `csv-pt` has the same table as the export of the billing page.
  const { head, row } = createInvoiceCsv('pt', options.dayOf)
  return exportRows(batches, readExpanded, createTextWriter(head, row, options.write), options)
}

async function exportRows<Row>(
  batches: AsyncIterable<readonly WalkedInvoice[]>,
  read: (walked: WalkedInvoice) => Row[],
  writer: RowWriter<Row>,
  { format, withDrafts, signal, onProgress }: ExportOptions,
) {
  const exported = { invoices: 0, rows: 0 }
  let rows: Row[] = []
  const flush = async () => {
    await writer.write(rows)
    exported.rows += rows.length
    rows = []
  }
  const isLeftOut = isCsv(format) && !withDrafts ? isDraft : () => false
  for await (const all of batches) {
    const batch = all.filter(walked => !isLeftOut(walked))
    for (const walked of batch)
      for (const row of read(walked)) if (rows.push(row) === rowsAtOnce) await flush()
    await flush()
    exported.invoices += batch.length
    onProgress(exported.invoices)
    // A write to a pipe may complete without a wait. This pause lets the process handle signals.
    await new Promise(setImmediate)
    signal.throwIfAborted()
  }
  await writer.end()
  return exported
}

const isCsv = (format: ExportFormat) => format === 'csv' || format === 'csv-pt'

/**
 * Whether the invoice is a draft. Searches the JSON text without parsing it. Text from outside cannot contain the
 * searched characters, because JSON escapes its quotes.
 */
const isDraft = ({ summary }: WalkedInvoice) => summary.includes(',"status":"draft",')

async function createWriter<Row>(
  options: RowOptions<Row> & { format: ExportFormat },
): Promise<RowWriter<Row>> {
  switch (options.format) {
    case 'csv':
    case 'csv-pt':
      return createCsvWriter(options.format, options)
    case 'ndjson':
      return createNdjsonWriter(options)
    case 'parquet':
      return (await import('./parquet.ts')).createParquetWriter(options)
  }
}

/** Writes one JSON object per line with the API's fields. Decimals are left out, because programs can compute them. */
function createNdjsonWriter<Row>({ columns, write }: RowOptions<Row>): RowWriter<Row> {
  const fields = columns.filter(({ kind, isBesideList }) => kind !== 'decimal' && !isBesideList)
  const toObject = (row: Row) => Object.fromEntries(fields.map(({ name, read }) => [name, read(row)]))
  return createTextWriter('', row => `${JSON.stringify(toObject(row))}\n`, write)
}

function readInvoice({ summary, document, payment }: WalkedInvoice): Required<ExportedInvoice> {
  return { ...JSON.parse(summary), document: document && JSON.parse(document), facts: JSON.parse(payment) }
}

function readExpanded(walked: WalkedInvoice): (Invoice & Expanded)[] {
  const { facts, document, ...invoice } = readInvoice(walked)
  const columns = expansionColumns(invoice, facts, document)
  return [
    {
      ...invoice,
      document: JSON.parse(columns.expanded_document),
      payment: JSON.parse(columns.expanded_payment),
      taxes: taxesOf(invoice, facts, document),
    },
  ]
}

function readLines(walked: WalkedInvoice) {
  return linesOf(readInvoice(walked), walked.lines && JSON.parse(walked.lines))
}
