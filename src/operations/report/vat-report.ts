/** The VAT of a month by rate, exemption code and country. The certified documents and the payment platform stand side by side. Pure. */
import { writeAmount } from '../../domain/money.ts'
import { allowedCents } from '../reconcile/compare-amounts.ts'
import { defaultLimits, type Limits } from '../reconcile/difference-kinds.ts'
import { type VatAmounts, vatCurrency } from './vat-amounts.ts'

export const vatRecords = ['row', 'total', 'difference', 'rounding', 'unread'] as const
export type VatRecord = (typeof vatRecords)[number]

/** Names of an entry's customer, invoice and document. A missing name is null. */
export interface VatNames {
  customer_id: string | null
  invoice_id: string | null
  number: string | null
  document_id: number | null
  document_number: string | null
  document_date: string | null
}

/** A document and its invoice. One of the two may be missing. */
export interface VatEntry extends VatNames {
  country: string | null
  /** Exemption code of the document. */
  exemption_code: string | null
  /** Null when the entry has no document in force of the month. */
  document: VatAmounts | null
  /** Null when the entry has no invoice of the month. */
  invoice: (VatAmounts & { currency: string }) | null
  reason: string
}

interface Key {
  rate_percent: number | null
  exemption_code: string | null
  country: string | null
  currency: string
}

interface Sides {
  documents: Amount
  stripe: Amount
}

interface Amount {
  base: number
  tax: number
}

/** One line of the VAT report. Amounts are decimals in the major unit of the currency. */
export interface VatLine extends Key, VatNames {
  record: VatRecord
  documents_base: string | null
  documents_tax: string | null
  stripe_base: string | null
  stripe_tax: string | null
  base_difference: string | null
  tax_difference: string | null
  detail: string | null
}

export type VatReport = ReturnType<typeof createVatReport>

/** `tolerance`: cents per tax rate up to which a difference is rounding, as in a reconciliation. */
export function createVatReport({ tolerance }: Pick<Limits, 'tolerance'> = defaultLimits) {
  const rows = new Map<string, Key & Sides>()
  const found: VatLine[] = []
  const counts = { difference: 0, rounding: 0, unread: 0 }

  /** Counts an invoice or document once, even when several of its rates differ. */
  function addFound(record: keyof typeof counts, lines: readonly VatLine[]): void {
    if (lines.length > 0) counts[record]++
    found.push(...lines)
  }

  return {
    counts: counts as Readonly<typeof counts>,
    add(entry: VatEntry): void {
      const sides = [...sidesOf(entry).values()]
      for (const each of sides) addTo(rows, each)
      const differing = sides.filter(({ documents, stripe }) => isOther(documents, stripe))
      const isPair = entry.document !== null && entry.invoice !== null
      const record = isPair && isRounding(sides, tolerance) ? 'rounding' : 'difference'
      const unread = unreadOf(entry)
      const detail = entry.reason || unread.join('; ') || 'other amounts on both sides'
      addFound(
        record,
        differing.map(each => lineOf(record, each, entry, detail)),
      )
      addFound(
        'unread',
        unread.map(each => lineOf('unread', null, entry, each)),
      )
    },
    /** Adds something unknown that concerns no single document. */
    addUnread(detail: string): void {
      addFound('unread', [lineOf('unread', null, noNames, detail)])
    },
    /** Returns the rows, then the totals by currency, then the causes of the differences. */
    lines({ withRounding = false } = {}): VatLine[] {
      const sorted = [...rows.values()].filter(isAnything).sort(byKey)
      const totals = new Map<string, Key & Sides>()
      for (const row of sorted)
        addTo(totals, { ...row, rate_percent: null, exemption_code: null, country: null })
      return [
        ...sorted.map(row => lineOf('row', row)),
        ...[...totals.values()].map(total => lineOf('total', total)),
        ...found.filter(({ record }) => record !== 'rounding' || withRounding),
      ]
    },
  }
}

/** Returns the entry's amounts by row. Both sides of an entry share its exemption code and country. */
function sidesOf({ country, exemption_code, document, invoice }: VatEntry): Map<string, Key & Sides> {
  const sides = new Map<string, Key & Sides>()
  const add = (side: keyof Sides, amounts: VatAmounts | null, currency: string) => {
    for (const { rate_percent, base_cents: base, tax_cents: tax } of amounts?.parts ?? []) {
      const code = rate_percent === 0 ? exemption_code : null
      const key = { rate_percent, exemption_code: code, country, currency }
      addTo(sides, { ...key, ...noSides(), [side]: { base, tax } })
    }
  }
  add('documents', document, vatCurrency)
  add('stripe', invoice, invoice?.currency ?? vatCurrency)
  return sides
}

function addTo(rows: Map<string, Key & Sides>, added: Key & Sides): void {
  const { rate_percent, exemption_code, country, currency, documents, stripe } = added
  const key = JSON.stringify([rate_percent, exemption_code, country, currency])
  const row = rows.get(key)
  rows.set(key, {
    ...added,
    documents: plus(row?.documents ?? nothing, documents),
    stripe: plus(row?.stripe ?? nothing, stripe),
  })
}

const nothing: Amount = { base: 0, tax: 0 }
const noSides = (): Sides => ({ documents: nothing, stripe: nothing })
const plus = (a: Amount, b: Amount): Amount => ({ base: a.base + b.base, tax: a.tax + b.tax })

function isOther(a: Amount, b: Amount): boolean {
  return a.base !== b.base || a.tax !== b.tax
}

/** Applies the same rule as a reconciliation to the tax at each rate and to the charged total. */
function isRounding(sides: readonly Sides[], tolerance: number): boolean {
  const allowed = allowedCents(tolerance, sides.length)
  const charged = ({ base, tax }: Amount) => base + tax
  const apart = sides.map(({ documents, stripe }) => charged(documents) - charged(stripe))
  const whole = apart.reduce((all, each) => all + each, 0)
  return (
    [whole, ...apart].every(each => Math.abs(each) <= allowed) &&
    sides.every(({ documents, stripe }) => Math.abs(documents.tax - stripe.tax) <= allowedCents(tolerance))
  )
}

function isAnything({ documents, stripe }: Sides): boolean {
  return isOther(documents, nothing) || isOther(stripe, nothing)
}

/** Euros come first, then other currencies. Within a currency the highest rate comes first, and an unknown rate comes last. */
function byKey(a: Key, b: Key): number {
  const text = ({ exemption_code, country }: Key) => `${exemption_code ?? '~'} ${country ?? '~'}`
  const currency = (key: Key) => (key.currency === vatCurrency ? '' : key.currency)
  return (
    compare(currency(a), currency(b)) ||
    (b.rate_percent ?? -1) - (a.rate_percent ?? -1) ||
    compare(text(a), text(b))
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function unreadOf({ document, invoice }: VatEntry): string[] {
  return [
    ...(document?.unread ? [`the document: ${document.unread}`] : []),
    ...(invoice?.unread ? [`the invoice: ${invoice.unread}`] : []),
  ]
}

const noNames: VatNames = {
  customer_id: null,
  invoice_id: null,
  number: null,
  document_id: null,
  document_number: null,
  document_date: null,
}

const noKey = { rate_percent: null, exemption_code: null, country: null }

function lineOf(
  record: VatRecord,
  sides: (Key & Sides) | null,
  names: VatNames = noNames,
  detail: string | null = null,
): VatLine {
  const { documents, stripe, currency = vatCurrency } = sides ?? {}
  const write = (amount: number | undefined) => (amount === undefined ? null : writeAmount(amount, currency))
  const minus = (name: keyof Amount) => documents && stripe && documents[name] - stripe[name]
  const { rate_percent, exemption_code, country } = sides ?? noKey
  return {
    record,
    rate_percent,
    exemption_code,
    country,
    currency,
    documents_base: write(documents?.base),
    documents_tax: write(documents?.tax),
    stripe_base: write(stripe?.base),
    stripe_tax: write(stripe?.tax),
    base_difference: write(minus('base')),
    tax_difference: write(minus('tax')),
    customer_id: names.customer_id,
    invoice_id: names.invoice_id,
    number: names.number,
    document_id: names.document_id,
    document_number: names.document_number,
    document_date: names.document_date,
    detail,
  }
}
