import { byteOrderMark, defuse, quote } from '../domain/invoice-csv.ts'
import { type ColumnKind, createTextWriter, type RowOptions, type RowWriter, type Value } from './columns.ts'

/**
 * `csv` follows RFC 4180, for programs. `csv-pt` is for Excel in Portuguese, which recognizes UTF-8 by the byte order
 * mark.
 */
const dialects = {
  csv: { separator: ',', decimalSign: '.', mark: '' },
  'csv-pt': { separator: ';', decimalSign: ',', mark: byteOrderMark },
}

/** Whether a text begins with the header line of these columns, in either dialect. */
export function hasHeader(text: string, columns: readonly { name: string }[]): boolean {
  return Object.values(dialects).some(dialect => text.startsWith(writeHeader(dialect, columns)))
}

function writeHeader(
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
  /**
   * Text that a spreadsheet would run as a formula is made harmless. A number is never a formula, not even a negative one.
   */
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
        // The amount may come from another system and be any text, so it is checked first.
        return /^-?\d+(\.\d+)?$/.test(text) ? text.replace('.', decimalSign) : defuse(text)
    }
  }
  const header = writeHeader(dialects[format], columns)
  const writeRow = (row: Source) => join(columns.map(({ kind, read }) => writeCell(kind, read(row))))
  return createTextWriter(header, writeRow, write)
}
