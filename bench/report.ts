/** Puts what was measured into docs/performance.md, between two marks, each section in the place of its last. */
import { readFile, writeFile } from 'node:fs/promises'

export interface Measurement {
  title: string
  /** Markdown: the tables. */
  body: string
}

const page = new URL('../docs/performance.md', import.meta.url)
const [begin, end] = ['<!-- bench:begin -->', '<!-- bench:end -->']

/** The order of the sections on the page. */
export const titles = {
  rates: 'Rates',
  expanded: 'Expanded lists',
  flat: 'Latency by size of the customer',
  metrics: 'Metrics',
  scale: 'Scale',
} as const

export function formatSection({ title, body }: Measurement, provenance: string): string {
  return `### ${title}\n\n${provenance}\n\n${body}\n`
}

/** Sections that were not measured this time stay as they are, with their own date. */
export async function writeReport(measurements: readonly Measurement[], provenance: string): Promise<void> {
  const text = await readFile(page, 'utf8')
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`docs/performance.md has lost ${begin} or ${end}.`)
  const sections = new Map<string, string>()
  for (const part of text
    .slice(from + begin.length, to)
    .split(/^### /m)
    .slice(1))
    sections.set(part.slice(0, part.indexOf('\n')), `### ${part.trim()}\n`)
  for (const measurement of measurements)
    sections.set(measurement.title, formatSection(measurement, provenance))
  const ordered = Object.values(titles).flatMap(title => sections.get(title) ?? [])
  await writeFile(
    page,
    `${text.slice(0, from)}${begin}\n\n${ordered.map(section => `${section}\n`).join('')}${text.slice(to)}`,
  )
}
