/** The domain: what is owed on an invoice and what was paid, as the payment platform has it. Never part of the contract's summary or detail. */

/** What the facts of an invoice follow from, beside what is told of them. */
interface Billed {
  status: string
  total_cents: number
}

export interface PaymentFacts {
  /** YYYY-MM-DD, in UTC; null when the platform collects by itself, or when nothing is known. */
  due_date: string | null
  /** What is to be paid in all: the total with the balance of before, less credit notes before payment. Never negative at the platform. */
  amount_due_cents: number
  amount_paid_cents: number
  /** What is still to be paid: what is due, less what was paid. */
  amount_remaining_cents: number
  /** Credit notes of before the payment, which lower what is due, and of after it, which do not. */
  pre_payment_credit_cents: number
  post_payment_credit_cents: number
  /** The customer's balance of before, which the invoice takes over: negative is credit, positive is owed. */
  starting_balance_cents: number
  /** When it was paid, voided or given up: ISO 8601, UTC, with milliseconds; null before, and when it is not known. */
  closed_at: string | null
  /** By rate and reason, the highest rate first; null when it is not known. */
  taxes: readonly TaxByRate[] | null
  /** In the order of their moments, those that are not paid yet last. */
  payments: readonly Payment[]
}

/** A field that is not known is null. */
export interface TaxByRate {
  rate_percent: number | null
  base_cents: number | null
  tax_cents: number
  /** The platform's own word for the reason of the rate, such as `reverse_charge`. */
  reason: string | null
}

/** A payment of an invoice. Several invoices may share one. */
export interface Payment {
  /** Of the PaymentIntent (`pi_…`), or of what else paid. */
  id: string
  /** What it paid of this invoice; 0 until it is paid. */
  amount_cents: number
  /** ISO 8601, UTC, with milliseconds; null until it is paid. */
  paid_at: string | null
}

/** One by one, in one order: equal facts are equal texts. */
export const onlyPaymentFacts = (facts: PaymentFacts): PaymentFacts => ({
  due_date: facts.due_date,
  amount_due_cents: facts.amount_due_cents,
  amount_paid_cents: facts.amount_paid_cents,
  amount_remaining_cents: facts.amount_remaining_cents,
  pre_payment_credit_cents: facts.pre_payment_credit_cents,
  post_payment_credit_cents: facts.post_payment_credit_cents,
  starting_balance_cents: facts.starting_balance_cents,
  closed_at: facts.closed_at ?? null,
  taxes: facts.taxes?.map(onlyTax) ?? null,
  payments: facts.payments?.map(onlyPayment),
})

const onlyTax = (tax: TaxByRate): TaxByRate => ({
  rate_percent: tax.rate_percent,
  base_cents: tax.base_cents,
  tax_cents: tax.tax_cents,
  reason: tax.reason,
})

const onlyPayment = (payment: Payment): Payment => ({
  id: payment.id,
  amount_cents: payment.amount_cents,
  paid_at: payment.paid_at,
})

const fieldNames = Object.keys(onlyPaymentFacts({} as PaymentFacts)) as (keyof PaymentFacts)[]

/** Names of the facts that differ. */
export function changedFacts(before: PaymentFacts, after: PaymentFacts): (keyof PaymentFacts)[] {
  const [one, other] = [onlyPaymentFacts(before), onlyPaymentFacts(after)]
  return fieldNames.filter(name => JSON.stringify(one[name]) !== JSON.stringify(other[name]))
}

/** The facts as the text that is stored. */
export function serializePaymentFacts(facts: PaymentFacts): string {
  return JSON.stringify(onlyPaymentFacts(facts))
}

/**
 * Completes what is known of an invoice's payment from its status and total, by the platform's own arithmetic. A paid invoice
 * was paid whole, nothing remains of a void one, and of every other what is due remains but for what was paid.
 */
export function completePaymentFacts(
  { status, total_cents }: Billed,
  given: Partial<PaymentFacts> = {},
): PaymentFacts {
  const { starting_balance_cents = 0, pre_payment_credit_cents = 0 } = given
  const due = Math.max(total_cents + starting_balance_cents - pre_payment_credit_cents, 0)
  const { amount_due_cents = due } = given
  const { amount_paid_cents = status === 'paid' ? amount_due_cents : 0 } = given
  const remaining = status === 'paid' || status === 'void' ? 0 : amount_due_cents - amount_paid_cents
  const { amount_remaining_cents = remaining } = given
  return {
    due_date: given.due_date ?? null,
    amount_due_cents,
    amount_paid_cents,
    amount_remaining_cents,
    pre_payment_credit_cents,
    post_payment_credit_cents: given.post_payment_credit_cents ?? 0,
    starting_balance_cents,
    closed_at: given.closed_at ?? null,
    taxes: given.taxes ?? null,
    payments: given.payments ?? [],
  }
}

/** What is to be paid now, or at its due day: of an open invoice alone, and never negative. */
export function toPayCents({ status }: Billed, facts: PaymentFacts): number {
  return status === 'open' ? Math.max(facts.amount_remaining_cents, 0) : 0
}
