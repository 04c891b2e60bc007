/** The head of a list on paper: customer, days, filters, and the moment. */
import type { Invoice } from '../client/client.ts'
import { usePage } from './context.ts'

/** The names of the newest invoice count. */
export function PaperHead({ invoice }: { invoice: Invoice | undefined }) {
  const { nav, words, format } = usePage()
  const { date_from, date_to, status, ix_status, q } = nav.state.filters
  const others = [
    status && words.status[status],
    ix_status && (words.document[ix_status] ?? ix_status),
    q && `“${q}”`,
  ].filter(Boolean)
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
        {others.length > 0 && <span>{words.statementFilters(others.join(', '))}</span>}
        <span class="quiet">{words.statementOf(format.moment(new Date()))}</span>
      </p>
    </>
  )
}
