import type { InvoiceRow } from '../sql/invoice-row.ts'

/** In bytes of UTF-8. An index entry holds 2,704, of which some 50 are its own. */
const longestEntry = 2_600

/** The columns that are searched, as bytes. A text that is too long for the index stands in a column of its own. */
export function splitText({ customer_id, id, ix_status, search_text, search_ids }: InvoiceRow) {
  const entry = customer_id + id + (ix_status ?? '') + search_text + search_ids
  const isLong = entry.length * 3 > longestEntry && Buffer.byteLength(entry) > longestEntry
  const [text, ids] = [Buffer.from(search_text), Buffer.from(search_ids)]
  return isLong
    ? { search_text: null, long_text: text, search_ids: ids }
    : { search_text: text, long_text: null, search_ids: ids }
}
