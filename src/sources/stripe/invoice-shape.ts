/** Shapes of the Stripe records that Fatura reads: the fields and their allowed values. */
import {
  type Check,
  type Checked,
  isAnything,
  isEither,
  isListOf,
  isNumber,
  isOneOf,
  isOrNull,
  isStorable,
  isText,
  isTextOrNull,
  type Shape,
  shape,
} from '../calls/shape.ts'
import { UnfitRecord } from '../source.ts'

/** Maximum of an amount, in cents. Sums of such amounts are exact. */
const maxCents = 10 ** 13

const isCents = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Math.abs(Number(value)) <= maxCents

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value)

/** The last second of the year 9999. A later moment has no ISO 8601 form with a year of four digits. */
const lastSecond = 253_402_300_799

const isSeconds = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= lastSecond

/** Accepts only characters of Stripe's ids, because ids become parts of URLs. */
export const isId = (value: unknown): value is string =>
  typeof value === 'string' && /^[\w-]{1,255}$/.test(value)

const isCurrency = (value: unknown): value is string => typeof value === 'string' && /^[a-z]{3}$/.test(value)

/** Accepts an id, or the expanded object with that id. */
const isReference = isEither(isId, shape({ id: isId }))

/** Accepts null as well, which Stripe sends in place of an empty list. */
const isMaybeListOf = <T>(check: Check<T>) => isOrNull(isListOf(check))

const customer = shape(
  { id: isId },
  { deleted: isAnything, business_name: isOrNull(isStorable), individual_name: isOrNull(isStorable) },
)
const tax = shape(
  { amount: isCents },
  {
    tax_behavior: isTextOrNull,
    tax_rate_details: isOrNull(shape({}, { tax_rate: isOrNull(isId) })),
    taxability_reason: isOrNull(isStorable),
    taxable_amount: isOrNull(isCents),
  },
)

export const taxRateShape = shape(
  { id: isId, percentage: isNumber },
  { effective_percentage: isOrNull(isNumber) },
)

export const invoiceShape = shape(
  {
    object: isOneOf(['invoice'] as const),
    id: isId,
    created: isSeconds,
    currency: isCurrency,
    subtotal: isCents,
    total: isCents,
  },
  {
    amount_due: isCents,
    amount_paid: isCents,
    amount_remaining: isCents,
    amount_shipping: isOrNull(isCents),
    customer: isOrNull(isEither(isId, customer)),
    customer_email: isOrNull(isStorable),
    customer_name: isOrNull(isStorable),
    customer_tax_ids: isMaybeListOf(shape({}, { type: isTextOrNull, value: isOrNull(isStorable) })),
    default_tax_rates: isMaybeListOf(taxRateShape),
    discounts: isMaybeListOf(isReference),
    due_date: isOrNull(isSeconds),
    effective_at: isOrNull(isSeconds),
    lines: isAnything,
    metadata: isAnything,
    number: isOrNull(isStorable),
    payments: isAnything,
    post_payment_credit_notes_amount: isCents,
    pre_payment_credit_notes_amount: isCents,
    starting_balance: isCents,
    status: isTextOrNull,
    status_transitions: isOrNull(
      shape(
        {},
        {
          finalized_at: isOrNull(isSeconds),
          marked_uncollectible_at: isOrNull(isSeconds),
          paid_at: isOrNull(isSeconds),
          voided_at: isOrNull(isSeconds),
        },
      ),
    ),
    total_discount_amounts: isMaybeListOf(shape({ amount: isCents }, { discount: isReference })),
    total_excluding_tax: isOrNull(isCents),
    total_pretax_credit_amounts: isMaybeListOf(shape({ amount: isCents }, { type: isText })),
    total_taxes: isMaybeListOf(tax),
  },
)
export type InvoiceHead = Checked<typeof invoiceShape>

export const lineShape = shape(
  { id: isId, amount: isCents, currency: isCurrency },
  {
    description: isOrNull(isStorable),
    discount_amounts: isMaybeListOf(shape({ amount: isCents })),
    // The methods of Stripe's client return decimals as objects with a text form. Raw requests return decimals as text.
    pricing: isOrNull(shape({}, { unit_amount_decimal: isAnything })),
    quantity: isOrNull(isWhole),
    quantity_decimal: isAnything,
    subtotal: isOrNull(isCents),
    taxes: isMaybeListOf(shape({}, { tax_behavior: isTextOrNull })),
  },
)
export type LineItem = Checked<typeof lineShape>

/** A payment of an invoice. It is a PaymentIntent, a charge, or a record of money that was paid outside Stripe. */
export const paymentShape = shape(
  { id: isId },
  {
    amount_paid: isOrNull(isCents),
    payment: isOrNull(
      shape(
        {},
        {
          payment_intent: isOrNull(isReference),
          charge: isOrNull(isReference),
          payment_record: isOrNull(isReference),
        },
      ),
    ),
    status: isTextOrNull,
    status_transitions: isOrNull(shape({}, { paid_at: isOrNull(isSeconds) })),
  },
)
export type PaymentItem = Checked<typeof paymentShape>

/** A page of an invoice's lines or payments. */
export const partPageShape = shape({ data: isListOf(isAnything), has_more: isOneOf([true, false]) })

export const eventShape = shape(
  { type: isText, created: isSeconds },
  { data: isOrNull(shape({}, { object: isAnything, previous_attributes: isAnything })) },
)

/** Returns a value that has the shape. Otherwise throws an error that names the field and its kind, but never its value. */
export function readAs<T>(shape: Shape<T>, value: unknown, what: string): T {
  const misfit = shape.misfit(value)
  if (misfit === null) return value as T
  throw new UnfitRecord(`Stripe sent ${what} that does not fit: ${misfit}`)
}
