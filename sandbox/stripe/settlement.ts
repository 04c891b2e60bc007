/** What is owed on an invoice and what pays it: balances, payments in parts, credit notes. Every step returns a new object. */
import { inOnePiece, pick, type Random } from '../random.ts'
import type { Payer } from './customers.ts'
import type { StripeInvoice, StripeInvoicePayment } from './objects.ts'

const day = 86_400

/** How an invoice will be settled, decided when it is made. */
export interface Terms {
  isAutomatic: boolean
  daysUntilDue: number
  /** What somebody adds to the customer's balance before the invoice: negative is credit. */
  adjustment: number
  /** How many payments pay it, if it is paid. */
  parts: number
  /** Whether a part is paid, if it stays open. */
  isPartlyPaid: boolean
  /** The parts of it that are credited before and after it is paid, if they are. */
  creditedBefore: number
  creditedAfter: number
  /** Whether the PaymentIntent of the customer's last invoice pays this one too. */
  isPaidTogether: boolean
}

/** `random` is a sequence of its own: whatever it draws, all else of an invoice stays the same. */
export function createTerms(random: Random, serial: number, price: number): Terms {
  return {
    isAutomatic: random() < 0.2,
    daysUntilDue: pick(random, [15, 30, 30, 60]),
    adjustment: chooseBy(random(), [0.03, Math.round(price / 3)], [0.07, -Math.round(price / 2)], [1, 0]),
    // Now and then more than an answer carries.
    parts: serial % 97 === 41 ? 12 : chooseBy(random(), [0.06, 3], [0.12, 2], [1, 1]),
    isPartlyPaid: random() < 0.3,
    creditedBefore: random() < 0.03 ? 0.25 : 0,
    creditedAfter: random() < 0.03 ? 0.5 : 0,
    isPaidTogether: serial % 29 === 17,
  }
}

/** The first whose bound lies above the chance. */
function chooseBy(chance: number, ...choices: [bound: number, choice: number][]): number {
  return choices.find(([bound]) => chance < bound)?.[1] ?? 0
}

/** Nobody is charged a negative amount: it becomes credit. */
export function amountsOf(
  { total, starting_balance = 0, pre_payment_credit_notes_amount = 0 }: Partial<StripeInvoice>,
  amount_paid: number,
): Pick<StripeInvoice, 'amount_due' | 'amount_paid' | 'amount_remaining'> {
  const amount_due = Math.max(Number(total) + starting_balance - pre_payment_credit_notes_amount, 0)
  return { amount_due, amount_paid, amount_remaining: amount_due - amount_paid }
}

/** Takes over the customer's balance, and opens the payment that is to settle the rest. */
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

/** Pays a part of what remains, by a payment of its own: the open one asks for the rest. Newest first, as in Stripe's lists. */
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

/** In equal parts, from the finalization until now. */
function payInParts(invoice: StripeInvoice, parts: number, until: number): StripeInvoice {
  const from = invoice.status_transitions.finalized_at ?? until
  const share = Math.floor(invoice.amount_remaining / parts)
  let left = invoice
  for (let part = 1; part < parts && share > 0; part++)
    left = payPart(left, share, from + Math.floor(((until - from) * part) / parts))
  return payRest(left, until)
}

/** Nothing is collected any more. */
export function cancelPayments(invoice: StripeInvoice, at: number): StripeInvoice {
  const { payments } = invoice
  const data = payments.data.map(payment =>
    payment.status === 'open'
      ? { ...payment, status: 'canceled', status_transitions: { canceled_at: at, paid_at: null } }
      : payment,
  )
  return { ...invoice, payments: { ...payments, data } }
}

/** What a credit note credits: a quarter of what was paid, or of what remains. */
export function creditable({ status, amount_paid, amount_remaining }: StripeInvoice): number {
  return Math.ceil((status === 'paid' ? amount_paid : amount_remaining) / 4)
}

/** A credit note: one of an open invoice lowers what is due, one of a paid invoice does not. */
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

/** In seconds; null when the payment is collected automatically. */
export function dueDate(created: number, { isAutomatic, daysUntilDue }: Terms): number | null {
  return isAutomatic ? null : created + daysUntilDue * day
}

/** An open invoice by now: credited in part, or paid in part. */
export function stayOpen(
  open: StripeInvoice,
  { isPartlyPaid, creditedBefore }: Terms,
  at: number,
): StripeInvoice {
  const credited = creditShare(open, creditedBefore)
  const part = Math.floor(credited.amount_remaining / 3)
  return isPartlyPaid && part > 0 ? payPart(credited, part, at) : credited
}

/** A paid invoice by now, in as many parts as it takes. */
export function settle(open: StripeInvoice, terms: Terms, at: number): StripeInvoice {
  const paid = pay(payInParts(creditShare(open, terms.creditedBefore), terms.parts, at), at)
  return creditShare(paid, terms.creditedAfter)
}

/** Credits a share of what is due, if there is any. */
function creditShare(invoice: StripeInvoice, share: number): StripeInvoice {
  const amount = Math.floor(invoice.amount_due * share)
  return amount === 0 ? invoice : creditPart(invoice, amount)
}

/** A draft of a customer with another balance than before. */
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
