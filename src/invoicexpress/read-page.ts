/** A page of a list, whatever the list is called there. */

import { isWhole, shape } from '../upstream/shape.ts'
import type { Answer } from './client.ts'
import { readAs, readObject, unfit } from './read-answer.ts'

const isCount = isWhole(0, /^[0-9]{1,15}$/)
const pagination = shape({ current_page: isCount, total_pages: isCount, total_entries: isCount })

export interface Page {
  records: readonly unknown[]
  /** How many pages there are, and how many records on all of them. */
  pages: number
  total: number
}

/** The page that was asked for and no other: else one might be read for ever, or in another's place. */
export function readPage(answer: Answer, page: number): Page {
  const { pagination: told, ...rest } = readObject(answer)
  const { current_page, total_pages, total_entries } = readAs(pagination, told, 'a list')
  // Of every type it is `invoices`; of some types the type's own name was seen.
  const [records, ...others] = Object.values(rest)
  if (!Array.isArray(records) || others.length > 0) throw unfit('a list')
  const [current, pages, total] = [current_page, total_pages, total_entries].map(Number) as [
    number,
    number,
    number,
  ]
  // A list that grew shorter since its last page was read ends before this one.
  const isBeyond = total === 0 || page > pages
  const fits = current === page && pages <= Math.max(1, total) && isBeyond === (records.length === 0)
  if (!fits) throw unfit('a page')
  return { records, pages, total }
}
