/** Lists the documents that refer to the certified document: credit notes, debit notes and receipts. */
import type { DocumentAbout, InvoiceDetail, InvoiceDocument } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { PdfButton } from './pdf-button.tsx'
import type { Words } from './words.ts'

export function RelatedDocuments({
  invoice,
  document,
}: {
  invoice: InvoiceDetail
  document: InvoiceDocument
}) {
  const { words, format, downloads } = usePage()
  if (!document.related?.length) return null
  return (
    <ul class="related stack">
      {document.related.map(about => {
        const { id, date, status } = about
        // The gross amount is comparable with the invoice's total. A withheld tax is not subtracted.
        const cents = about.gross_cents ?? about.total_cents
        const facts = [
          date && format.day(date),
          cents !== null && format.amount(cents, document.currency),
          status === 'canceled' && words.document.canceled,
        ]
        return (
          <li class="row" key={id}>
            <span>
              <strong>{nameDocument(about, words)}</strong> {facts.filter(Boolean).join(' · ')}
            </span>
            {downloads.ix && status !== 'draft' && (
              <PdfButton
                invoice={invoice}
                kind={{ related: id }}
                text={words.pdf}
                name={nameDocument(about, words)}
              />
            )}
          </li>
        )
      })}
    </ul>
  )
}

/** Returns the document's name, for example "Credit note NC 4". */
export function nameDocument({ type, number }: Pick<DocumentAbout, 'type' | 'number'>, words: Words): string {
  return `${words.documentType[type] ?? type} ${number ?? ''}`.trim()
}
