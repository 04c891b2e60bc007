/** Money in the models of both systems, and what follows from it: written without a look at the code that does the same. */
import type { Amounts, RelatedDocument } from '../../src/domain/document.ts'
import type { Invoice } from '../../src/domain/invoice.ts'
import type { PaymentFacts } from '../../src/domain/payment.ts'
import type { DocumentState, InvoiceState, ModelDocument, ModelInvoice, Upstreams } from './upstreams.ts'

/** Dollars that a euro is worth. */
const dollars = 1.087
const dayMs = 86_400_000

/** The tax in a total with 23 % of it; nothing is taxed that is given back. */
const taxIn = (total: number) => (total > 0 ? total - Math.round(total / 1.23) : 0)

/** What is owed on an invoice and was paid: another in each state, by nothing but its number. */
export function factsOf({ createdS }: ModelInvoice, state: InvoiceState): PaymentFacts {
  const { rev, status, total_cents } = state
  const starting = rev % 5 === 0 ? [-500, 700][rev % 2] : 0
  const credited = rev % 4 === 1 && total_cents > 0 ? Math.floor(total_cents / 4) : 0
  const due = Math.max(total_cents + (starting ?? 0) - credited, 0)
  const paid = status === 'paid' ? due : status === 'open' && rev % 3 === 2 ? Math.floor(due / 3) : 0
  const paid_at = new Date(createdS * 1000 + dayMs).toISOString()
  return {
    due_date: rev % 3 === 0 ? null : dayAfter(createdS, (rev % 130) - 100),
    amount_due_cents: due,
    amount_paid_cents: paid,
    amount_remaining_cents: status === 'paid' || status === 'void' ? 0 : due - paid,
    pre_payment_credit_cents: credited,
    post_payment_credit_cents: status === 'paid' && rev % 6 === 0 ? Math.floor(due / 5) : 0,
    starting_balance_cents: starting ?? 0,
    closed_at: null,
    taxes: taxesOf(state),
    payments: state.payments.map((id, place) => ({ id, amount_cents: place === 0 ? paid : 0, paid_at })),
  }
}

function dayAfter(createdS: number, days: number): string {
  return new Date(createdS * 1000 + days * dayMs).toISOString().slice(0, 10)
}

function taxesOf({ total_cents }: InvoiceState): PaymentFacts['taxes'] {
  const tax_cents = taxIn(total_cents)
  if (tax_cents === 0) return []
  return [{ rate_percent: 23, base_cents: total_cents - tax_cents, tax_cents, reason: 'standard_rated' }]
}

/** The invoice's amounts beside its total. */
export function amountsOf({ total_cents }: InvoiceState): Pick<Invoice, 'subtotal_cents' | 'tax_cents'> {
  const tax_cents = taxIn(total_cents)
  return { subtotal_cents: total_cents - tax_cents, tax_cents }
}

/** What a document charges, in the smallest unit of its invoice's currency. */
export interface Charge {
  currency: string
  cents: number
  tax: number
  /** Whether the client withholds a quarter of the amount before taxes. */
  isWithheld: boolean
  /** By credit notes in force. */
  credited: number
}

/** What its invoice charged when the document was made: mostly right, for some a cent or five euros too much, or half of the tax. */
export function chargeOf(model: Upstreams, { id, states }: ModelDocument): Charge {
  const [first] = states
  const invoice = model.invoices.get(first?.reference ?? '')
  const billed = invoice?.states.findLast(({ fromMs }) => fromMs <= (first?.fromMs ?? 0))
  const { total_cents = 1_000 + id, currency = 'eur' } = billed ?? {}
  const isInEuros = currency === 'eur'
  const cents = total_cents + (id % 7 === 0 ? 1 : id % 7 === 3 ? 500 : 0)
  const tax = isInEuros && id % 5 === 2 ? Math.floor(taxIn(total_cents) / 2) : taxIn(total_cents)
  const isCredited = id % 4 === 0 && cents > 0
  return {
    currency,
    cents,
    tax,
    isWithheld: isInEuros && cents > 0 && id % 3 === 1,
    credited: isCredited ? (id % 8 === 0 ? cents : Math.floor(cents / 4)) : 0,
  }
}

const text = (cents: number) => (cents / 100).toFixed(2)
const toEuros = (cents: number, currency: string) =>
  currency === 'eur' ? cents : Math.round(cents / dollars)

/** In cents of euros, the account's currency. */
export function eurosOf({ currency, cents, tax, isWithheld }: Charge) {
  const gross = toEuros(cents, currency)
  const taxes = toEuros(tax, currency)
  const withheld = isWithheld ? Math.round((gross - taxes) / 4) : 0
  return { gross, taxes, withheld, total: gross - withheld }
}

/** The same in an invoice's currency; null when nothing tells, as of a document in euros that a dollar invoice claims. */
export function chargeIn(charge: Charge, currency: string): Charge | null {
  if (charge.currency === currency) return charge
  if (currency !== 'eur') return null
  const { gross, taxes } = eurosOf(charge)
  return {
    ...charge,
    currency,
    cents: gross,
    tax: taxes,
    credited: toEuros(charge.credited, charge.currency),
  }
}

/** As the invoicing system writes them: in euros, with the total of another currency beside. */
export function writtenOf(charge: Charge): Amounts & { taxes: null } {
  const { gross, taxes, total } = eurosOf(charge)
  const { currency, cents, isWithheld } = charge
  return {
    total: text(total),
    currency: 'Euro',
    before_taxes: text(gross - taxes),
    taxes_total: text(taxes),
    taxes: null,
    retention: isWithheld ? '25' : null,
    multicurrency: currency === 'eur' ? null : { rate: String(dollars), currency, total: text(cents) },
  }
}

/** Its credit note in force, one that is canceled, and a receipt. */
export function notesOf(documentId: number, charge: Charge): RelatedDocument[] {
  const { credited, currency } = charge
  if (credited === 0) return []
  const note = writtenOf({ currency, cents: credited, tax: taxIn(credited), isWithheld: false, credited: 0 })
  const about = (place: number, type: string, status: string) => ({
    ...{ id: documentId * 10 + place, type, status, date: '2026-03-20', ...note },
  })
  return [about(1, 'CreditNote', 'final'), about(2, 'CreditNote', 'canceled'), about(3, 'Receipt', 'settled')]
}

/** What an open invoice leaves in the customer's favour: what is given back, and credit notes that the platform was not told of. */
export function inFavourOf({ status, total_cents }: InvoiceState, facts: PaymentFacts, credited: number) {
  if (status !== 'open') return 0
  const givenBack = Math.max(0, -(total_cents + Math.max(facts.starting_balance_cents, 0)))
  return givenBack + Math.max(0, credited - facts.pre_payment_credit_cents)
}

/** Kinds of differences that follow from the models' money. */
export const moneyKinds: readonly string[] = [
  'total_differs',
  'tax_differs',
  'rounding',
  'credit_note_missing',
  'credit_note_unmatched',
  'open_credited',
  'currency_unknown',
]

/** Those of an invoice and its document, which a reconciliation has to find: no others, and none left out. */
export function differencesOf(
  state: InvoiceState,
  facts: PaymentFacts,
  charge: Charge,
  document: DocumentState,
  hasNotes: boolean,
): string[] {
  if (document.status === 'canceled') return []
  const its = chargeIn(charge, state.currency)
  if (its === null) return ['currency_unknown']
  const found = [differenceOfAmounts(state, its)]
  const own = facts.pre_payment_credit_cents + facts.post_payment_credit_cents
  if (hasNotes && state.status !== 'void' && document.status !== 'draft')
    found.push(differenceOfCredits(own, its, state.status === 'open' && facts.amount_remaining_cents > 0))
  return [...new Set(found.filter(kind => kind !== null))].sort()
}

function differenceOfAmounts({ total_cents }: InvoiceState, { cents, tax }: Charge): string | null {
  const apart = Math.abs(total_cents - cents)
  if (apart > 1) return 'total_differs'
  const ofTax = Math.abs(taxIn(total_cents) - tax)
  if (ofTax > 1) return 'tax_differs'
  return apart + ofTax === 0 ? null : 'rounding'
}

/** A cent of euros is more than one of dollars: so near, they are the same. */
function differenceOfCredits(
  own: number,
  { cents, credited, currency }: Charge,
  asksForPayment: boolean,
): string | null {
  const same = currency === 'eur' ? 0 : 3
  const apart = Math.abs(own - credited)
  if (apart <= same) return null
  if (apart <= same + 1) return 'rounding'
  if (own > credited) return 'credit_note_missing'
  return asksForPayment && cents > 0 && credited >= cents ? 'open_credited' : 'credit_note_unmatched'
}
