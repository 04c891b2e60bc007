/** Formats text and tables for a terminal. Lines break only between words, so a long word such as an address may exceed the width. */

type Row = readonly string[]

export interface TableOptions {
  atLeast?: readonly number[]
  /** Adds colour to a part of a cell. The visible width must not change. */
  paint?: (text: string, column: number, row: Row) => string
  width?: number
}

/** Width of the terminal. 80 where the output is not a terminal. */
export const terminalWidth = () => process.stdout.columns ?? 80

/** Returns lines of at most `width` characters. A longer word has a line of its own. */
export function wrapWords(text: string, width = terminalWidth()): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** Returns a wrapped paragraph. `indent` comes before every line except the first. */
export function formatParagraph(text: string, indent = ''): string {
  return `${wrapWords(text, terminalWidth() - indent.length).join(`\n${indent}`)}\n`
}

/** Minimum width of the last column, which is wrapped. A column with shorter content is narrower. */
const narrowest = 30
const gap = '  '

/** Formats rows in columns as wide as their widest cell. Columns that exceed the width stand on an indented line below. */
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

/** Returns the column numbers of each line of a row. */
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

const blockSize = 200

/** Writes a table of any length without holding all rows. Columns may become wider in later blocks. Nothing is written without a row. */
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

/** Puts text on one line and removes control characters, which could manipulate a terminal. The text may come from an attacker. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
}
