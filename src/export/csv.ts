import { stringify } from 'csv-stringify/sync'
import { defuse } from '../invoice-csv.ts'
import type { ColumnKind, RowOptions, RowWriter, Value } from './columns.ts'

/** `csv` is RFC 4180, for programs; `csv-pt` is for Excel in Portuguese, which knows UTF-8 by the byte order mark. */
const dialects = {
  csv: { delimiter: ',', decimalSign: '.', bom: false },
  'csv-pt': { delimiter: ';', decimalSign: ',', bom: true },
}

export type CsvFormat = keyof typeof dialects

export function createCsvWriter<Source>(
  format: CsvFormat,
  { columns, writeMoment, write }: RowOptions<Source>,
): RowWriter<Source> {
  const { delimiter, decimalSign, bom } = dialects[format]
  let isBegun = false
  async function add(rows: readonly Source[]): Promise<void> {
    const cells = rows.map(row => columns.map(({ kind, read }) => writeCell(kind, read(row))))
    const text = stringify(cells, {
      columns: columns.map(({ name }) => name),
      header: !isBegun,
      bom: bom && !isBegun,
      delimiter,
      record_delimiter: '\r\n',
      quote_record_delimiter: true,
    })
    isBegun = true
    await write(text)
  }
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
        return text
      case 'number':
        return text.replace('.', decimalSign)
      case 'decimal':
        // An amount from another system may be any text.
        return /^-?\d+(\.\d+)?$/.test(text) ? text.replace('.', decimalSign) : defuse(text)
    }
  }
  return {
    write: add,
    async end() {
      if (!isBegun) await add([])
    },
  }
}
