/** Computes the entries that an invoice adds to its customer's account. Pure functions. */
import { inFavourCents } from './balance.ts'
import { dayOf } from './calendar.ts'
import { isInForce } from './document.ts'
import { amountIn, isCredit } from './document-json.ts'
import type { DocumentAbout, Invoice, InvoiceDocument } from './invoice.ts'
import { type PaymentFacts, toPayCents } from './payment.ts'

/**
 * Types of account entries.
 * `balance`: the part of the customer's earlier balance that the invoice took over.
 * `refund`: an amount that was paid or credited, and was then given back or moved to the customer's balance at the payment platform.
 * `receipt`: a receipt without a known payment of the same amount.
 * `other`: a difference that only documents explain.
 */
export const entryTypes = [
  ...(['invoice', 'balance', 'credit_note', 'debit_note', 'payment', 'receipt'] as const),
  ...(['write_off', 'void', 'refund', 'other'] as const),
] as const
export type EntryType = (typeof entryTypes)[number]

/**
 * Proof of an account entry.
 * `document`: a certified document.
 * `platform`: a record of the payment platform.
 * `sum`: only totals of the payment platform. Often the day of such an entry is unknown.
 */
export const entryProofs = ['document', 'platform', 'sum'] as const
export type EntryProof = (typeof entryProofs)[number]

export interface AccountEntry {
  /** Day of the entry, YYYY-MM-DD. An entry whose own day is unknown gets the latest day of the entries before it. */
  day: string
  type: EntryType
  proof: EntryProof
  /** Printed number of the certified document. Null when no document is known. */
  number: string | null
  /** Change of the customer's debt. A credit is negative. */
  cents: number
}

type ProvedEntry = Omit<AccountEntry, 'day'> & { day: string | null }

/**
 * Returns the entries of one invoice: opening, notes, payments and closing, in this order. The amounts of all entries add up to what
 * remains to be paid of the invoice, less what the invoice leaves in the customer's favour.
 */
export function entriesOf(
  invoice: Invoice,
  facts: PaymentFacts,
  document: InvoiceDocument | null,
): AccountEntry[] {
  if (invoice.status === 'draft') return []
  const proved = [
    ...openingOf(invoice, facts, document),
    ...notesOf(invoice, facts, document),
    ...paymentsOf(invoice, facts, document),
  ]
  const sum = proved.reduce((all, { cents }) => all + cents, 0)
  const owed = toPayCents(invoice, facts) - inFavourCents(invoice, facts, document)
  const entries = [...proved, closingOf(invoice, facts, owed - sum)]
  return fillMissingDays(entries.filter(({ type, cents }) => cents !== 0 || keptAtZero.includes(type)))
}

const keptAtZero: readonly EntryType[] = ['invoice', 'receipt']

function fillMissingDays(entries: readonly ProvedEntry[]): AccountEntry[] {
  let latest = ''
  return entries.map(entry => {
    const day = entry.day ?? latest
    if (day > latest) latest = day
    return { ...entry, day }
  })
}

/**
 * Returns the entry of the invoice, and the entry of the customer's earlier balance that the invoice took over. An earlier credit counts
 * only up to the amount of the invoice.
 */
function openingOf(invoice: Invoice, facts: PaymentFacts, document: InvoiceDocument | null): ProvedEntry[] {
  const { total_cents, issued_at } = invoice
  const { starting_balance_cents, pre_payment_credit_cents } = facts
  const day = document?.date ?? dayOf(Date.parse(issued_at))
  const number = document?.number ?? null
  const usableCredit = Math.max(total_cents - pre_payment_credit_cents, 0)
  const balance = Math.max(starting_balance_cents, -usableCredit)
  return [
    { type: 'invoice', proof: number === null ? 'platform' : 'document', day, number, cents: total_cents },
    { type: 'balance', proof: 'platform', day, number: null, cents: balance },
  ]
}

/** Returns the entries of credit and debit notes in force. One more entry holds the credit that only the payment platform knows. */
function notesOf(invoice: Invoice, facts: PaymentFacts, document: InvoiceDocument | null): ProvedEntry[] {
  const inForce = (document?.related ?? []).filter(isInForce)
  const noteOf = (type: EntryType, sign: 1 | -1) => (note: DocumentAbout) =>
    ({ ...entryOf(type, note), cents: sign * amountIn(note, document, invoice.currency) }) as ProvedEntry
  const credits = inForce.filter(isCredit).map(noteOf('credit_note', -1))
  const debits = inForce.filter(({ type }) => type === 'DebitNote').map(noteOf('debit_note', 1))
  const documented = credits.reduce((sum, { cents }) => sum - cents, 0)
  const rest = Math.max(facts.pre_payment_credit_cents + facts.post_payment_credit_cents - documented, 0)
  return [...credits, bySum('credit_note', -rest), ...debits]
}

/**
 * Returns one entry per payment, with the number of the receipt of the same amount. One entry follows for amounts paid without a known
 * payment. The last entries are the receipts without a payment.
 */
function paymentsOf(invoice: Invoice, facts: PaymentFacts, document: InvoiceDocument | null): ProvedEntry[] {
  const receipts = (document?.related ?? []).filter(each => isInForce(each) && /Receipt$/.test(each.type))
  const payments = facts.payments
    .filter(({ amount_cents }) => amount_cents !== 0)
    .map(({ amount_cents, paid_at }): ProvedEntry => {
      const index = receipts.findIndex(each => amountIn(each, document, invoice.currency) === amount_cents)
      const [receipt] = index === -1 ? [] : receipts.splice(index, 1)
      const day = paid_at === null ? null : dayOf(Date.parse(paid_at))
      return {
        type: 'payment',
        proof: 'platform',
        day,
        number: receipt?.number ?? null,
        cents: -amount_cents,
      }
    })
  const { amount_paid_cents, amount_due_cents } = facts
  const paid = invoice.status === 'paid' ? Math.max(amount_paid_cents, amount_due_cents) : amount_paid_cents
  const rest = paid + payments.reduce((sum, { cents }) => sum + cents, 0)
  return [
    ...payments,
    { ...bySum('payment', -Math.max(rest, 0)), day: closingDay(facts) },
    ...receipts.map(each => ({ ...entryOf('receipt', each), cents: 0 })),
  ]
}

/** Returns the entry that closes the gap between the other entries and what is owed. */
function closingOf({ status }: Invoice, facts: PaymentFacts, cents: number): ProvedEntry {
  if (status === 'open') return bySum('other', cents)
  if (cents > 0) return bySum('refund', cents)
  if (status === 'paid') return bySum('other', cents)
  const day = closingDay(facts)
  return {
    ...{ type: status === 'void' ? 'void' : 'write_off', proof: day === null ? 'sum' : 'platform' },
    ...{ day, number: null, cents },
  }
}

function closingDay({ closed_at }: PaymentFacts): string | null {
  return closed_at === null ? null : dayOf(Date.parse(closed_at))
}

function entryOf(type: EntryType, { date, number }: DocumentAbout): Omit<ProvedEntry, 'cents'> {
  return { type, proof: 'document', day: date, number }
}

function bySum(type: EntryType, cents: number): ProvedEntry {
  return { type, proof: 'sum', day: null, number: null, cents }
}

/** An account entry as the store keeps it. `entry` is the JSON text of the fields that do not depend on other entries. */
export type StoredEntry = [day: string, currency: string, cents: number, entry: string]

export function storedEntries(...of: Parameters<typeof entriesOf>): StoredEntry[] {
  const [{ id, number: invoice_number, currency }] = of
  return entriesOf(...of).map(({ day, cents, ...entry }) => {
    const { type, proof, number } = entry
    return [day, currency, cents, JSON.stringify({ type, proof, number, invoice_id: id, invoice_number })]
  })
}

/** One entry of a statement, as the API sends it. */
export interface StatementEntry extends Omit<AccountEntry, 'cents'> {
  invoice_id: string
  /** Number of the invoice at the payment platform. */
  invoice_number: string | null
  currency: string
  debit_cents: number
  credit_cents: number
  /**
   * Balance in the entry's currency after this entry. Negative means in the customer's favour. The JSON holds all digits, but a JavaScript
   * `number` rounds values above 2^53.
   */
  balance_cents: number
}

/** Totals of one currency in a statement. The JSON holds all digits, but a JavaScript `number` rounds values above 2^53. */
export interface StatementSum {
  currency: string
  /** Balance before the first day of the period. */
  opening_cents: number
  /** Debits of the whole period, not only of this page. */
  debit_cents: number
  credit_cents: number
  closing_cents: number
}

/** One page of a customer's account statement, as the API sends it. */
export interface AccountStatement {
  from: string | null
  to: string | null
  /** Totals of each currency, sorted by currency code. */
  currencies: readonly StatementSum[]
  /** Entries of this page, the earliest day first. */
  entries: readonly StatementEntry[]
  page: number
  page_size: number
  total: number
  total_pages: number
}

/** First and last day of a statement, both included. */
export interface StatementPeriod {
  from?: string | undefined
  to?: string | undefined
}

export interface StatementQuery extends StatementPeriod {
  page?: number | undefined
  /** Number of entries on a page, 1 to 200. */
  page_size?: number | undefined
}

/** Parameters with which the store reads one page of a statement. */
export interface AccountQuery {
  customer_id: string
  /** First day, included. Undefined means no limit. */
  from?: string | undefined
  to?: string | undefined
  /** Page number, at least 1. A number above the last page means the last page. */
  page: number
  page_size: number
}

export const entriesOfPage = { default: 50, max: 200 } as const

/**
 * Data that the store read for one page of a statement. The keys of both maps are currencies. `opening` sums the entries before the period.
 * `earlier` sums the entries of the period before this page.
 */
export interface FoundEntries {
  opening: ReadonlyMap<string, bigint>
  period: readonly { currency: string; count: number; debit: bigint; credit: bigint }[]
  earlier: ReadonlyMap<string, bigint>
  entries: readonly StoredEntry[]
  page: number
}

export type ExactStatement = ReturnType<typeof composeStatement>

/** Builds a statement. It lists every currency that has an entry on or before the last day. */
export function composeStatement(found: FoundEntries, { from = null, to = null, page_size }: Composed) {
  const { opening, period, earlier, page } = found
  const codes = [...new Set([...opening.keys(), ...period.map(({ currency }) => currency)])].sort()
  const currencies = codes.map(currency => {
    const { debit = 0n, credit = 0n } = period.find(each => each.currency === currency) ?? {}
    const opening_cents = opening.get(currency) ?? 0n
    const closing_cents = opening_cents + debit - credit
    return { currency, opening_cents, debit_cents: debit, credit_cents: credit, closing_cents }
  })
  const running = new Map(codes.map(code => [code, (opening.get(code) ?? 0n) + (earlier.get(code) ?? 0n)]))
  const entries = found.entries.map(([day, currency, cents, text]) => {
    const balance_cents = (running.get(currency) ?? 0n) + BigInt(cents)
    running.set(currency, balance_cents)
    const amounts = { debit_cents: Math.max(cents, 0), credit_cents: Math.max(-cents, 0), balance_cents }
    return { day, ...(JSON.parse(text) as EntryText), currency, ...amounts }
  })
  const total = period.reduce((sum, { count }) => sum + count, 0)
  const total_pages = Math.ceil(total / page_size)
  return { from, to, currencies, entries, page, page_size, total, total_pages }
}

interface Composed {
  from?: string | null | undefined
  to?: string | null | undefined
  page_size: number
}

type EntryText = Pick<StatementEntry, 'type' | 'proof' | 'number' | 'invoice_id' | 'invoice_number'>
