/** The line items and the totals. */
import type { InvoiceDetail } from '../client/client.ts'
import { usePage } from './context.ts'
import { NumberCell, RowHead, TableHead } from './table.tsx'

export function Lines({ invoice }: { invoice: InvoiceDetail }) {
  const { words, format } = usePage()
  const { lines, lines_source, currency, discount_cents, tax_percent } = invoice
  const hasDiscounts = lines.some(line => line.discount_cents !== 0)
  const amount = (cents: number | null) => (cents === null ? '' : format.amount(cents, currency))
  const discounts = hasDiscounts ? [words.discount] : []
  return (
    <section aria-label={words.lines}>
      {lines.length === 0 && (
        <p class="quiet">{lines_source === 'none' ? words.noLines : words.emptyLines}</p>
      )}
      {lines.length > 0 && (
        <table class="lines" role="table" aria-label={words.lines}>
          <TableHead
            texts={[words.description]}
            numbers={[words.quantity, words.unitPrice, ...discounts, words.amount]}
          />
          <tbody role="rowgroup">
            {lines.map(line => (
              <tr role="row" key={line.id}>
                <RowHead>{line.description ?? '—'}</RowHead>
                <NumberCell
                  label={words.quantity}
                  text={line.quantity === null ? '' : format.count(line.quantity)}
                />
                <NumberCell label={words.unitPrice} text={amount(line.unit_amount_cents)} />
                {hasDiscounts && (
                  <NumberCell label={words.discount} text={amount(-line.discount_cents || null)} />
                )}
                <NumberCell label={words.amount} text={amount(line.amount_cents)} />
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl class="totals stack">
        <Total name={words.subtotal} amount={amount(invoice.subtotal_cents)} />
        {discount_cents !== 0 && <Total name={words.discount} amount={amount(-discount_cents)} />}
        <Total
          name={words.tax(tax_percent === null ? null : format.percent(tax_percent))}
          amount={amount(invoice.tax_cents)}
        />
        <Total class="grand" name={words.column.total} amount={amount(invoice.total_cents)} />
      </dl>
    </section>
  )
}

function Total({ name, amount, class: kind = '' }: { name: string; amount: string; class?: string }) {
  return (
    <div class={kind}>
      <dt>{name}</dt>
      <dd>{amount}</dd>
    </div>
  )
}
