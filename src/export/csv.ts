import { stringify } from 'csv-stringify/sync'
import { defuse } from '../invoice-csv.ts'
import type { Column, RowOptions, RowWriter, Value } from './columns.ts'

interface CsvDialect {
  delimiter: string
  decimalSign: string
  /** A byte order mark, by which Excel knows UTF-8. */
  hasMark: boolean
  writeMoment(moment: string): string
}

export type CsvFormat = 'csv' | 'csv-pt'

/**
 * `csv` is RFC 4180, for programs; `csv-pt` is for Excel in Portuguese, which recognizes a moment only in the form of
 * `writeMoment`.
 */
function dialectOf(format: CsvFormat, writeMoment: (moment: string) => string): CsvDialect {
  return format === 'csv'
    ? { delimiter: ',', decimalSign: '.', hasMark: false, writeMoment: moment => moment }
    : { delimiter: ';', decimalSign: ',', hasMark: true, writeMoment }
}

export function createCsvWriter<Source>(
  format: CsvFormat,
  { columns, writeMoment, write }: RowOptions<Source>,
): RowWriter<Source> {
  const dialect = dialectOf(format, writeMoment)
  let isBegun = false
  async function add(rows: readonly Source[]): Promise<void> {
    const cells = rows.map(row => columns.map(({ kind, read }) => writeCell(kind, read(row), dialect)))
    const text = stringify(cells, {
      columns: columns.map(({ name }) => name),
      header: !isBegun,
      bom: dialect.hasMark && !isBegun,
      delimiter: dialect.delimiter,
      record_delimiter: '\r\n',
      quote_record_delimiter: true,
    })
    isBegun = true
    await write(text)
  }
  return {
    write: add,
    async end() {
      if (!isBegun) await add([])
    },
  }
}

/** A number is no formula, also below zero. */
function writeCell(kind: Column['kind'], value: Value, { decimalSign, writeMoment }: CsvDialect): string {
  if (value === null) return ''
  const text = String(value)
  switch (kind) {
    case 'text':
      return defuse(text)
    case 'moment':
      return writeMoment(text)
    case 'integer':
      return text
    case 'number':
      return text.replace('.', decimalSign)
    case 'decimal':
      // An amount from another system may be any text.
      return /^-?\d+(\.\d+)?$/.test(text) ? text.replace('.', decimalSign) : defuse(text)
  }
}
