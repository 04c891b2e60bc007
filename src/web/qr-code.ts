/** Turns the image of a QR code into an SVG path. A page around the element may forbid all images, even `data:` and `blob:` addresses. */

export interface QrCode {
  width: number
  height: number
  /** The dark areas, as the `d` attribute of an SVG path. */
  path: string
}

export async function readQrCode(image: Blob): Promise<QrCode> {
  const bitmap = await createImageBitmap(image)
  const { width, height } = bitmap
  const context = new OffscreenCanvas(width, height).getContext('2d')
  if (context === null) throw new Error('This browser draws nothing.')
  // A white background makes transparent pixels count as light.
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  context.drawImage(bitmap, 0, 0)
  return { width, height, path: drawDark(context.getImageData(0, 0, width, height)) }
}

/** Returns an SVG path of rectangles. A rectangle is a run of dark pixels, extended down while the next rows have the same run. */
export function drawDark({ data, width, height }: Pick<ImageData, 'data' | 'width' | 'height'>): string {
  const isDark = (x: number, y: number) => (data[(y * width + x) * 4 + 1] ?? 255) < 128
  const open = new Map<string, { x: number; y: number; length: number }>()
  let path = ''
  for (let y = 0; y <= height; y++) {
    const runs = new Map<string, { x: number; y: number; length: number }>()
    for (let x = 0; y < height && x < width; x++) {
      const begin = x
      while (x < width && isDark(x, y)) x++
      const key = `${begin} ${x}`
      if (x > begin) runs.set(key, open.get(key) ?? { x: begin, y, length: x - begin })
    }
    for (const [key, run] of open)
      if (runs.get(key) !== run) path += `M${run.x} ${run.y}h${run.length}v${y - run.y}h-${run.length}z`
    open.clear()
    for (const [key, run] of runs) open.set(key, run)
  }
  return path
}
