/** Balances, partial payments and credit notes of an invoice. Each step returns a new object. */
import { inOnePiece, pick, type Random } from '../random.ts'
import type { Payer } from './customers.ts'
import type { StripeInvoice, StripeInvoicePayment } from './objects.ts'

const day = 86_400

/** How an invoice will be settled. The terms are fixed when the invoice is created. */
export interface Terms {
  isAutomatic: boolean
  daysUntilDue: number
  /** Change of the customer's balance before the finalization. A negative amount is a credit. */
  adjustment: number
  /** Number of payments when the invoice is paid. */
  parts: number
  /** Whether part of the amount is paid when the invoice stays open. */
  isPartlyPaid: boolean
  /** Shares of the amount due that are credited before and after the payment. */
  creditedBefore: number
  creditedAfter: number
  /** Whether the PaymentIntent of the customer's last invoice also pays this invoice. */
  isPaidTogether: boolean
}

/** `random` is a separate sequence, so that the terms do not change other data of an invoice. */
export function createTerms(random: Random, serial: number, price: number): Terms {
  return {
    isAutomatic: random() < 0.2,
    daysUntilDue: pick(random, [15, 30, 30, 60]),
    adjustment: chooseBy(random(), [0.03, Math.round(price / 3)], [0.07, -Math.round(price / 2)], [1, 0]),
    // Every 97th invoice has 12 payments, more than one answer contains.
    parts: serial % 97 === 41 ? 12 : chooseBy(random(), [0.06, 3], [0.12, 2], [1, 1]),
    isPartlyPaid: random() < 0.3,
    creditedBefore: random() < 0.03 ? 0.25 : 0,
    creditedAfter: random() < 0.03 ? 0.5 : 0,
    isPaidTogether: serial % 29 === 17,
  }
}

/** Returns the first choice whose bound is above `chance`. */
function chooseBy(chance: number, ...choices: [bound: number, choice: number][]): number {
  return choices.find(([bound]) => chance < bound)?.[1] ?? 0
}

/** The amount due is never negative. A negative amount becomes credit in the customer's balance. */
export function amountsOf(
  { total, starting_balance = 0, pre_payment_credit_notes_amount = 0 }: Partial<StripeInvoice>,
  amount_paid: number,
): Pick<StripeInvoice, 'amount_due' | 'amount_paid' | 'amount_remaining'> {
  const amount_due = Math.max(Number(total) + starting_balance - pre_payment_credit_notes_amount, 0)
  return { amount_due, amount_paid, amount_remaining: amount_due - amount_paid }
}

/** Applies the customer's balance, and opens a payment for the amount due. */
export function openAccount(
  draft: StripeInvoice,
  payer: Payer,
  { adjustment, isPaidTogether }: Terms,
  at: number,
): StripeInvoice {
  const starting_balance = payer.balance + adjustment
  const ending_balance = Math.min(draft.total + starting_balance, 0)
  const amounts = amountsOf({ ...draft, starting_balance }, 0)
  payer.balance = ending_balance
  const own = makePayment(draft, amounts.amount_due, at, true)
  const payment = isPaidTogether && payer.lastPayment !== null ? { ...own, payment: payer.lastPayment } : own
  const data = amounts.amount_due === 0 ? [] : [payment]
  if (amounts.amount_due > 0) payer.lastPayment = payment.payment
  const payments = { ...draft.payments, data }
  return { ...draft, starting_balance, ending_balance, ...amounts, payments }
}

function makePayment(
  { id, currency, payments }: StripeInvoice,
  amount: number,
  created: number,
  is_default: boolean,
): StripeInvoicePayment {
  const own = inOnePiece(id.slice('in_1'.length), String(payments.data.length))
  return {
    id: inOnePiece('inpay_1', own),
    object: 'invoice_payment',
    amount_paid: null,
    amount_requested: amount,
    created,
    currency,
    invoice: id,
    is_default,
    livemode: false,
    payment: { type: 'payment_intent', payment_intent: inOnePiece('pi_3', own) },
    status: 'open',
    status_transitions: { canceled_at: null, paid_at: null },
  }
}

function paid(payment: StripeInvoicePayment, amount: number, at: number): StripeInvoicePayment {
  const status_transitions = { canceled_at: null, paid_at: at }
  return { ...payment, amount_paid: amount, amount_requested: amount, status: 'paid', status_transitions }
}

/** Pays a part by a separate payment. The open payment then asks for the rest. Payments are ordered newest first, as in Stripe's lists. */
export function payPart(invoice: StripeInvoice, amount: number, at: number): StripeInvoice {
  const { payments } = invoice
  const amounts = amountsOf(invoice, invoice.amount_paid + amount)
  const part = paid(makePayment(invoice, amount, at, false), amount, at)
  const others = payments.data.map(other =>
    other.status === 'open' ? { ...other, amount_requested: amounts.amount_remaining } : other,
  )
  return { ...invoice, ...amounts, payments: { ...payments, data: [part, ...others] } }
}

function payRest(invoice: StripeInvoice, at: number): StripeInvoice {
  const { amount_remaining: rest, payments } = invoice
  const data = payments.data.map(other => (other.status === 'open' ? paid(other, rest, at) : other))
  return { ...invoice, ...amountsOf(invoice, invoice.amount_due), payments: { ...payments, data } }
}

export function pay(invoice: StripeInvoice, at: number): StripeInvoice {
  const status_transitions = { ...invoice.status_transitions, paid_at: at }
  return { ...payRest(invoice, at), status: 'paid', attempt_count: 1, attempted: true, status_transitions }
}

/** Pays in equal parts between the finalization and `until`. */
function payInParts(invoice: StripeInvoice, parts: number, until: number): StripeInvoice {
  const from = invoice.status_transitions.finalized_at ?? until
  const share = Math.floor(invoice.amount_remaining / parts)
  let current = invoice
  for (let part = 1; part < parts && share > 0; part++)
    current = payPart(current, share, from + Math.floor(((until - from) * part) / parts))
  return payRest(current, until)
}

/** Cancels the open payments, because nothing will be collected any more. */
export function cancelPayments(invoice: StripeInvoice, at: number): StripeInvoice {
  const { payments } = invoice
  const data = payments.data.map(payment =>
    payment.status === 'open'
      ? { ...payment, status: 'canceled', status_transitions: { canceled_at: at, paid_at: null } }
      : payment,
  )
  return { ...invoice, payments: { ...payments, data } }
}

/** Amount of a credit note: a quarter of the paid amount, or of the remaining amount. */
export function creditable({ status, amount_paid, amount_remaining }: StripeInvoice): number {
  return Math.ceil((status === 'paid' ? amount_paid : amount_remaining) / 4)
}

/** Credits an amount. A credit note lowers the amount due of an open invoice only. */
export function creditPart(invoice: StripeInvoice, amount: number): StripeInvoice {
  if (invoice.status === 'paid') {
    const credited = invoice.post_payment_credit_notes_amount + amount
    return { ...invoice, post_payment_credit_notes_amount: credited }
  }
  const pre_payment_credit_notes_amount = invoice.pre_payment_credit_notes_amount + amount
  const amounts = amountsOf({ ...invoice, pre_payment_credit_notes_amount }, invoice.amount_paid)
  const data = invoice.payments.data.map(other =>
    other.status === 'open' ? { ...other, amount_requested: amounts.amount_remaining } : other,
  )
  return { ...invoice, ...amounts, pre_payment_credit_notes_amount, payments: { ...invoice.payments, data } }
}

/** Due date in seconds. Null when the payment is collected automatically. */
export function dueDate(created: number, { isAutomatic, daysUntilDue }: Terms): number | null {
  return isAutomatic ? null : created + daysUntilDue * day
}

/** Returns an open invoice in its present state, possibly credited or paid in part. */
export function stayOpen(
  open: StripeInvoice,
  { isPartlyPaid, creditedBefore }: Terms,
  at: number,
): StripeInvoice {
  const credited = creditShare(open, creditedBefore)
  const part = Math.floor(credited.amount_remaining / 3)
  return isPartlyPaid && part > 0 ? payPart(credited, part, at) : credited
}

/** Returns a paid invoice with the payments and credit notes of its terms. */
export function settle(open: StripeInvoice, terms: Terms, at: number): StripeInvoice {
  const paid = pay(payInParts(creditShare(open, terms.creditedBefore), terms.parts, at), at)
  return creditShare(paid, terms.creditedAfter)
}

/** Credits a share of the amount due, unless the share is zero. */
function creditShare(invoice: StripeInvoice, share: number): StripeInvoice {
  const amount = Math.floor(invoice.amount_due * share)
  return amount === 0 ? invoice : creditPart(invoice, amount)
}

/** Returns a draft with a new starting balance. */
export function takeOver(draft: StripeInvoice, starting_balance: number): StripeInvoice {
  return { ...draft, starting_balance, ...amountsOf({ ...draft, starting_balance }, 0) }
}

export function creditNoteOf(
  { id, customer, currency, status }: StripeInvoice,
  amount: number,
  name: string,
): object {
  return {
    id: inOnePiece('cn_1', name),
    object: 'credit_note',
    amount,
    currency,
    customer,
    invoice: id,
    status: 'issued',
    type: status === 'paid' ? 'post_payment' : 'pre_payment',
  }
}
