/** Invoices as Stripe computes them: discounts of items, then of the invoice, then credit grants, then taxes, line by line. */
import type { Stripe } from 'stripe'

export type Coupon = { percent_off: number } | { amount_off: number }

export interface LinePlan {
  /** Negative ones are prorations: no discount applies to them. */
  amount: number
  coupons: readonly Coupon[]
  /** Whether the invoice's first discount is redeemed on this item too, under the same id. */
  reuses: boolean
}

export interface InvoicePlan {
  currency: string
  lines: readonly LinePlan[]
  coupons: readonly Coupon[]
  rates: readonly { id: string; percentage: number; inclusive: boolean }[]
  /** What is there of credit grants. */
  grant: number
  shipping: number
  /** Taxes are rounded line by line, or once for the whole invoice. */
  rounding: 'line' | 'invoice'
}

export interface ComputedInvoice {
  invoice: Stripe.Invoice
  lines: Stripe.InvoiceLineItem[]
  /** What the identities need beside the contract's fields. */
  exclusive: number
  grants: number
}

interface Working {
  plan: LinePlan
  left: number
  discounts: { id: string; amount: number; isItems: boolean }[]
  grant: number
}

export function computeInvoice(plan: InvoicePlan): ComputedInvoice {
  const working = plan.lines.map<Working>(line => ({
    plan: line,
    left: line.amount,
    discounts: [],
    grant: 0,
  }))
  const discountable = working.filter(({ left }) => left > 0)
  const take = (line: Working, id: string, amount: number, isItems: boolean) => {
    line.left -= amount
    line.discounts.push({ id, amount, isItems })
  }
  const shared = plan.coupons[0]
  for (const [index, line] of discountable.entries()) {
    for (const [turn, coupon] of line.plan.coupons.entries())
      take(line, `di_item${index}_${turn}`, partOf(coupon, line.left), true)
    if (line.plan.reuses && shared !== undefined) take(line, 'di_0', partOf(shared, line.left), true)
  }
  for (const [turn, coupon] of plan.coupons.entries()) {
    const lefts = discountable.map(({ left }) => left)
    const parts =
      'percent_off' in coupon ? lefts.map(left => partOf(coupon, left)) : share(coupon.amount_off, lefts)
    for (const [index, line] of discountable.entries()) take(line, `di_${turn}`, parts[index] ?? 0, false)
  }
  const granted = share(
    plan.grant,
    discountable.map(({ left }) => left),
  )
  for (const [index, line] of discountable.entries()) {
    line.grant = granted[index] ?? 0
    line.left -= line.grant
  }
  const lines = working.map((line, index) => lineOf(plan, line, index))
  const total_taxes = plan.rates.map(({ id, percentage, inclusive }, index) => ({
    ...taxOf(id, percentage, inclusive, sum(working.map(({ left }) => left))),
    ...(plan.rounding === 'line' && { amount: sum(lines.map(({ taxes }) => taxes?.[index]?.amount ?? 0)) }),
  }))
  const all = working.flatMap(({ discounts }) => discounts)
  const ids = [...new Set(all.map(({ id }) => id))]
  const amountsOf = (holds: (discount: (typeof all)[number]) => boolean) =>
    sum(all.filter(holds).map(({ amount }) => amount))
  const exclusive = sum(total_taxes.filter(tax => tax.tax_behavior === 'exclusive').map(tax => tax.amount))
  const grants = sum(granted)
  const subtotal = sum(plan.lines.map(({ amount }) => amount)) - amountsOf(({ isItems }) => isItems)
  const total = subtotal - amountsOf(({ isItems }) => !isItems) - grants + exclusive + plan.shipping
  const total_discount_amounts = ids.map(id => ({
    amount: amountsOf(other => other.id === id),
    discount: id,
  }))
  const invoice = {
    id: 'in_1computed',
    object: 'invoice',
    amount_shipping: plan.shipping,
    created: 1_773_223_200,
    currency: plan.currency,
    customer: 'cus_1computed',
    default_tax_rates: plan.rates,
    discounts: plan.coupons.map((_, turn) => `di_${turn}`),
    lines: { object: 'list', data: lines, has_more: false },
    status: 'open',
    subtotal,
    total,
    total_discount_amounts,
    total_excluding_tax: total - sum(total_taxes.map(({ amount }) => amount)),
    total_pretax_credit_amounts: pretax(total_discount_amounts, grants),
    total_taxes,
  }
  return { invoice: invoice as unknown as Stripe.Invoice, lines, exclusive, grants }
}

function lineOf(plan: InvoicePlan, { plan: { amount }, left, discounts, grant }: Working, index: number) {
  const discount_amounts = discounts.map(({ id, amount }) => ({ amount, discount: id }))
  const line = {
    id: `il_${index}`,
    object: 'line_item',
    amount,
    currency: plan.currency,
    description: 'Plano',
    discount_amounts,
    discountable: amount > 0,
    discounts: discounts.filter(({ isItems }) => isItems).map(({ id }) => id),
    pretax_credit_amounts: pretax(discount_amounts, grant),
    pricing: null,
    quantity: 1,
    quantity_decimal: '1',
    subtotal: amount,
    taxes: plan.rates.map(({ id, percentage, inclusive }) => taxOf(id, percentage, inclusive, left)),
  }
  return line as unknown as Stripe.InvoiceLineItem
}

function pretax(discounts: readonly { amount: number; discount: string }[], grant: number) {
  const credits = discounts.map(discount => ({ ...discount, type: 'discount' }))
  const granted = { amount: grant, credit_balance_transaction: 'cbtxn_1', type: 'credit_balance_transaction' }
  return grant === 0 ? credits : [...credits, granted]
}

function taxOf(tax_rate: string, percentage: number, inclusive: boolean, base: number) {
  const taxable_amount = inclusive ? Math.round((base * 100) / (100 + percentage)) : base
  return {
    amount: inclusive ? base - taxable_amount : Math.round((base * percentage) / 100) + 0,
    tax_behavior: inclusive ? 'inclusive' : 'exclusive',
    tax_rate_details: { tax_rate },
    taxable_amount,
    type: 'tax_rate_details',
  }
}

function partOf(coupon: Coupon, left: number): number {
  return 'percent_off' in coupon
    ? Math.round((left * coupon.percent_off) / 100)
    : Math.min(coupon.amount_off, left)
}

/** In proportion, to the last unit: what rounding leaves over goes to the last. */
function share(amount: number, lefts: readonly number[]): number[] {
  let rest = Math.min(amount, sum(lefts))
  let base = sum(lefts)
  return lefts.map(left => {
    const part = base === 0 ? 0 : Math.min(left, Math.round((rest * left) / base))
    rest -= part
    base -= left
    return part
  })
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
