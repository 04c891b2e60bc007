/** Finds invoices by an ID, by a number, or by their document's ID, printed number or ATCUD. */
import { type Invoice, type InvoiceDocument, isInvoiceId } from '../../domain/invoice.ts'
import { foldText, searchWords } from '../../store/sql/search.ts'
import type { OperatorStore } from '../../store/store.ts'

/** The search ends after this number of invoices, because the text is then too general. */
const maxFound = 20

/** Returns an invoice's ID unchanged, even when that invoice is not stored. For any other text all invoices are searched. */
export async function findInvoiceIds(store: OperatorStore, text: string): Promise<string[]> {
  if (isInvoiceId(text)) return [text]
  const wanted = foldText(text)
  if (wanted === '') return []
  const found = new Set<string>()
  const query = { customers: null, withLines: false, words: searchWords(text) }
  for await (const batch of store.walkInvoices(query))
    for (const { summary, document } of batch) {
      const { id, number, ix_id }: Invoice = JSON.parse(summary)
      const printed: InvoiceDocument | null = document && JSON.parse(document)
      // The printed number also matches without the code of its document type, for example without "FT ".
      const numbers = [number, printed?.number, printed?.number?.replace(/^[A-Z]{2,3} /, '')]
      const names = [...numbers, ix_id, printed?.atcud].map(name => foldText(String(name ?? '')))
      if (names.includes(wanted)) found.add(id)
      if (found.size === maxFound) return [...found]
    }
  return [...found]
}
