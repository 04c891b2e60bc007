/** Ranges of a long list, by the creation time of invoices. The remaining ranges are the cursor of a stream. Pure. */

/** A range of a list that remains to be read. Times are in seconds of the platform's clock. */
export interface Range {
  from: number | null
  before: number | null
  /** The last stored invoice of the range, which is read from its newest invoice. Null when none is stored. */
  after: string | null
  /** True when the range is a part of a period. A part is not cut again. */
  isCut: boolean
}

export interface ListCursor {
  /** Stamp before the list's first request. Null when the cursor does not hold it. */
  since: number | null
  /** Beginning of the list, in milliseconds of the local calendar clock. Null when the cursor does not hold it. */
  begunAt: number | null
  isForced: boolean
  ranges: readonly Range[]
}

export const wholeList: Range = { from: null, before: null, after: null, isCut: false }

/** Assumed beginning of a list whose beginning is unknown: March 2011. Ranges before its first invoice are empty and end at once. */
const earliest = 1_300_000_000
/** Number of parts of a period, nearly one for each reader. An empty part costs one request. */
export const parts = 12

export function isWhole({ from, before, isCut }: Range): boolean {
  return from === null && before === null && !isCut
}

/** Returns the seconds of a range that remain after it was read down to `reached`. */
export function spanOf({ from, before }: Range, reached: number | null): number {
  const until = reached ?? before
  return until === null ? 0 : Math.max(0, until - (from ?? earliest))
}

/**
 * Cuts the rest of a list into periods. The newest period is as long as the time
 * already read. Each older period is twice as long as the newer one beside it.
 */
export function cutByAge(range: Range, reached: number, readSeconds: number): Range[] {
  const bounds: number[] = []
  for (let age = readSeconds; reached - age > earliest; age = 2 * age + readSeconds)
    bounds.push(reached - age)
  return cutAt(range, bounds, false)
}

/** Cuts the rest of a period into parts of equal length. */
export function cutInParts(range: Range, reached: number): Range[] {
  const length = spanOf(range, reached) / parts
  const bounds = Array.from({ length: parts - 1 }, (_, index) => Math.floor(reached - (index + 1) * length))
  return cutAt(range, [...new Set(bounds)], true)
}

/** Cuts a range at `bounds`, the newest first. The first new range continues the reading that has begun. */
function cutAt(range: Range, bounds: readonly number[], isCut: boolean): Range[] {
  const inside = bounds.filter(bound => bound > (range.from ?? earliest))
  const starts = [...inside, range.from]
  const [first = null, ...others] = starts
  const older = others.map((from, index) => ({ from, before: starts[index] ?? null, after: null, isCut }))
  return [{ ...range, from: first, isCut: true }, ...older]
}

export function writeListCursor({ since, begunAt, isForced, ranges }: ListCursor): string {
  const parts = ranges.map(({ from, before, after, isCut }) => [from, before, after, isCut])
  return JSON.stringify({
    ...(since !== null && { since }),
    ...(begunAt !== null && { begun_at: begunAt }),
    ...(isForced && { forced: true }),
    parts,
  })
}

/** Reads a cursor. An unreadable cursor stands for the whole list. */
export function readListCursor(text: string | null): ListCursor {
  const beginning: ListCursor = { since: null, begunAt: null, isForced: false, ranges: [wholeList] }
  try {
    const { since = null, begun_at: begunAt = null, forced = false, parts } = JSON.parse(text ?? '{}')
    const ranges = (parts as [number | null, number | null, string | null, boolean][]).map(
      ([from, before, after, isCut]): Range => ({ from, before, after, isCut }),
    )
    return ranges.length === 0 ? beginning : { since, begunAt, isForced: forced, ranges }
  } catch {
    return beginning
  }
}

/** Describes the cursor of a list in a few words. A cursor of another kind of stream is returned unchanged. */
export function formatCursor(text: string): string {
  if (!text.startsWith('{"')) return text
  const { ranges } = readListCursor(text)
  const reached = ranges.map(({ before }) => before).filter(before => before !== null)
  const newest = reached.length < ranges.length ? null : Math.max(...reached)
  const until =
    newest === null ? '' : `, the newest before ${new Date(newest * 1000).toISOString().slice(0, 10)}`
  return `${ranges.length} ${ranges.length === 1 ? 'part' : 'parts'} left${until}`
}
