/** Differences as a table, as CSV, or as one JSON object a line. */
import { type Difference, differenceKinds } from '../../audit/reconcile.ts'
import { createLongTable, printable } from '../terminal/table.ts'

export const formats = ['table', 'csv', 'json'] as const
export type Format = (typeof formats)[number]

export type Write = (text: string) => Promise<void>

export interface DifferenceWriter {
  add(difference: Difference): Promise<void>
  end(): Promise<void>
}

const columns = [
  'kind',
  'customer_id',
  'customer_name',
  'invoice_id',
  'number',
  'issued_at',
  'currency',
  'total',
  'document_id',
  'document_number',
  'document_status',
  'document_currency',
  'document_total',
  'detail',
] as const satisfies readonly (keyof Difference)[]

/** `dayOf` tells the day of a moment, for people. */
export function createWriter(
  format: Format,
  dayOf: (moment: number) => string,
  write: Write,
): DifferenceWriter {
  if (format === 'json')
    return {
      add: difference =>
        write(`${JSON.stringify(Object.fromEntries(columns.map(name => [name, difference[name]])))}\n`),
      end: async () => {},
    }
  return format === 'csv' ? createCsvWriter(write) : createTableWriter(dayOf, write)
}

function createCsvWriter(write: Write): DifferenceWriter {
  let header = `${columns.join(',')}\r\n`
  const flush = async (row: string) => {
    const text = header + row
    header = ''
    await write(text)
  }
  return {
    add: difference =>
      flush(
        `${columns.map(name => writeCell(String(difference[name] ?? ''), isAmount.has(name))).join(',')}\r\n`,
      ),
    end: () => flush(''),
  }
}

const isAmount = new Set<string>(['total', 'document_total'])

/** RFC 4180. What a spreadsheet would take for a formula becomes text; an amount is a number, also below zero. */
function writeCell(cell: string, isAmount: boolean): string {
  const isNumber = isAmount && /^-?\d+(\.\d+)?$/.test(cell)
  const text = !isNumber && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function createTableWriter(dayOf: (moment: number) => string, write: Write): DifferenceWriter {
  const table = createLongTable(['KIND', 'CUSTOMER', 'INVOICE', 'NUMBER', 'ISSUED', 'DETAIL'], write)
  let isEmpty = true
  return {
    add({ kind, customer_id, invoice_id, number, issued_at, detail }) {
      isEmpty = false
      const day = issued_at === null ? '' : dayOf(Date.parse(issued_at))
      return table.add([kind, customer_id ?? '', invoice_id ?? '', number ?? '', day, detail].map(printable))
    },
    async end() {
      if (!isEmpty) await table.end()
    },
  }
}

export function summarize(counts: ReadonlyMap<string, number>, checked: number): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const invoices = `${checked} ${checked === 1 ? 'invoice' : 'invoices'} checked`
  if (total === 0) return `No differences in ${invoices}.`
  const kinds = differenceKinds.filter(kind => counts.has(kind)).map(kind => `${counts.get(kind)} ${kind}`)
  return `${total} ${total === 1 ? 'difference' : 'differences'} in ${invoices}: ${kinds.join(', ')}.`
}
