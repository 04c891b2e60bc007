import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer'
import { maxDecimals } from '../domain/money.ts'
import type { ColumnKind, RowOptions, RowWriter, Write } from './columns.ts'

/**
 * Rows of one row group. Readers skip whole groups, and few groups are best. A group of long texts ends earlier,
 * which bounds the memory.
 */
const groupRows = 10_000
const groupLetters = 4 * 1024 * 1024

interface Storage {
  element: Omit<SchemaElement, 'name' | 'repetition_type'>
  convert(value: string | number): string | number | bigint | Date
}

const storages: Record<ColumnKind, Storage> = {
  text: { element: { type: 'BYTE_ARRAY', converted_type: 'UTF8' }, convert: value => value },
  integer: { element: { type: 'INT64' }, convert: BigInt },
  number: { element: { type: 'DOUBLE' }, convert: value => value },
  decimal: {
    element: {
      // 9 bytes hold 20 digits, which is enough for every amount.
      ...{ type: 'FIXED_LEN_BYTE_ARRAY', type_length: 9 },
      ...{ converted_type: 'DECIMAL', precision: 20, scale: maxDecimals },
    },
    convert: value => unscale(String(value)),
  },
  moment: {
    element: {
      type: 'INT64',
      converted_type: 'TIMESTAMP_MILLIS',
      // Older readers use `converted_type`. Newer readers learn from `logical_type` that the moment is in UTC.
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
    },
    convert: value => new Date(value),
  },
}

/** Returns the decimal without its point, padded to three decimal places: "-12.34" becomes -12340n. */
function unscale(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(maxDecimals, '0'))
}

/** A writer that passes its bytes to `write` after each row group. */
function flushingWriter(write: Write): ByteWriter {
  const writer = new ByteWriter()
  const flush = async () => {
    const bytes = writer.getBytes().slice()
    writer.index = 0
    await write(bytes)
  }
  return Object.assign(writer, { flush, finish: flush })
}

export function createParquetWriter<Source>({ columns, write }: RowOptions<Source>): RowWriter<Source> {
  const schema: SchemaElement[] = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, kind }) => ({
      name,
      repetition_type: 'OPTIONAL' as const,
      ...storages[kind].element,
    })),
  ]
  const writer = new ParquetWriter({ writer: flushingWriter(write), schema })
  const startGroup = () =>
    columns.map(({ name }) => ({ name, data: [] as (ReturnType<Storage['convert']> | null)[] }))
  let columnData = startGroup()
  let [rowCount, letterCount] = [0, 0]

  async function writeGroup(): Promise<void> {
    await writer.write({ columnData, rowGroupSize: groupRows })
    columnData = startGroup()
    rowCount = letterCount = 0
  }

  return {
    async write(rows) {
      for (const row of rows) {
        for (const [index, { kind, read }] of columns.entries()) {
          const given = read(row)
          const value = given === null ? null : storages[kind].convert(given)
          columnData[index]?.data.push(value)
          if (typeof value === 'string') letterCount += value.length
        }
        if (++rowCount === groupRows || letterCount >= groupLetters) await writeGroup()
      }
    },
    async end() {
      if (rowCount > 0) await writeGroup()
      await writer.finish()
    },
  }
}
