/** Writes rows in a format, a batch at a time. */
import type { RowOptions, RowWriter } from './columns.ts'
import { createCsvWriter } from './csv.ts'

export const exportFormats = ['csv', 'csv-pt', 'ndjson', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]

export async function createRowWriter<Source>(
  format: ExportFormat,
  options: RowOptions<Source>,
): Promise<RowWriter<Source>> {
  switch (format) {
    case 'csv':
    case 'csv-pt':
      return createCsvWriter(format, options)
    case 'ndjson':
      return createNdjsonWriter(options)
    case 'parquet':
      return (await import('./parquet.ts')).createParquetWriter(options)
  }
}

/** One object a line, with the API's fields; programs need no decimals. */
function createNdjsonWriter<Source>({ columns, write }: RowOptions<Source>): RowWriter<Source> {
  const fields = columns.filter(({ kind, isBesideList }) => kind !== 'decimal' && !isBesideList)
  return {
    async write(rows) {
      const lines = rows.map(
        row => `${JSON.stringify(Object.fromEntries(fields.map(({ name, read }) => [name, read(row)])))}\n`,
      )
      await write(lines.join(''))
    },
    async end() {},
  }
}
