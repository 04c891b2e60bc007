/** Checks the pages of Stripe's lists and the records on them. */
import { shape } from '../calls/shape.ts'
import { SourceError, type Unfit, UnfitRecord } from '../source.ts'
import { isId } from './invoice-shape.ts'

/**
 * Keeps the records with an id, and counts the others. Throws when the page
 * holds the record `after` again, because the list would then never end.
 */
export function checkPage<T extends { id: string }>(
  page: { data: T[]; has_more: boolean },
  after: string | null,
) {
  const isPage = Array.isArray(page.data) && typeof page.has_more === 'boolean'
  const data = isPage ? page.data.filter(hasId) : []
  const fits = isPage && data.every(({ id }) => id !== after) && !(page.has_more && data.length === 0)
  if (!fits) throw new SourceError('failed', 'Stripe sent a page that does not fit')
  const next = page.has_more ? (data.at(-1)?.id ?? null) : null
  return { data, next, nameless: page.data.length - data.length }
}

const hasId = shape({ id: isId })

/** When at least this many records come and all fail the checks, the platform is at fault and not the records. */
const misfitsToDoubt = 10

/** Reads each record. Adds records that fail the checks to `unfit`, with the reason. */
export async function sortOut<T extends { id: string }, Read>(
  records: readonly T[],
  read: (record: T) => Promise<Read>,
  unfit: readonly Unfit[] = [],
): Promise<{ fitting: Read[]; unfit: Unfit[] }> {
  const fitting: Read[] = []
  const all = [...unfit]
  for (const [index, result] of (await Promise.allSettled(records.map(read))).entries())
    if (result.status === 'fulfilled') fitting.push(result.value)
    else if (result.reason instanceof UnfitRecord)
      all.push({ id: records[index]?.id ?? '', reason: result.reason.message })
    else throw result.reason
  const [first] = all
  if (fitting.length === 0 && all.length >= misfitsToDoubt && first !== undefined)
    throw new UnfitRecord(first.reason)
  return { fitting, unfit: all }
}
