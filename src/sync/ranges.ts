/** Ranges of a long list, by when invoices were created. The ranges that are left are a stream's cursor. Pure. */

/** A range that is still to be read. Moments are in seconds of the platform's clock. */
export interface Range {
  from: number | null
  before: number | null
  /** The last invoice of it that is stored, the list being newest first; null when none is. */
  after: string | null
}

export interface ListCursor {
  /** The stamp before the list's first request; null when it was not kept. */
  since: number | null
  /** When the list began, by our calendar in milliseconds; null when it was not kept. */
  begunAt: number | null
  isForced: boolean
  ranges: readonly Range[]
}

export const wholeList: Range = { from: null, before: null, after: null }

export function writeCursor({ since, begunAt, isForced, ranges }: ListCursor): string {
  const parts = ranges.map(({ from, before, after }) => [from, before, after])
  return JSON.stringify({
    ...(since !== null && { since }),
    ...(begunAt !== null && { begun_at: begunAt }),
    ...(isForced && { forced: true }),
    parts,
  })
}

/** A cursor that cannot be read stands for the whole list. */
export function readCursor(text: string | null): ListCursor {
  const beginning: ListCursor = { since: null, begunAt: null, isForced: false, ranges: [wholeList] }
  try {
    const { since = null, begun_at: begunAt = null, forced = false, parts } = JSON.parse(text ?? '{}')
    const ranges = (parts as [number | null, number | null, string | null][]).map(
      ([from, before, after]): Range => ({ from, before, after }),
    )
    return ranges.length === 0 ? beginning : { since, begunAt, isForced: forced, ranges }
  } catch {
    return beginning
  }
}

/** In a few words, for people. Other streams' cursors are returned as they are. */
export function formatCursor(text: string): string {
  if (!text.startsWith('{"')) return text
  const { ranges } = readCursor(text)
  const reached = ranges.map(({ before }) => before).filter(before => before !== null)
  const newest = reached.length < ranges.length ? null : Math.max(...reached)
  const until =
    newest === null ? '' : `, the newest before ${new Date(newest * 1000).toISOString().slice(0, 10)}`
  return `${ranges.length} ${ranges.length === 1 ? 'part' : 'parts'} left${until}`
}
