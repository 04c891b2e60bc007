/** The folded texts of an invoice, as its table holds them. */
import type { Invoice, InvoiceDocument } from '../../invoice.ts'
import { searchText } from '../read-model/search.ts'

/** In bytes of UTF-8. An index entry holds 2,704, of which some 50 are its own. */
const longestEntry = 2_600

export interface SearchColumns {
  /** Null when it is too long for the index. */
  search_text: string | null
  long_text: string | null
  search_ids: string
}

export function searchColumns(invoice: Invoice, document: InvoiceDocument | null = null): SearchColumns {
  const { search_text, search_ids } = searchText(invoice, document)
  const { customer_id, id, ix_status } = invoice
  const entry = customer_id + id + (ix_status ?? '') + search_text + search_ids
  const isLong = entry.length * 3 > longestEntry && Buffer.byteLength(entry) > longestEntry
  return isLong
    ? { search_text: null, long_text: search_text, search_ids }
    : { search_text, long_text: null, search_ids }
}
