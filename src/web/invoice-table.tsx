/** The invoices of a page, as a table; on a narrow screen each is a card, and a row to a screen reader. */
import { useEffect, useRef } from 'preact/hooks'
import type { Invoice } from '../client/client.ts'
import { usePage } from './context.ts'
import { Button, Link } from './controls.tsx'
import { DocumentBadge, InvoiceTotal, PaymentBadge } from './invoice-facts.tsx'
import { PayButton } from './pay-button.tsx'
import { RowPdf } from './pdf-button.tsx'
import { Cell, RowHead, TableHead } from './table.tsx'

export function InvoiceTable(props: { invoices: readonly Invoice[]; changed: ReadonlySet<string> }) {
  const { invoices, changed } = props
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
      <TableHead
        texts={[column.number, column.issued, column.status, column.document]}
        numbers={[column.total]}
      >
        <th role="columnheader" scope="col" class="row-pdfs on-screen">
          PDF
        </th>
        {pick && (
          <th role="columnheader" scope="col">
            <span class="hidden">{column.actions}</span>
          </th>
        )}
      </TableHead>
      <tbody role="rowgroup">
        {invoices.map(invoice => (
          <tr role="row" key={invoice.id} class={changed.has(invoice.id) ? 'changed' : ''}>
            <RowHead>
              <Link to={{ invoice: invoice.id }} class="stretch strong">
                {invoice.number ?? <i>{words.noNumber}</i>}
              </Link>
            </RowHead>
            <Cell class="day">
              <time dateTime={invoice.issued_at}>{format.day(invoice.issued_at)}</time>
            </Cell>
            <Cell class="payment">
              <PaymentBadge {...invoice} />
              <PayButton invoice={invoice} />
            </Cell>
            <Cell class="document">
              <DocumentBadge {...invoice} />
            </Cell>
            <Cell class="number strong">
              <InvoiceTotal {...invoice} />
            </Cell>
            <Cell class="row-pdfs on-screen">
              <RowPdf invoice={invoice} kind="ix" />
              <RowPdf invoice={invoice} kind="payments" />
            </Cell>
            {pick && (
              <Cell class="pick">
                <Button
                  text={words.pick}
                  aria-label={words.pickOf(invoice.number ?? invoice.id)}
                  onClick={() => pick(invoice)}
                />
              </Cell>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
