/** Differences as a table, as CSV, or as one JSON object a line. */
import { styleText } from 'node:util'
import { type Difference, differenceKinds, saftKinds } from '../../checks/reconcile.ts'
import type { Column, ColumnKind, RowWriter, Write } from '../../export/columns.ts'
import { createCsvWriter } from '../../export/csv.ts'
import { createLongTable, printable } from '../terminal/table.ts'
import type { TimeZone } from './time-zone.ts'

export const formats = ['table', 'csv', 'csv-pt', 'json'] as const
export type Format = (typeof formats)[number]

export interface DifferenceWriter {
  add(difference: Difference): Promise<void>
  end(): Promise<void>
}

const kinds = {
  kind: 'text',
  customer_id: 'text',
  customer_name: 'text',
  invoice_id: 'text',
  number: 'text',
  issued_at: 'moment',
  currency: 'text',
  total_cents: 'integer',
  total: 'decimal',
  document_id: 'integer',
  document_number: 'text',
  document_status: 'text',
  document_currency: 'text',
  document_total: 'decimal',
  detail: 'text',
} as const satisfies Record<keyof Difference, ColumnKind>

const names = Object.keys(kinds) as (keyof Difference)[]

const columns = names.map((name): Column<Difference> => {
  return { name, kind: kinds[name], read: difference => difference[name] }
})

/** `zone` is for the days of the table, and the moments of `csv-pt`. */
export function createWriter(format: Format, zone: TimeZone, write: Write): DifferenceWriter {
  switch (format) {
    case 'table':
      return createTableWriter(zone.dayOf, write)
    case 'csv':
    case 'csv-pt':
      return oneByOne(createCsvWriter(format, { columns, writeMoment: zone.writeMoment, write }))
    case 'json':
      return {
        add: difference =>
          write(`${JSON.stringify(Object.fromEntries(names.map(name => [name, difference[name]])))}\n`),
        end: async () => {},
      }
  }
}

function oneByOne({ write, end }: RowWriter<Difference>): DifferenceWriter {
  return { add: difference => write([difference]), end }
}

function createTableWriter(dayOf: (moment: number) => string, write: Write): DifferenceWriter {
  const header = ['KIND', 'CUSTOMER', 'INVOICE', 'NUMBER', 'ISSUED', 'DETAIL']
  const table = createLongTable(header, write, {
    paint(text, column, row) {
      if (row === header) return styleText('gray', text)
      return column === 0 ? styleText('yellow', text) : text
    },
  })
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

/** `what` was checked, as in "invoice". */
export function summarize(counts: ReadonlyMap<string, number>, checked: number, what: string): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const all = `${checked} ${checked === 1 ? what : what.replace(/^\w+/, '$&s')} checked`
  if (total === 0) return `No differences in ${all}.`
  const kinds = [...differenceKinds, ...saftKinds]
    .filter(kind => counts.has(kind))
    .map(kind => `${counts.get(kind)} ${kind}`)
  return `${total} ${total === 1 ? 'difference' : 'differences'} in ${all}: ${kinds.join(', ')}.`
}
