/** The folded texts of an invoice, as its table holds them. */
import type { Invoice } from '../../invoice.ts'
import { searchText } from '../read-model/search.ts'

/**
 * In bytes of UTF-8. An index entry holds 2,704; the customer, the id, its folded form and the states take up to 1,100 of
 * them.
 */
const longestInIndex = 1_500

export interface SearchColumns {
  /** Null when it is too long for the index. */
  search_text: string | null
  long_text: string | null
  search_ids: string
}

export function searchColumns(invoice: Invoice): SearchColumns {
  const { search_text, search_ids } = searchText(invoice)
  const isLong = search_text.length * 3 > longestInIndex && Buffer.byteLength(search_text) > longestInIndex
  return isLong
    ? { search_text: null, long_text: search_text, search_ids }
    : { search_text, long_text: null, search_ids }
}
