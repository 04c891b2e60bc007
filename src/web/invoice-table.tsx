/** Shows the invoices of a page as a table. On a narrow screen each row looks like a card, but screen readers still announce table rows. */
import { useEffect, useRef } from 'preact/hooks'
import type { ListedInvoice } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Button, Link } from './controls.tsx'
import { InvoiceTotal, StateBadge } from './invoice-facts.tsx'
import { remainderOf } from './invoice-state.ts'
import { PayButton } from './pay-button.tsx'
import { InvoicePdf } from './pdf-button.tsx'
import { RowMenu } from './row-menu.tsx'
import { Cell, RowHead, TableHead } from './table.tsx'

interface InvoiceTableProps {
  invoices: readonly ListedInvoice[]
  changed: ReadonlySet<string>
}

export function InvoiceTable({ invoices, changed }: InvoiceTableProps) {
  const { words, opened } = usePage()
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
      <TableHead texts={[column.number, column.issued, column.state]} numbers={[column.total]}>
        <th role="columnheader" scope="col" class="on-screen">
          <span class="hidden">{column.actions}</span>
        </th>
      </TableHead>
      <tbody role="rowgroup">
        {invoices.map(invoice => (
          <Row key={invoice.id} invoice={invoice} hasChanged={changed.has(invoice.id)} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ invoice, hasChanged }: { invoice: ListedInvoice; hasChanged: boolean }) {
  const { words, format, pick } = usePage()
  const remainder = remainderOf(invoice)
  return (
    <tr role="row" class={hasChanged ? 'changed' : ''}>
      <RowHead>
        <Link to={{ invoice: invoice.id }} class="stretch strong">
          {invoice.document?.number ?? invoice.number ?? <i>{words.noNumber}</i>}
        </Link>
        {invoice.document?.number && invoice.number && <span class="other quiet">{invoice.number}</span>}
      </RowHead>
      <Cell class="day">
        <time dateTime={invoice.issued_at}>{format.day(invoice.issued_at)}</time>
      </Cell>
      <Cell class="state">
        <StateBadge invoice={invoice} />
      </Cell>
      <Cell class="number">
        <strong>
          <InvoiceTotal {...invoice} />
        </strong>
        {remainder !== null && (
          <span class="other quiet">{words.remains(format.amount(remainder, invoice.currency))}</span>
        )}
      </Cell>
      <Cell class="row-actions on-screen">
        <PayButton invoice={invoice} />
        <InvoicePdf invoice={invoice} />
        <RowMenu invoice={invoice} />
        {pick && (
          <Button
            text={words.pick}
            aria-label={words.pickOf(invoice.number ?? invoice.id)}
            onClick={() => pick(invoice)}
          />
        )}
      </Cell>
    </tr>
  )
}
