/** Amounts owed and paid of an invoice, as the payment platform reports them. The contract's summary and detail do not contain them. */

/** Fields of an invoice from which missing payment facts are derived. */
interface Billed {
  status: string
  total_cents: number
}

export interface PaymentFacts {
  /** Due day, YYYY-MM-DD, in UTC. Null when the platform collects automatically, and when nothing is known. */
  due_date: string | null
  /**
   * Whole amount to pay: the total plus the starting balance, less credit notes before payment. The platform never reports a negative
   * amount.
   */
  amount_due_cents: number
  amount_paid_cents: number
  /** Amount still to pay: `amount_due_cents` less `amount_paid_cents`. */
  amount_remaining_cents: number
  /** Sum of credit notes before the payment. They reduce the amount due, unlike credit notes after the payment. */
  pre_payment_credit_cents: number
  post_payment_credit_cents: number
  /** The customer's earlier balance that the invoice takes over. Negative is credit, positive is owed. */
  starting_balance_cents: number
  /**
   * Time when the invoice was paid, voided or written off: ISO 8601 in UTC, with milliseconds. Null before that time, and when it is
   * unknown.
   */
  closed_at: string | null
  /** Taxes by rate and reason, the highest rate first. Null when unknown. */
  taxes: readonly TaxByRate[] | null
  /** Payments in the order of their times, unpaid ones last. */
  payments: readonly Payment[]
}

/** Tax of one rate. An unknown value is null. */
export interface TaxByRate {
  rate_percent: number | null
  base_cents: number | null
  tax_cents: number
  /** The payment platform's own word for the reason of the rate, such as `reverse_charge`. */
  reason: string | null
}

/** A payment of an invoice. Several invoices may share one payment. */
export interface Payment {
  /** ID of the PaymentIntent (`pi_…`) or of another kind of payment. */
  id: string
  /** Amount that the payment paid of this invoice. 0 until it is paid. */
  amount_cents: number
  /** Time of the payment: ISO 8601 in UTC, with milliseconds. Null until it is paid. */
  paid_at: string | null
}

/** Copies the fields one by one in a fixed order, so that equal facts give equal JSON texts. */
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

export function changedFacts(before: PaymentFacts, after: PaymentFacts): (keyof PaymentFacts)[] {
  const [one, other] = [onlyPaymentFacts(before), onlyPaymentFacts(after)]
  return fieldNames.filter(name => JSON.stringify(one[name]) !== JSON.stringify(other[name]))
}

export function serializePaymentFacts(facts: PaymentFacts): string {
  return JSON.stringify(onlyPaymentFacts(facts))
}

/**
 * Derives missing payment facts from status and total, by the payment platform's own arithmetic. A paid invoice is paid in full. Nothing
 * remains of a void invoice. Of any other invoice, the amount due less the amount paid remains.
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

/** Returns the amount to pay now or on the due day. Never negative, and 0 unless the invoice is open. */
export function toPayCents({ status }: Billed, facts: PaymentFacts): number {
  return status === 'open' ? Math.max(facts.amount_remaining_cents, 0) : 0
}
