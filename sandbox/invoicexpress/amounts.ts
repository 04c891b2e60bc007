import type { StripeAccount } from '../stripe/account.ts'
import type { StripeInvoice } from '../stripe/objects.ts'
import { currencyOf, type IxDocument, type IxItem, toCents, toEuros, toMajor, toPay } from './objects.ts'

type Amounts = Pick<
  IxDocument,
  'sum' | 'discount' | 'before_taxes' | 'taxes' | 'retention' | 'total' | 'currency' | 'multicurrency'
>

/** Returns the invoice's amounts in euros. For an invoice in another currency, `multicurrency` holds its own total. */
export function amountsOf(invoice: StripeInvoice, retention: string | null): Amounts {
  const { total, currency: code } = invoice
  const before = invoice.total_excluding_tax ?? total
  const off = invoice.total_discount_amounts.reduce((all, { amount }) => all + amount, 0)
  const [before_taxes, taxes, discount] = [before, total - before, off].map(part => toEuros(part, code)) as [
    number,
    number,
    number,
  ]
  const parts = { before_taxes, taxes, retention }
  return {
    sum: toCents(before_taxes + discount) / 100,
    discount,
    ...parts,
    total: toPay(parts),
    currency: 'Euro',
    ...(code !== 'eur' && {
      multicurrency: { rate: currencyOf(code).rate, code, total: toMajor(total, code) },
    }),
  }
}

export function itemsOf({ lines, currency }: StripeInvoice, { taxRates }: StripeAccount): IxItem[] {
  const euros = (amount: number) => toEuros(amount, currency)
  return lines.data.map(line => {
    const quantity = Number(line.quantity_decimal ?? line.quantity ?? 1) || 1
    const discount = line.discount_amounts.reduce((all, { amount }) => all + amount, 0)
    const tax = line.taxes.reduce((all, { amount }) => all + amount, 0)
    const included = line.taxes.some(({ tax_behavior }) => tax_behavior === 'inclusive') ? tax : 0
    const subtotal = euros(line.subtotal - discount - included)
    const percentages = line.taxes.map(tax => taxRates.get(tax.tax_rate_details.tax_rate)?.percentage ?? 0)
    const value = percentages.reduce((all, percentage) => all + percentage, 0)
    return {
      name: line.description ?? 'Serviço',
      description: line.description ?? '',
      quantity: quantity.toFixed(1),
      unit_price: (euros(line.subtotal) / quantity).toFixed(4),
      unit: 'unit',
      tax: { id: 1_000 + Math.round(value * 100), name: value > 0 ? `IVA${value}` : 'Isento', value },
      discount: line.subtotal === 0 ? 0 : toCents((100 * discount) / line.subtotal) / 100,
      subtotal,
      tax_amount: euros(tax),
      discount_amount: euros(discount),
      total: toCents(subtotal + euros(tax)) / 100,
    }
  })
}
