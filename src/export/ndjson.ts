import type { RowOptions, RowWriter } from './columns.ts'

/** One object a line, of the fields as the API has them: for programs, which need no decimals. */
export function createNdjsonWriter<Source>({ columns, write }: RowOptions<Source>): RowWriter<Source> {
  const fields = columns.filter(({ kind }) => kind !== 'decimal')
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
