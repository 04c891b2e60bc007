type Row = readonly string[]

/** Rows in columns, as wide as their widest cell and at least as wide as given. */
export function formatTable(rows: readonly Row[], atLeast: readonly number[] = []): string {
  const widths = columnWidths(rows, atLeast)
  return rows
    .map(
      row =>
        `${row
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function columnWidths(rows: readonly Row[], atLeast: readonly number[]): number[] {
  const [first = []] = rows
  return first.map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), atLeast[column] ?? 0),
  )
}

export interface LongTable {
  add(row: Row): Promise<void>
  end(): Promise<void>
}

/** A table of any length, which is never held whole: its columns may become wider on the way. */
export function createLongTable(
  header: Row,
  write: (text: string) => Promise<void>,
  blockSize = 200,
): LongTable {
  let block: Row[] = [header]
  let widths: number[] = []
  const flush = async () => {
    const [rows, before] = [block, widths]
    block = []
    widths = columnWidths(rows, before)
    await write(formatTable(rows, before))
  }
  return {
    async add(row) {
      if (block.push(row) >= blockSize) await flush()
    },
    async end() {
      if (block.length > 0) await flush()
    },
  }
}

/** On one line, and without control characters of a terminal: the text may come from anybody. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
}
