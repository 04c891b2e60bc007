/** The domain: the entries that an invoice makes in its customer's account. Pure. */
import { inFavourCents } from './balance.ts'
import { dayOf } from './calendar.ts'
import { isInForce } from './document.ts'
import { amountIn, isCredit } from './document-json.ts'
import type { DocumentAbout, Invoice, InvoiceDocument } from './invoice.ts'
import { type PaymentFacts, toPayCents } from './payment.ts'

/**
 * `balance`: what the invoice took over of the customer's balance. `refund`: what was paid or credited and is not in the account any
 * more: given back, or put to the balance at the payment platform. `receipt`: one without a payment of its amount. `other`: what
 * stands in documents alone.
 */
export const entryTypes = [
  ...(['invoice', 'balance', 'credit_note', 'debit_note', 'payment', 'receipt'] as const),
  ...(['write_off', 'void', 'refund', 'other'] as const),
] as const
export type EntryType = (typeof entryTypes)[number]

/** A certified document; the payment platform's record; or a sum of the platform's alone, without a day of its own. */
export const entryProofs = ['document', 'platform', 'sum'] as const
export type EntryProof = (typeof entryProofs)[number]

export interface AccountEntry {
  /** YYYY-MM-DD. Of what has no day of its own, the latest before it. */
  day: string
  type: EntryType
  proof: EntryProof
  /** Of the certified document, as printed. */
  number: string | null
  /** What it adds to what is owed: a credit is negative. */
  cents: number
}

type Proved = Omit<AccountEntry, 'day'> & { day: string | null }

/**
 * In the order in which they follow from each other. Their sum is what the invoice adds to the balance: what is to be paid of it, less
 * what it leaves in the customer's favour.
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
  return placeInTime(entries.filter(({ type, cents }) => cents !== 0 || isTold.includes(type)))
}

/** Types that are told even when nothing changes by them. */
const isTold: readonly EntryType[] = ['invoice', 'receipt']

function placeInTime(entries: readonly Proved[]): AccountEntry[] {
  let latest = ''
  return entries.map(entry => {
    const day = entry.day ?? latest
    if (day > latest) latest = day
    return { ...entry, day }
  })
}

/** The invoice and the balance that it took over: credit only as far as there was something to take it off. */
function openingOf(invoice: Invoice, facts: PaymentFacts, document: InvoiceDocument | null): Proved[] {
  const { total_cents, issued_at } = invoice
  const { starting_balance_cents, pre_payment_credit_cents } = facts
  const day = document?.date ?? dayOf(Date.parse(issued_at))
  const number = document?.number ?? null
  const most = Math.max(total_cents - pre_payment_credit_cents, 0)
  const balance = Math.max(starting_balance_cents, -most)
  return [
    { type: 'invoice', proof: number === null ? 'platform' : 'document', day, number, cents: total_cents },
    { type: 'balance', proof: 'platform', day, number: null, cents: balance },
  ]
}

/** Credit and debit notes in force, and what the platform has of credit notes beyond these. */
function notesOf(invoice: Invoice, facts: PaymentFacts, document: InvoiceDocument | null): Proved[] {
  const inForce = (document?.related ?? []).filter(isInForce)
  const noteOf = (type: EntryType, sign: 1 | -1) => (note: DocumentAbout) =>
    ({ ...entryOf(type, note), cents: sign * amountIn(note, document, invoice.currency) }) as Proved
  const credits = inForce.filter(isCredit).map(noteOf('credit_note', -1))
  const debits = inForce.filter(({ type }) => type === 'DebitNote').map(noteOf('debit_note', 1))
  const documented = credits.reduce((sum, { cents }) => sum - cents, 0)
  const rest = Math.max(facts.pre_payment_credit_cents + facts.post_payment_credit_cents - documented, 0)
  return [...credits, bySum('credit_note', -rest), ...debits]
}

/** Payments with their days, each with the receipt of its amount; what is known to be paid beyond them; receipts without a payment. */
function paymentsOf(invoice: Invoice, facts: PaymentFacts, document: InvoiceDocument | null): Proved[] {
  const receipts = (document?.related ?? []).filter(each => isInForce(each) && /Receipt$/.test(each.type))
  const payments = facts.payments
    .filter(({ amount_cents }) => amount_cents !== 0)
    .map(({ amount_cents, paid_at }): Proved => {
      const place = receipts.findIndex(each => amountIn(each, document, invoice.currency) === amount_cents)
      const [receipt] = place === -1 ? [] : receipts.splice(place, 1)
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

/** What is left between the entries and what is owed. */
function closingOf({ status }: Invoice, facts: PaymentFacts, cents: number): Proved {
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

function entryOf(type: EntryType, { date, number }: DocumentAbout): Omit<Proved, 'cents'> {
  return { type, proof: 'document', day: date, number }
}

function bySum(type: EntryType, cents: number): Proved {
  return { type, proof: 'sum', day: null, number: null, cents }
}

/** The entries as they are stored: `[day, currency, cents, text]` each, the text being what is sent of an entry by itself. */
export type StoredEntry = [day: string, currency: string, cents: number, entry: string]

export function storedEntries(...of: Parameters<typeof entriesOf>): StoredEntry[] {
  const [{ id, number: invoice_number, currency }] = of
  return entriesOf(...of).map(({ day, cents, ...entry }) => {
    const { type, proof, number } = entry
    return [day, currency, cents, JSON.stringify({ type, proof, number, invoice_id: id, invoice_number })]
  })
}

/** An entry of a statement, as it is sent. */
export interface StatementEntry extends Omit<AccountEntry, 'cents'> {
  invoice_id: string
  /** The payment platform's number of the invoice. */
  invoice_number: string | null
  currency: string
  debit_cents: number
  credit_cents: number
  /** Of its currency, after this entry: negative is in the customer's favour. Exact in the JSON, rounded beyond 2^53. */
  balance_cents: number
}

/** The sums of a currency: exact in the JSON, rounded in a `number` beyond 2^53. */
export interface StatementSum {
  currency: string
  /** The balance before the first day. */
  opening_cents: number
  /** Of the whole period. */
  debit_cents: number
  credit_cents: number
  closing_cents: number
}

/** A customer's account in a period, as it is sent. */
export interface AccountStatement {
  from: string | null
  to: string | null
  /** In the order of their codes. */
  currencies: readonly StatementSum[]
  /** Of this page: the earliest day first. */
  entries: readonly StatementEntry[]
  page: number
  page_size: number
  total: number
  total_pages: number
}

/** The days of a statement, both inclusive. */
export interface StatementPeriod {
  from?: string | undefined
  to?: string | undefined
}

export interface StatementQuery extends StatementPeriod {
  page?: number | undefined
  /** 1 to 200. */
  page_size?: number | undefined
}

/** What the store is asked for. */
export interface AccountQuery {
  customer_id: string
  /** Days, both inclusive; absent: from the first, up to the last. */
  from?: string | undefined
  to?: string | undefined
  /** At least 1. Above the last page, the last page is meant. */
  page: number
  page_size: number
}

export const entriesOfPage = { default: 50, max: 200 } as const

/** What a statement is made of. Sums are by currency; `earlier` are of the entries before the page. */
export interface FoundEntries {
  opening: ReadonlyMap<string, bigint>
  period: readonly { currency: string; count: number; debit: bigint; credit: bigint }[]
  earlier: ReadonlyMap<string, bigint>
  entries: readonly StoredEntry[]
  page: number
}

export type ExactStatement = ReturnType<typeof composeStatement>

/** Every currency that has an entry up to the last day has its sums. */
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
    return { day, ...(JSON.parse(text) as ToldOfEntry), currency, ...amounts }
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

type ToldOfEntry = Pick<StatementEntry, 'type' | 'proof' | 'number' | 'invoice_id' | 'invoice_number'>
