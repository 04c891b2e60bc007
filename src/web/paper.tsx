/** The head of a list on paper: customer, days, filters, and the moment. */
import type { Invoice, InvoiceFilters } from '../client/client.ts'
import { usePage } from './context.ts'
import type { Words } from './words/words.ts'

/** The names of the newest invoice count. */
export function PaperHead({ invoice, filters }: { invoice: Invoice | undefined; filters: InvoiceFilters }) {
  const { words, format } = usePage()
  const { date_from, date_to } = filters
  const others = describeFilters(filters, words)
  return (
    <>
      <p>
        <strong>{invoice?.display_name}</strong>
        {invoice?.customer_tax_id && (
          <span>
            {words.taxId} {invoice.customer_tax_id}
          </span>
        )}
      </p>
      <p>
        <span>
          {words.statementRange(
            date_from ? format.day(date_from) : null,
            date_to ? format.day(date_to) : null,
          )}
        </span>
        {others !== '' && <span>{words.statementFilters(others)}</span>}
        <span class="quiet">{words.statementOf(format.moment(new Date()))}</span>
      </p>
    </>
  )
}

function describeFilters({ status, ix_status, q }: InvoiceFilters, words: Words): string {
  return [
    status && words.status[status],
    ix_status && (words.document[ix_status] ?? ix_status),
    q && `“${q}”`,
  ]
    .filter(Boolean)
    .join(', ')
}
