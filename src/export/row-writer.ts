/** Rows on their way into a format. Nothing is held longer than a batch of them takes. */
import type { RowOptions, RowWriter } from './columns.ts'
import { createCsvWriter } from './csv.ts'
import { createNdjsonWriter } from './ndjson.ts'

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
