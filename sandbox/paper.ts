/** Writes PDFs of A4 pages with text, lines and areas, in fonts that every PDF reader has. */

/** Coordinates are in points from the top left corner. */
export interface Paper {
  readonly width: number
  readonly height: number
  text(x: number, y: number, text: string, style?: TextStyle): void
  rule(x: number, y: number, width: number, grey?: number): void
  area(x: number, y: number, width: number, height: number, colour: Colour): void
  newPage(): void
  /** Draws on every page after the number of pages is known. */
  onEachPage(draw: (page: number, pages: number) => void): void
  finish(): Buffer
}

export type Colour = readonly [red: number, green: number, blue: number]

export interface TextStyle {
  size?: number
  bold?: boolean
  colour?: Colour
  /** Whether the text ends at x instead of starting there. */
  right?: boolean
  /** Width in points. A longer text is cut off. */
  fit?: number
}

const black: Colour = [0.09, 0.13, 0.11]

export function createPaper(): Paper {
  const [width, height] = [595, 842]
  const pages: string[][] = [[]]
  let current = pages[0] ?? []
  const put = (operation: string) => void current.push(operation)

  return {
    width,
    height,
    text(x, y, text, { size = 9.5, bold = false, colour = black, right = false, fit } = {}) {
      const shown = fit === undefined ? text : cut(text, fit, size)
      const start = right ? x - measure(shown, size) : x
      put(
        `BT /F${bold ? 2 : 1} ${size} Tf ${colour.join(' ')} rg ${inPoints(start)} ${inPoints(height - y)} Td (${escapeText(shown)}) Tj ET`,
      )
    },
    rule(x, y, length, grey = 0.85) {
      put(
        `${grey} G 0.7 w ${inPoints(x)} ${inPoints(height - y)} m ${inPoints(x + length)} ${inPoints(height - y)} l S`,
      )
    },
    area(x, y, areaWidth, areaHeight, colour) {
      put(
        `${colour.join(' ')} rg ${inPoints(x)} ${inPoints(height - y - areaHeight)} ${areaWidth} ${areaHeight} re f`,
      )
    },
    newPage() {
      current = []
      pages.push(current)
    },
    onEachPage(draw) {
      for (const [index, page] of pages.entries()) {
        current = page
        draw(index + 1, pages.length)
      }
    },
    finish: () =>
      assemble(
        pages.map(page => page.join('\n')),
        width,
        height,
      ),
  }
}

const inPoints = (points: number) => points.toFixed(2)

function assemble(pages: readonly string[], width: number, height: number): Buffer {
  const kids = pages.map((_, index) => `${5 + index * 2} 0 R`).join(' ')
  return write([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>',
    ...pages.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${width} ${height}] /Contents ${6 + index * 2} 0 R /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    ]),
  ])
}

/** Writes the PDF's objects with their byte offsets. In Latin-1 a character is one byte, so lengths of texts are offsets. */
function write(objects: readonly string[]): Buffer {
  let file = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n'
  const offsets: number[] = []
  for (const [index, object] of objects.entries()) {
    offsets.push(file.length)
    file += `${index + 1} 0 obj\n${object}\nendobj\n`
  }
  const start = file.length
  const entries = offsets.map(offset => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${entries}`
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(file, 'latin1')
}

/** Replaces characters outside Latin-1 by question marks. */
function escapeText(text: string): string {
  return text.replace(/[^\x20-\x7e\xa0-\xff]/gu, '?').replace(/[\\()]/g, '\\$&')
}

/** Widths of Helvetica's characters from the space to the tilde, in thousandths of the font size. Bold digits have the same width. */
const widths = [
  ...[278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278],
  ...[556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556],
  ...[1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778],
  ...[667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556],
  ...[333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556],
  ...[556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584],
]

/** Measures without accents, because accents do not change a letter's width. */
function measure(text: string, size: number): number {
  const plain = text.normalize('NFD').replace(/\p{M}/gu, '')
  return (
    [...plain].reduce((all, letter) => all + (widths[letter.charCodeAt(0) - 32] ?? 556), 0) * (size / 1000)
  )
}

function cut(text: string, fit: number, size: number): string {
  if (measure(text, size) <= fit) return text
  let end = text.length
  while (end > 0 && measure(`${text.slice(0, end)}...`, size) > fit) end--
  return `${text.slice(0, end).trimEnd()}...`
}
