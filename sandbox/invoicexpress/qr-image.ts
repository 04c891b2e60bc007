/** Creates a PNG that looks like a QR code and contains no data. */
import { hash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'

/** Modules per side, pixels per module, and the width of the white margin in modules. */
const [side, scale, margin] = [29, 4, 3]
const finder = 7

/** The same text gives the same image. */
export function createQrImage(text: string): Buffer {
  const bytes = Buffer.from(
    Array.from({ length: 4 }, (_, i) => hash('sha256', `${i}${text}`)).join(''),
    'hex',
  )
  const isDark = (x: number, y: number) => {
    const corner = cornerOf(x, y)
    if (corner !== null) return corner
    const bit = (y * side + x) % (bytes.length * 8)
    return (((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 1
  }
  const width = (side + 2 * margin) * scale
  const rowBytes = Math.ceil(width / 8)
  const pixels = Buffer.alloc(width * (rowBytes + 1), 0xff)
  for (let y = 0; y < width; y++) {
    const row = y * (rowBytes + 1)
    // Filter type 0 of the PNG format, which means no filter.
    pixels[row] = 0
    for (let x = 0; x < width; x++) {
      const [column, line] = [Math.floor(x / scale) - margin, Math.floor(y / scale) - margin]
      if (column < 0 || line < 0 || column >= side || line >= side || !isDark(column, line)) continue
      const at = row + 1 + (x >> 3)
      pixels[at] = (pixels[at] ?? 0) & ~(0x80 >> (x & 7))
    }
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(width, 4)
  header.set([1, 0, 0, 0, 0], 8)
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Whether a module in one of the three corner patterns is dark. Null outside these patterns. */
function cornerOf(x: number, y: number): boolean | null {
  const offset = (at: number) => (at <= finder ? at : at >= side - finder - 1 ? side - 1 - at : null)
  const [left, top] = [offset(x), offset(y)]
  if (left === null || top === null || (x > side / 2 && y > side / 2)) return null
  const ring = Math.max(Math.abs(left - 3), Math.abs(top - 3))
  return ring === 3 || ring <= 1
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}
