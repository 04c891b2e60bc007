/** Ranges of a long list, by when invoices were created. The ranges that are left are a stream's cursor. Pure. */

/** A range that is still to be read. Moments are in seconds of the platform's clock. */
export interface Range {
  from: number | null
  before: number | null
  /** The last invoice of it that is stored, the list being newest first; null when none is. */
  after: string | null
  /** Whether it is a part already, which is read to its end as it is. */
  isCut: boolean
}

export interface ListCursor {
  /** The stamp before the list's first request; null when it was not kept. */
  since: number | null
  /** When the list began, by our calendar in milliseconds; null when it was not kept. */
  begunAt: number | null
  isForced: boolean
  ranges: readonly Range[]
}

export const wholeList: Range = { from: null, before: null, after: null, isCut: false }

/** A list without a known beginning is cut as if it began then, in 2011: ranges before its first invoice end at once. */
const earliest = 1_300_000_000
/** As many parts of a period as there are readers, nearly: each is a request more, if it is empty. */
export const parts = 12

export function isWhole({ from, before, isCut }: Range): boolean {
  return from === null && before === null && !isCut
}

/** Seconds of a range that are left, once it was read to a moment. */
export function spanOf({ from, before }: Range, reached: number | null): number {
  const until = reached ?? before
  return until === null ? 0 : Math.max(0, until - (from ?? earliest))
}

/** What is left of a list is cut in periods, each twice as long as the one before it: the newest as long as what was read. */
export function cutByAge(range: Range, reached: number, readSeconds: number): Range[] {
  const bounds: number[] = []
  for (let age = readSeconds; reached - age > earliest; age = 2 * age + readSeconds)
    bounds.push(reached - age)
  return cutAt(range, bounds, false)
}

/** What is left of a period is cut in parts of one length. */
export function cutInParts(range: Range, reached: number): Range[] {
  const length = spanOf(range, reached) / parts
  const bounds = Array.from({ length: parts - 1 }, (_, index) => Math.floor(reached - (index + 1) * length))
  return cutAt(range, [...new Set(bounds)], true)
}

/** The first range goes on with what was read. `bounds`: the newest first. */
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

/** A cursor that cannot be read stands for the whole list. */
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

/** In a few words, for people. Other streams' cursors are returned as they are. */
export function formatCursor(text: string): string {
  if (!text.startsWith('{"')) return text
  const { ranges } = readListCursor(text)
  const reached = ranges.map(({ before }) => before).filter(before => before !== null)
  const newest = reached.length < ranges.length ? null : Math.max(...reached)
  const until =
    newest === null ? '' : `, the newest before ${new Date(newest * 1000).toISOString().slice(0, 10)}`
  return `${ranges.length} ${ranges.length === 1 ? 'part' : 'parts'} left${until}`
}
