import { byteOrderMark, defuse, quote } from '../domain/invoice-csv.ts'
import { type ColumnKind, createTextWriter, type RowOptions, type RowWriter, type Value } from './columns.ts'

/** `csv` is RFC 4180, for programs; `csv-pt` is for Excel in Portuguese, which knows UTF-8 by the byte order mark. */
const dialects = {
  csv: { separator: ',', decimalSign: '.', mark: '' },
  'csv-pt': { separator: ';', decimalSign: ',', mark: byteOrderMark },
}

/** Whether a text begins with the line of these columns, in either form. */
export function hasHead(text: string, columns: readonly { name: string }[]): boolean {
  return Object.values(dialects).some(dialect => text.startsWith(headOf(dialect, columns)))
}

function headOf(
  { separator, mark }: (typeof dialects)['csv' | 'csv-pt'],
  columns: readonly { name: string }[],
): string {
  return `${mark}${columns.map(({ name }) => quote(name, separator)).join(separator)}\r\n`
}

export function createCsvWriter<Source>(
  format: keyof typeof dialects,
  { columns, writeMoment, write }: RowOptions<Source>,
): RowWriter<Source> {
  const { separator, decimalSign } = dialects[format]
  const join = (cells: readonly string[]) =>
    `${cells.map(cell => quote(cell, separator)).join(separator)}\r\n`
  /** A number is no formula, also below zero. */
  function writeCell(kind: ColumnKind, value: Value): string {
    if (value === null) return ''
    const text = String(value)
    switch (kind) {
      case 'text':
        return defuse(text)
      case 'moment':
        return format === 'csv' ? text : writeMoment(text)
      case 'integer':
      case 'number':
        return text.replace('.', decimalSign)
      case 'decimal':
        // An amount from another system may be any text.
        return /^-?\d+(\.\d+)?$/.test(text) ? text.replace('.', decimalSign) : defuse(text)
    }
  }
  const head = headOf(dialects[format], columns)
  const writeRow = (row: Source) => join(columns.map(({ kind, read }) => writeCell(kind, read(row))))
  return createTextWriter(head, writeRow, write)
}
