import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer'
import { mostDecimals } from '../money.ts'
import type { ColumnKind, RowOptions, RowWriter, Value, Write } from './columns.ts'

/** How many rows are held, and written together: readers skip whole groups, and want few of them. */
const groupRows = 10_000

/** Enough for every amount: 9 bytes hold 20 digits. */
const decimal = {
  type: 'FIXED_LEN_BYTE_ARRAY',
  type_length: 9,
  converted_type: 'DECIMAL',
  precision: 20,
  scale: mostDecimals,
} as const

const elements: Record<ColumnKind, Omit<SchemaElement, 'name' | 'repetition_type'>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
  decimal,
  moment: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    // Older readers know the type above; newer ones are told by this that it is UTC, and no wall clock.
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
}

/** What the library takes for a value of a kind. */
function convert(kind: ColumnKind, value: Value): string | number | bigint | Date | null {
  if (value === null) return null
  switch (kind) {
    case 'text':
    case 'number':
      return value
    case 'integer':
      return BigInt(value)
    case 'decimal':
      return unscale(String(value))
    case 'moment':
      return new Date(value)
  }
}

/** A decimal as a whole number of its last place: "-12.34" is -12340n. */
function unscale(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(mostDecimals, '0'))
}

/** Lets go of its bytes whenever a group is complete. */
class FlushingWriter extends ByteWriter {
  private readonly write: Write

  constructor(write: Write) {
    super()
    this.write = write
  }

  async flush(): Promise<void> {
    const bytes = this.getBytes().slice()
    this.index = 0
    await this.write(bytes)
  }

  override finish(): Promise<void> {
    return this.flush()
  }
}

export function createParquetWriter<Source>({ columns, write }: RowOptions<Source>): RowWriter<Source> {
  const schema: SchemaElement[] = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, kind }) => ({ name, repetition_type: 'OPTIONAL' as const, ...elements[kind] })),
  ]
  const writer = new ParquetWriter({ writer: new FlushingWriter(write), schema })
  let group: Source[] = []

  async function writeGroup(): Promise<void> {
    const rows = group
    group = []
    await writer.write({
      columnData: columns.map(({ name, kind, read }) => {
        return { name, data: rows.map(row => convert(kind, read(row))) }
      }),
      rowGroupSize: groupRows,
    })
  }

  return {
    async write(rows) {
      for (const row of rows) if (group.push(row) === groupRows) await writeGroup()
    },
    async end() {
      if (group.length > 0) await writeGroup()
      await writer.finish()
    },
  }
}
