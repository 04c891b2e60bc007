import { includedTaxOf } from '../domain/money.ts'
import type { InvoiceDetail } from '../sdk/client.ts'
import { usePage } from './context.ts'
import { Fact, InvoiceTotal } from './invoice-facts.tsx'
import { NumberCell, RowHead, TableHead } from './table.tsx'

export function Lines({ invoice }: { invoice: InvoiceDetail }) {
  const { words, format } = usePage()
  const { lines, lines_source, currency } = invoice
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
      <Totals invoice={invoice} />
    </section>
  )
}

/** Shows the totals of an invoice. The amounts add up to the total. A tax that the prices include is shown below. */
function Totals({ invoice }: { invoice: InvoiceDetail }) {
  const { words, format } = usePage()
  const { subtotal_cents, discount_cents, tax_cents, tax_percent, total_cents, currency, taxes } = invoice
  // With several rates, a single percentage would be misleading.
  const isOneRate = tax_percent !== null && (taxes?.length ?? 1) <= 1
  const percent = isOneRate ? format.percent(tax_percent) : null
  const included = includedTaxOf(invoice)
  const added = tax_cents - included
  const rest = total_cents - subtotal_cents + discount_cents - added
  const total = (name: string, cents: number) => <Fact name={name}>{format.amount(cents, currency)}</Fact>
  return (
    <>
      <dl class="totals stack">
        {total(words.subtotal, subtotal_cents)}
        {discount_cents !== 0 && total(words.discount, -discount_cents)}
        {included === 0 && total(words.tax(percent), added)}
        {rest !== 0 && total(rest > 0 ? words.otherCharges : words.otherCredits, rest)}
        <Fact name={words.column.total} class="grand">
          <InvoiceTotal {...invoice} />
        </Fact>
      </dl>
      {included !== 0 && (
        <p class="included quiet">{`${words.taxIncluded(percent)}: ${format.amount(included, currency)}`}</p>
      )}
    </>
  )
}
