/** Lists all lines of an invoice. Fails rather than return only some of the lines. */
import type { Line } from '../../domain/invoice.ts'
import { UnfitRecord } from '../source.ts'
import { lineShape, partPageShape, readAs } from './invoice-shape.ts'
import { mapLine } from './map-invoice.ts'

/** Maximum number of pages of an invoice's lines. A list with more pages repeats itself. */
const maxPages = 100

type LinePage = ReturnType<typeof readLinePage>

export function readLinePage(answer: unknown) {
  const { data, has_more } = readAs(partPageShape, answer, 'a list of lines')
  const lines = data.map(line => mapLine(readAs(lineShape, line, 'a line')))
  // The rounded value of a decimal quantity or price may exceed `Number.MAX_SAFE_INTEGER`. Such a line is refused.
  if (!lines.every(hasWholeNumbers)) throw unfit()
  return { lines, has_more }
}

export function areDistinct(lines: readonly Line[]): boolean {
  return new Set(lines.map(({ id }) => id)).size === lines.length
}

/** Reads page after page. `list` gets the id of the last line before the page. `first` holds the lines that came with the invoice. */
export async function listLines(list: (after: string | undefined) => Promise<LinePage>, first?: LinePage) {
  const all = new Map<string, Line>()
  let page = first
  for (let count = 0; count < maxPages; count++) {
    page ??= await list([...all.keys()].at(-1))
    for (const line of page.lines) {
      if (all.has(line.id)) throw unfit()
      all.set(line.id, line)
    }
    if (!page.has_more) return [...all.values()]
    if (page.lines.length === 0) break
    page = undefined
  }
  throw unfit()
}

function unfit(): UnfitRecord {
  return new UnfitRecord('Stripe sent lines that do not fit')
}

function hasWholeNumbers({ quantity, unit_amount_cents }: Line): boolean {
  return [quantity, unit_amount_cents].every(value => value === null || Number.isSafeInteger(value))
}
