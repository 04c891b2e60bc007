/** Lines of an invoice, and the totals, which are sums of the lines. */
import { inOnePiece, integer, letters, pick, type Random } from '../random.ts'
import type { Taxation } from './customers.ts'
import type { StripeDiscountAmount, StripeInvoice, StripeLine, StripeTax, StripeTaxRate } from './objects.ts'

export type Discount = { id: string } & ({ percent: number } | { amountOff: number })

/** Properties that all lines of an invoice share. */
export interface Plan {
  invoice: string
  currency: string
  price: number
  period: { start: number; end: number }
  taxation: Taxation
  discounts: Discount[]
  /** Whether items may have their own discounts, which are subtracted before the invoice's discounts. */
  hasItemDiscounts: boolean
}

const products = [
  'Plano Essencial',
  'Plano Profissional',
  'Utilizador adicional',
  'Apoio técnico',
  'Formação à distância',
]

/** `coupons` is a separate random sequence, so that discounts of items do not change other data. */
export function createLine(random: Random, coupons: Random, plan: Plan): StripeLine {
  const product = integer(random, 0, products.length - 1)
  const { proration, ...priced } = priceLine(random, plan.price * (product + 1))
  const own = plan.hasItemDiscounts && !proration ? createItemDiscounts(coupons, plan.price) : []
  const discount_amounts = discountLine(priced.amount, proration ? [] : [...own, ...plan.discounts])
  const net = priced.amount - sum(discount_amounts)
  const rates = plan.taxation.mixed ? [pick(random, plan.taxation.rates)] : plan.taxation.rates
  return {
    id: inOnePiece('il_1', letters(random, 23)),
    object: 'line_item',
    currency: plan.currency,
    description:
      random() < 0.04 ? null : inOnePiece(products[product] ?? '', proration ? ' (tempo não usado)' : ''),
    discount_amounts,
    discountable: !proration,
    // Contains only the item's own discounts. `discount_amounts` also has the item's share of the invoice's discounts.
    discounts: own.map(({ id }) => id),
    invoice: plan.invoice,
    livemode: false,
    metadata: {},
    parent: {
      invoice_item_details: {
        invoice_item: inOnePiece('ii_1', letters(random, 23)),
        proration,
        proration_details: proration ? { credited_items: null } : null,
        subscription: null,
      },
      subscription_item_details: null,
      type: 'invoice_item_details',
    },
    period: plan.period,
    pretax_credit_amounts: discount_amounts.map(discount => ({ ...discount, type: 'discount' })),
    subscription: null,
    ...priced,
    subtotal: priced.amount,
    taxes: rates.map(rate => taxOf(net, rate)),
  }
}

type Priced = Pick<StripeLine, 'amount' | 'pricing' | 'quantity' | 'quantity_decimal'> & {
  proration: boolean
}

function priceLine(random: Random, unit: number): Priced {
  const chance = random()
  const quantity = integer(random, 1, 6)
  const pricing = (unit_amount_decimal: string) => ({
    price_details: {
      price: inOnePiece('price_1', letters(random, 12)),
      product: inOnePiece('prod_', letters(random, 8)),
    },
    type: 'price_details',
    unit_amount_decimal,
  })
  const whole = { quantity, quantity_decimal: String(quantity), proration: false }
  // A line with half a unit. The amount is rounded to a whole number.
  if (chance < 0.08) {
    const halves = quantity * 2 + 1
    return {
      amount: round((unit * halves) / 2),
      pricing: pricing(String(unit)),
      quantity: null,
      quantity_decimal: `${quantity}.5`,
      proration: false,
    }
  }
  // A line whose unit price has fractions of a cent, as for metered usage.
  if (chance < 0.14) {
    const calls = quantity * 1_000 + 7
    const price = { pricing: pricing('1.2345'), quantity: calls, quantity_decimal: String(calls) }
    return { amount: round((calls * 12_345) / 10_000), ...price, proration: false }
  }
  if (chance < 0.2) {
    const none = { quantity: null, quantity_decimal: null, proration: false }
    return { amount: unit * quantity, pricing: null, ...(chance < 0.17 ? none : whole) }
  }
  if (chance < 0.28) {
    const one = { quantity: 1, quantity_decimal: '1' }
    const amount = round(-unit * random())
    return { amount, pricing: pricing(String(amount)), ...one, proration: true }
  }
  return { amount: unit * quantity, pricing: pricing(String(unit)), ...whole }
}

/** Creates up to two discounts of an item. An absolute discount may exceed the item's price. */
function createItemDiscounts(coupons: Random, price: number): Discount[] {
  const count = pick(coupons, [0, 1, 1, 2])
  return Array.from({ length: count }, () => {
    const id = inOnePiece('di_1', letters(coupons, 23))
    return coupons() < 0.6
      ? { id, percent: pick(coupons, [10, 15, 33.33, 50]) }
      : { id, amountOff: integer(coupons, 1, price * 2) }
  })
}

/** Each discount applies to the amount that remains after the earlier discounts. */
function discountLine(amount: number, discounts: readonly Discount[]): StripeDiscountAmount[] {
  let remaining = amount
  return discounts.map(discount => {
    const part =
      'percent' in discount
        ? round((remaining * discount.percent) / 100)
        : Math.min(discount.amountOff, remaining)
    remaining -= part
    return { amount: part, discount: discount.id }
  })
}

function taxOf(net: number, { id, percentage, inclusive }: StripeTaxRate): StripeTax {
  const without = inclusive ? withoutTax(net, percentage) : net
  return {
    amount: inclusive ? net - without : round((net * percentage) / 100),
    tax_behavior: inclusive ? 'inclusive' : 'exclusive',
    tax_rate_details: { tax_rate: id },
    taxability_reason: percentage === 0 ? 'zero_rated' : 'standard_rated',
    taxable_amount: without,
    type: 'tax_rate_details',
  }
}

export function withoutTax(gross: number, percentage: number): number {
  return round((gross * 100) / (100 + percentage))
}

export type Totals = Pick<
  StripeInvoice,
  | 'subtotal'
  | 'subtotal_excluding_tax'
  | 'total'
  | 'total_discount_amounts'
  | 'total_excluding_tax'
  | 'total_pretax_credit_amounts'
  | 'total_taxes'
>

export function totalsOf(lines: readonly StripeLine[], rates: ReadonlyMap<string, StripeTaxRate>): Totals {
  const discounts = new Map<string, StripeDiscountAmount>()
  const taxes = new Map<string, StripeTax>()
  let subtotal = 0
  let subtotal_excluding_tax = 0
  let invoice_discount = 0
  for (const line of lines) {
    const own = line.discount_amounts.filter(({ discount }) => line.discounts.includes(discount))
    // As at Stripe, the subtotal is reduced by item discounts and not by discounts of the whole invoice.
    const reduced = line.subtotal - sum(own)
    subtotal += reduced
    invoice_discount += sum(line.discount_amounts) - sum(own)
    const [tax] = line.taxes
    subtotal_excluding_tax +=
      tax?.tax_behavior === 'inclusive'
        ? withoutTax(reduced, rates.get(tax.tax_rate_details.tax_rate)?.percentage ?? 0)
        : reduced
    for (const part of line.discount_amounts) {
      const known = discounts.get(part.discount)
      if (known === undefined) discounts.set(part.discount, { ...part })
      else known.amount += part.amount
    }
    for (const part of line.taxes) {
      const known = taxes.get(part.tax_rate_details.tax_rate)
      if (known === undefined) taxes.set(part.tax_rate_details.tax_rate, { ...part })
      else {
        known.amount += part.amount
        known.taxable_amount += part.taxable_amount
      }
    }
  }
  const total_taxes = [...taxes.values()]
  const total_discount_amounts = [...discounts.values()]
  const exclusive = total_taxes.filter(({ tax_behavior }) => tax_behavior === 'exclusive')
  const total = subtotal - invoice_discount + sum(exclusive)
  return {
    subtotal,
    subtotal_excluding_tax,
    total,
    total_discount_amounts,
    total_excluding_tax: total - sum(total_taxes),
    total_pretax_credit_amounts: total_discount_amounts.map(part => ({ ...part, type: 'discount' })),
    total_taxes,
  }
}

function sum(parts: readonly { amount: number }[]): number {
  return parts.reduce((total, { amount }) => total + amount, 0)
}

/** Rounds to a whole number. Adding 0 turns -0 into 0, because JSON cannot express -0. */
function round(value: number): number {
  return Math.round(value) + 0
}
