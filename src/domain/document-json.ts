/** Builds the certified document of an invoice as the API sends it. The JSON is rebuilt when the document or the invoice changes. */
import {
  type Amounts,
  creditTypes,
  type Document,
  grossOf,
  isInForce,
  printedNumberOf,
  type RelatedDocument,
  type Relations,
  withheldOf,
} from './document.ts'
import { type DocumentAbout, type Invoice, type InvoiceDocument, qrPath } from './invoice.ts'
import { decimalsOf, fromMillionths, toMillionths } from './money.ts'

/** Currency codes by name. These names are in use, but `Intl.DisplayNames` does not know them. */
const codes = new Map([
  ['euros', 'eur'],
  ['united states dollar', 'usd'],
  ['american dollar', 'usd'],
  ['pound sterling', 'gbp'],
  ['great britain pound', 'gbp'],
  ['yen', 'jpy'],
  ['real', 'brl'],
  ['polish złoty', 'pln'],
])
const names = new Intl.DisplayNames('en', { type: 'currency' })
for (const code of Intl.supportedValuesOf('currency').map(each => each.toLowerCase())) {
  codes.set(code, code)
  codes.set(names.of(code)?.toLowerCase() ?? code, code)
}

/** Returns the currency code for a name or a code, such as "Euro" or "EUR". Null when the currency is unknown. */
export function currencyOf(name: string | null): string | null {
  return codes.get(name?.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase() ?? '') ?? null
}

/** Tells whether document and invoice have different currencies. If so, only `multicurrency` holds the total in the invoice's currency. */
export function isForeign(document: Amounts, invoice: Pick<Invoice, 'currency'>): boolean {
  const currency = currencyOf(document.currency)
  return currency !== null && currency !== invoice.currency
}

/**
 * Converts a decimal to the currency's smallest unit, rounded half away from zero. Returns null when the decimal cannot be read or is too
 * large for an exact number.
 */
export function toSmallest(decimal: string, currency: string): number | null {
  const millionths = toMillionths(decimal)
  if (millionths === null) return null
  const unit = 10n ** BigInt(6 - decimalsOf(currency))
  const amount = Number((millionths + (millionths < 0n ? -unit : unit) / 2n) / unit)
  return Number.isSafeInteger(amount) ? amount : null
}

export function describeInvoiceDocument(
  { customer_id, id: invoiceId, currency: invoiceCurrency }: Invoice,
  document: Document,
  relations: Relations | null,
): InvoiceDocument {
  const currency = currencyOf(document.currency) ?? invoiceCurrency
  const cents = (amount: string | null | undefined) => (amount == null ? null : toSmallest(amount, currency))
  return {
    id: document.id,
    type: document.type,
    status: document.status,
    number: printedNumberOf(document),
    series: document.series_number?.split('/').slice(0, -1).join('/') || null,
    atcud: document.atcud ?? null,
    date: document.date,
    due_date: document.due_date ?? null,
    before_tax_cents: cents(document.before_taxes),
    tax_cents: cents(document.taxes_total),
    gross_cents: cents(grossOf(document)),
    retention_percent: document.retention == null ? null : Number(document.retention),
    retention_cents: cents(withheldOf(document)),
    total_cents: cents(document.total),
    currency,
    in_invoice_currency: convertedOf(document),
    taxes:
      document.taxes?.map(({ rate, base, tax }) => ({
        rate_percent: rate === null ? null : Number(rate),
        base_cents: cents(base) ?? 0,
        tax_cents: cents(tax) ?? 0,
      })) ?? null,
    exemption_code: document.exemption_code ?? null,
    buyer_name: document.buyer_name ?? null,
    buyer_tax_id: document.tax_id ?? null,
    multibanco: document.multibanco ?? null,
    qr_path: relations?.has_qr ? qrPath(customer_id, invoiceId) : null,
    related: relations?.documents.map(other => describeRelated(other, invoiceCurrency)) ?? null,
  }
}

function describeRelated(other: RelatedDocument, invoiceCurrency: string): DocumentAbout {
  const currency = currencyOf(other.currency) ?? invoiceCurrency
  const gross = grossOf(other)
  return {
    id: other.id,
    type: other.type,
    number: printedNumberOf(other),
    date: other.date,
    gross_cents: gross === null ? null : toSmallest(gross, currency),
    total_cents: toSmallest(other.total, currency),
    in_invoice_currency: convertedOf(other),
    status: other.status,
  }
}

/** Returns the document's total in the invoice's currency, with the exchange rate. Null when the document has no such total. */
function convertedOf(amounts: Amounts): InvoiceDocument['in_invoice_currency'] {
  if (!amounts.multicurrency) return null
  const { currency: name, total } = amounts.multicurrency
  const currency = currencyOf(name)
  if (currency === null) return null
  const rate = exchangeRateOf(amounts)
  return { currency, total_cents: toSmallest(total, currency), rate: rate === null ? null : Number(rate) }
}

/**
 * Returns how many units of the invoice's currency one unit of the account's currency is worth. Some creators record the reverse rate. The
 * rate that fits both totals better is taken.
 */
export function exchangeRateOf({ total, multicurrency }: Amounts): string | null {
  const [rate, own, theirs] = [multicurrency?.rate ?? '', total, multicurrency?.total ?? ''].map(toPrecise)
  if (!rate) return null
  if (!own || !theirs) return fromMillionths(rate / million)
  const reverse = (precise * precise) / rate
  const distance = (one: bigint) => {
    const difference = own * one - theirs * precise
    return difference < 0n ? -difference : difference
  }
  const nearer = distance(reverse) < distance(rate) ? reverse : rate
  return fromMillionths((nearer + million / 2n) / million)
}

const million = 1_000_000n
const precise = million * million

/**
 * Converts a decimal, without its sign, to units of 10^-12. So many digits are needed because the reverse rate of the yen begins with
 * zeros.
 */
function toPrecise(decimal: string): bigint | null {
  const [, whole, fraction = ''] = /^-?(\d+)(?:\.(\d*))?$/.exec(decimal.trim()) ?? []
  return whole === undefined ? null : BigInt(whole + fraction.slice(0, 12).padEnd(12, '0'))
}

/**
 * Returns the columns that store a document with its invoice: the JSON text, and the sum of credit notes in force in the invoice's
 * currency.
 */
export function documentColumns(
  document: InvoiceDocument | null,
  invoiceCurrency: string,
): { document: string | null; credited_cents: number } {
  return {
    document: document && JSON.stringify(document),
    credited_cents: creditedCents(document, invoiceCurrency),
  }
}

/** Tells whether credit notes in force cover the whole document, so that nothing of it is owed. */
export function isFullyCredited(document: InvoiceDocument | null, invoiceCurrency: string): boolean {
  if (document === null) return false
  const gross = document.gross_cents ?? document.total_cents
  const whole = document.currency === invoiceCurrency ? gross : document.in_invoice_currency?.total_cents
  return (whole ?? 0) > 0 && creditedCents(document, invoiceCurrency) >= (whole ?? 0)
}

/** Returns the sum of a document's credit notes in force, in the invoice's currency. */
export function creditedCents(document: InvoiceDocument | null, invoiceCurrency: string): number {
  const notes = (document?.related ?? []).filter(each => isCredit(each) && isInForce(each))
  return notes.reduce((sum, note) => sum + amountIn(note, document, invoiceCurrency), 0)
}

export function isCredit({ type }: Pick<DocumentAbout, 'type'>): boolean {
  return creditTypes.includes(type)
}

/**
 * Returns the amount of a credit note, debit note or receipt in the invoice's currency, without sign. The note's own total in this currency
 * is preferred. Otherwise the note's amount is converted in proportion to the document's totals. Returns 0 when neither is known.
 */
export function amountIn(
  note: DocumentAbout,
  document: InvoiceDocument | null,
  invoiceCurrency: string,
): number {
  const gross = Math.abs(note.gross_cents ?? note.total_cents ?? 0)
  if (document === null || document.currency === invoiceCurrency) return gross
  const [own, whole] = [note.in_invoice_currency, document.in_invoice_currency]
  if (own?.currency === invoiceCurrency) return Math.abs(own.total_cents ?? 0)
  if (whole?.currency !== invoiceCurrency || !whole.total_cents || !document.gross_cents) return 0
  return Math.round((gross * Math.abs(whole.total_cents)) / Math.abs(document.gross_cents))
}
