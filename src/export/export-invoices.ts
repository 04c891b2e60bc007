/** Exports invoices from a store, in constant memory. */
import { createInvoiceCsv } from '../invoice-csv.ts'
import type { InvoiceWalk, OperatorStore, WalkedInvoice } from '../store/store.ts'
import {
  type ExportedInvoice,
  invoiceColumns,
  lineColumns,
  linesOf,
  type RowOptions,
  type RowWriter,
} from './columns.ts'
import { createRowWriter, type ExportFormat } from './row-writer.ts'

export interface ExportOptions extends Omit<RowOptions<never>, 'columns'> {
  format: ExportFormat
  /** One row a line item instead of one an invoice. */
  perLine: boolean
  /** The day of a moment, for the Portuguese table. */
  dayOf(moment: number): string
  /** Ends the export with its reason. */
  signal: AbortSignal
  onProgress(invoices: number): void
}

export interface Exported {
  invoices: number
  rows: number
}

/** Rows written together: an invoice may have a thousand lines. */
const rowsAtOnce = 500

export async function exportInvoices(
  store: Pick<OperatorStore, 'walkInvoices'>,
  walk: Omit<InvoiceWalk, 'withLines'>,
  options: ExportOptions,
): Promise<Exported> {
  const { format, perLine, signal, onProgress } = options
  const exported: Exported = { invoices: 0, rows: 0 }
  const writer = perLine
    ? readInto(await createRowWriter(format, { ...options, columns: lineColumns }), readLines, exported)
    : readInto(
        format === 'csv-pt'
          ? createPortugueseWriter(options)
          : await createRowWriter(format, { ...options, columns: invoiceColumns }),
        readInvoice,
        exported,
      )
  for await (const batch of store.walkInvoices({ ...walk, withLines: perLine })) {
    await writer.write(batch)
    onProgress(exported.invoices)
    // Writing to a pipe may never wait: let signals in.
    await new Promise(setImmediate)
    signal.throwIfAborted()
  }
  await writer.end()
  return exported
}

/** The same table as the page's. */
function createPortugueseWriter({
  dayOf,
  write,
}: Pick<ExportOptions, 'dayOf' | 'write'>): RowWriter<ExportedInvoice> {
  const csv = createInvoiceCsv('pt', dayOf)
  let head = csv.head
  const add = async (rows: readonly ExportedInvoice[]) => {
    await write(head + rows.map(csv.row).join(''))
    head = ''
  }
  return { write: add, end: async () => (head === '' ? undefined : add([])) }
}

function readInvoice({ summary, document }: WalkedInvoice): [ExportedInvoice] {
  return [{ ...JSON.parse(summary), document: document && JSON.parse(document) }]
}

function readLines(walked: WalkedInvoice) {
  const [invoice] = readInvoice(walked)
  return linesOf(invoice, walked.lines && JSON.parse(walked.lines))
}

function readInto<Row>(
  writer: RowWriter<Row>,
  read: (invoice: WalkedInvoice) => Row[],
  exported: Exported,
): RowWriter<WalkedInvoice> {
  async function pass(rows: Row[]): Promise<Row[]> {
    await writer.write(rows)
    exported.rows += rows.length
    return []
  }
  return {
    async write(batch) {
      let rows: Row[] = []
      for (const invoice of batch) {
        for (const row of read(invoice)) if (rows.push(row) === rowsAtOnce) rows = await pass(rows)
        exported.invoices++
      }
      await pass(rows)
    },
    end: writer.end,
  }
}
