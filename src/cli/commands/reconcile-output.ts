/** Differences as a table, as CSV, or as one JSON object a line. */
import { styleText } from 'node:util'
import { type Difference, differenceKinds, saftKinds, sidesOf } from '../../checks/reconcile.ts'
import {
  type Column,
  type ColumnKind,
  createTextWriter,
  type RowWriter,
  type Write,
} from '../../export/columns.ts'
import { createCsvWriter } from '../../export/csv.ts'
import { createLongTable, printable } from '../terminal/table.ts'
import type { TimeZone } from './time-zone.ts'

export const formats = ['table', 'csv', 'csv-pt', 'json'] as const
export type Format = (typeof formats)[number]

/** Those that are no text. */
const kinds: Partial<Record<keyof Difference, ColumnKind>> = {
  issued_at: 'moment',
  total_cents: 'integer',
  total: 'decimal',
  document_id: 'integer',
  document_total: 'decimal',
}

const names = ['kind', ...Object.keys(sidesOf(null, null)), 'detail'] as (keyof Difference)[]

const columns = names.map((name): Column<Difference> => {
  return { name, kind: kinds[name] ?? 'text', read: difference => difference[name] }
})

/** `zone` is for the days of the table, and the moments of `csv-pt`. */
export function createWriter(format: Format, zone: TimeZone, write: Write): RowWriter<Difference> {
  switch (format) {
    case 'table':
      return createTableWriter(zone.dayOf, write)
    case 'csv':
    case 'csv-pt':
      return createCsvWriter(format, { columns, writeMoment: zone.writeMoment, write })
    case 'json':
      return createTextWriter('', row => `${JSON.stringify(row, names)}\n`, write)
  }
}

function createTableWriter(dayOf: (moment: number) => string, write: Write): RowWriter<Difference> {
  const header = ['KIND', 'CUSTOMER', 'INVOICE', 'NUMBER', 'ISSUED', 'DETAIL']
  const table = createLongTable(header, write, (text, column, row) => {
    if (row === header) return styleText('gray', text)
    return column === 0 ? styleText('yellow', text) : text
  })
  return {
    async write(rows) {
      for (const { kind, customer_id, invoice_id, number, issued_at, detail } of rows) {
        const day = issued_at === null ? '' : dayOf(Date.parse(issued_at))
        await table.add([kind, customer_id ?? '', invoice_id ?? '', number ?? '', day, detail].map(printable))
      }
    },
    end: table.end,
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
