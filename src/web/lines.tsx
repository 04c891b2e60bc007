/** What was bought, and how it adds up. */
import type { InvoiceDetail, Line } from '../client/client.ts'
import { usePage } from './context.ts'

export function Lines({ invoice }: { invoice: InvoiceDetail }) {
  const { words, format } = usePage()
  const { lines, lines_source, currency, subtotal_cents, discount_cents, tax_cents, tax_percent } = invoice
  const hasDiscounts = lines.some(line => line.discount_cents !== 0)
  const amount = (cents: number | null) => (cents === null ? '' : format.amount(cents, currency))
  const quantity = ({ quantity }: Line) => (quantity === null ? '' : format.count(quantity))
  return (
    <section aria-label={words.lines}>
      {lines.length === 0 && (
        <p class="quiet">{lines_source === 'none' ? words.noLines : words.emptyLines}</p>
      )}
      {lines.length > 0 && (
        <table class="lines" role="table" aria-label={words.lines}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader" scope="col">
                {words.description}
              </th>
              <th role="columnheader" scope="col" class="number">
                {words.quantity}
              </th>
              <th role="columnheader" scope="col" class="number">
                {words.unitPrice}
              </th>
              {hasDiscounts && (
                <th role="columnheader" scope="col" class="number">
                  {words.discount}
                </th>
              )}
              <th role="columnheader" scope="col" class="number">
                {words.amount}
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {lines.map(line => (
              <tr role="row" key={line.id}>
                <th role="rowheader" scope="row">
                  {line.description ?? '—'}
                </th>
                <td role="cell" class="number" data-label={words.quantity}>
                  {quantity(line)}
                </td>
                <td role="cell" class="number" data-label={words.unitPrice}>
                  {amount(line.unit_amount_cents)}
                </td>
                {hasDiscounts && (
                  <td role="cell" class="number" data-label={words.discount}>
                    {line.discount_cents === 0 ? '' : amount(-line.discount_cents)}
                  </td>
                )}
                <td role="cell" class="number" data-label={words.amount}>
                  {amount(line.amount_cents)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl class="totals">
        <div>
          <dt>{words.subtotal}</dt>
          <dd>{amount(subtotal_cents)}</dd>
        </div>
        {discount_cents !== 0 && (
          <div>
            <dt>{words.discount}</dt>
            <dd>{amount(-discount_cents)}</dd>
          </div>
        )}
        <div>
          <dt>{words.tax(tax_percent === null ? null : format.percent(tax_percent))}</dt>
          <dd>{amount(tax_cents)}</dd>
        </div>
        <div class="grand">
          <dt>{words.total}</dt>
          <dd>{amount(invoice.total_cents)}</dd>
        </div>
      </dl>
    </section>
  )
}
