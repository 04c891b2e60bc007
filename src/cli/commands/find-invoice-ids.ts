/** Invoices by anything that names one: an ID, a number, or their document's ID, printed number or ATCUD. */
import { type Invoice, type InvoiceDocument, isInvoiceId } from '../../domain/invoice.ts'
import { foldText, searchWords } from '../../store/sql/search.ts'
import type { OperatorStore } from '../../store/store.ts'

/** Further ones are not looked for: the text names no single invoice. */
const maxFound = 20

/** An invoice's own ID is returned as it is, stored or not. For anything else all invoices are searched. */
export async function findInvoiceIds(store: OperatorStore, text: string): Promise<string[]> {
  if (isInvoiceId(text)) return [text]
  const wanted = foldText(text)
  if (wanted === '') return []
  const found = new Set<string>()
  const walk = { customers: null, withLines: false, words: searchWords(text) }
  for await (const batch of store.walkInvoices(walk))
    for (const { summary, document } of batch) {
      const { id, number, ix_id }: Invoice = JSON.parse(summary)
      const printed: InvoiceDocument | null = document && JSON.parse(document)
      // The printed number also without the type's code.
      const numbers = [number, printed?.number, printed?.number?.replace(/^[A-Z]{2,3} /, '')]
      const names = [...numbers, ix_id, printed?.atcud].map(name => foldText(String(name ?? '')))
      if (names.includes(wanted)) found.add(id)
      if (found.size === maxFound) return [...found]
    }
  return [...found]
}
