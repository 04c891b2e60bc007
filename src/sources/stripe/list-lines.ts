/** All the lines of an invoice or a failure: never a part of them. */
import type { Line } from '../../domain/invoice.ts'
import { UnfitRecord } from '../source.ts'
import { lineShape, partPageShape, readAs } from './invoice-shape.ts'
import { mapLine } from './map-invoice.ts'

/** Far more than an invoice has: more pages are a loop. */
const maxPages = 100

type LinePage = ReturnType<typeof readLinePage>

export function readLinePage(answer: unknown) {
  const { data, has_more } = readAs(partPageShape, answer, 'a list of lines')
  const lines = data.map(line => mapLine(readAs(lineShape, line, 'a line')))
  // Decimals may come to more than a whole number can be.
  if (!lines.every(hasWholeNumbers)) throw unfit()
  return { lines, has_more }
}

export function areDistinct(lines: readonly Line[]): boolean {
  return new Set(lines.map(({ id }) => id)).size === lines.length
}

/** Reads page by page, each after a line; `first` are the lines that an invoice carries. */
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
