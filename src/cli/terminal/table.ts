/** Text and tables that fit a terminal. A line is broken between words only: a long word, such as an address, may stick out. */

type Row = readonly string[]

export interface TableOptions {
  /** At least this wide, column by column. */
  atLeast?: readonly number[]
  /** Colours a part of a cell, which does not change its width. */
  paint?: (text: string, column: number, row: Row) => string
  width?: number
}

/** Where the output is no terminal, as wide as the narrowest one. */
export const terminalWidth = () => process.stdout.columns ?? 80

/** Lines of at most `width` characters, if their words allow it. */
export function wrapWords(text: string, width = terminalWidth()): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** A paragraph; `indent` is that of its further lines. */
export function formatParagraph(text: string, indent = ''): string {
  return `${wrapWords(text, terminalWidth() - indent.length).join(`\n${indent}`)}\n`
}

/** The last column is broken into lines; it gets at least this width, or what it needs. */
const narrowest = 30
const gap = '  '

/** Rows in columns, as wide as their widest cell. Columns that do not fit stand below the others, indented. */
export function formatTable(rows: readonly Row[], options: TableOptions = {}): string {
  const { atLeast = [], paint = text => text, width = terminalWidth() } = options
  const widths = columnWidths(rows, atLeast)
  const [first = [], ...below] = stack(widths, width)
  function formatLevel(row: Row, columns: readonly number[], indent: string): string {
    const draw = (part: string, column: number) => (part === '' ? '' : paint(part, column, row))
    let [beside, start] = [indent, indent.length]
    for (const column of columns.slice(0, -1)) {
      const [text = '', wide = 0] = [row[column], widths[column]]
      beside += draw(text, column) + ' '.repeat(wide - text.length) + gap
      start += wide + gap.length
    }
    const last = columns.at(-1) ?? 0
    return wrapWords(row[last] ?? '', width - start)
      .map((part, line) => `${`${line === 0 ? beside : ' '.repeat(start)}${draw(part, last)}`.trimEnd()}\n`)
      .join('')
  }
  return rows
    .map(row => {
      const others = below.filter(columns => columns.some(column => row[column] !== ''))
      return formatLevel(row, first, '') + others.map(columns => formatLevel(row, columns, gap)).join('')
    })
    .join('')
}

/** The columns of each line of a row. */
function stack(widths: readonly number[], width: number): number[][] {
  const levels: number[][] = [[]]
  let used = 0
  for (const [column, wanted] of widths.entries()) {
    const needed = column === widths.length - 1 ? Math.min(wanted, narrowest) : wanted
    if (used > 0 && used + needed > width) {
      levels.push([])
      used = gap.length
    }
    levels.at(-1)?.push(column)
    used += wanted + gap.length
  }
  return levels
}

function columnWidths(rows: readonly Row[], atLeast: readonly number[]): number[] {
  const [first = []] = rows
  return first.map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), atLeast[column] ?? 0),
  )
}

/** Rows that a long table measures together. */
const blockSize = 200

/** A table of any length, which is never held whole: its columns may become wider on the way. Nothing without a row. */
export function createLongTable(
  header: Row,
  write: (text: string) => Promise<void>,
  paint: NonNullable<TableOptions['paint']>,
) {
  let block: Row[] = [header]
  let widths: number[] = []
  const flush = async () => {
    const [rows, atLeast] = [block, widths]
    block = []
    widths = columnWidths(rows, atLeast)
    if (rows.some(row => row !== header)) await write(formatTable(rows, { atLeast, paint }))
  }
  return {
    async add(row: Row): Promise<void> {
      if (block.push(row) >= blockSize) await flush()
    },
    end: flush,
  }
}

/** On one line, and without control characters of a terminal: the text may come from anybody. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
}
