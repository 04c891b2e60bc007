/** The invoices of a page, as a table; on a narrow screen each is a card, and still a row to those who listen. */
import { useEffect, useRef } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'
import { DocumentBadge, PaymentBadge } from './badge.tsx'
import { usePage } from './context.ts'
import { Link } from './link.tsx'

interface InvoiceTableProps {
  invoices: readonly Invoice[]
  /** Those that changed while somebody looked. */
  changed: ReadonlySet<string>
}

export function InvoiceTable({ invoices, changed }: InvoiceTableProps) {
  const { words, format, pick, opened } = usePage()
  const table = useRef<HTMLTableElement>(null)
  useEffect(() => {
    if (opened.current === null) return
    const row = invoices.findIndex(({ id }) => id === opened.current)
    opened.current = null
    table.current?.tBodies[0]?.rows[row]?.querySelector<HTMLElement>('.stretch')?.focus()
  }, [invoices, opened])
  const { column } = words
  return (
    <table class="invoices" ref={table} role="table" aria-label={words.history}>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col">
            {column.number}
          </th>
          <th role="columnheader" scope="col">
            {column.issued}
          </th>
          <th role="columnheader" scope="col">
            {column.status}
          </th>
          <th role="columnheader" scope="col">
            {column.document}
          </th>
          <th role="columnheader" scope="col" class="number">
            {column.total}
          </th>
          {pick && (
            <th role="columnheader" scope="col">
              <span class="hidden">{column.actions}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {invoices.map(invoice => (
          <tr role="row" key={invoice.id} class={changed.has(invoice.id) ? 'changed' : ''}>
            <th role="rowheader" scope="row">
              <Link to={{ invoice: invoice.id }} class="stretch">
                {invoice.number ?? <i>{words.noNumber}</i>}
              </Link>
            </th>
            <td role="cell" class="day">
              <time dateTime={invoice.issued_at}>{format.day(invoice.issued_at)}</time>
            </td>
            <td role="cell" class="payment">
              <PaymentBadge {...invoice} />
            </td>
            <td role="cell" class="document">
              <DocumentBadge {...invoice} />
            </td>
            <td role="cell" class="number total">
              {format.amount(invoice.total_cents, invoice.currency)}
            </td>
            {pick && (
              <td role="cell" class="pick">
                <button
                  type="button"
                  aria-label={words.pickOf(invoice.number ?? invoice.id)}
                  onClick={() => pick(invoice)}
                >
                  {words.pick}
                </button>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
