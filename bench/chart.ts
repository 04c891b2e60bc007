/** The chart that opens docs/performance.md: bars in groups, one scale. */
import { writeFile } from 'node:fs/promises'
import { show } from './statistics.ts'

export interface Bar {
  name: string
  value: number
  /** Whether it is the service, or something that it is compared with. */
  isOurs: boolean
}

export interface BarGroup {
  title: string
  bars: readonly Bar[]
}

const [width, labelWidth, valueWidth, rowHeight, groupGap] = [720, 190, 70, 22, 40]

/** Colours for light and dark pages; each bar has its figure beside it, so none depends on its colour. */
const style = `text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.ours{fill:#0a6650}.other{fill:#9aa4af}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ours{fill:#3fb58f}.other{fill:#6e7681}}`

export function drawBars(title: string, groups: readonly BarGroup[]): string {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)))
  const parts: string[] = []
  let y = 24
  parts.push(`<text class="title" x="0" y="${y - 8}">${title}</text>`)
  for (const group of groups) {
    y += groupGap
    parts.push(`<text class="title" x="0" y="${y - 8}">${group.title}</text>`)
    for (const { name, value, isOurs } of group.bars) {
      const length = Math.max(1, Math.round(((width - labelWidth - valueWidth) * value) / most))
      parts.push(
        `<text x="0" y="${y + 14}">${name}</text>`,
        `<rect class="${isOurs ? 'ours' : 'other'}" x="${labelWidth}" y="${y + 2}" width="${length}" height="${rowHeight - 6}" rx="2"/>`,
        `<text x="${labelWidth + length + 6}" y="${y + 14}">${show(value, 0)}</text>`,
      )
      y += rowHeight
    }
  }
  const height = y + 8
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}">
<style>${style}</style>
${parts.join('\n')}
</svg>
`
}

export async function writeChart(svg: string): Promise<void> {
  await writeFile(new URL('../docs/rates.svg', import.meta.url), svg)
}
