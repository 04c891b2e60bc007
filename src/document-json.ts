/** The document of an invoice as it is sent, made when either changes. */
import { type Document, notInForce, printedNumberOf, type Relations } from './document.ts'
import { type Invoice, type InvoiceDocument, qrPath } from './invoice.ts'
import { decimalsOf, toMillionths } from './money.ts'

/** Codes of currencies by name: those in use beside the English ones, which Node knows. */
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

/** The code of a currency from its name or code; null when it is not known here. */
export function currencyOf(name: string | null): string | null {
  return codes.get(name?.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase() ?? '') ?? null
}

/** Rounded half away from zero; null when the decimal cannot be read, or is no exact number. */
function toSmallest(decimal: string, currency: string): number | null {
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
  const codeOf = (name: string | null) => currencyOf(name) ?? invoiceCurrency
  const currency = codeOf(document.currency)
  const cents = (amount: string | null | undefined, of = currency) =>
    amount == null ? null : toSmallest(amount, of)
  const [total, beforeTax] = [cents(document.total), cents(document.before_taxes)]
  return {
    id: document.id,
    type: document.type,
    status: document.status,
    number: printedNumberOf(document),
    series: document.series_number?.split('/').slice(0, -1).join('/') || null,
    atcud: document.atcud ?? null,
    date: document.date,
    due_date: document.due_date ?? null,
    before_tax_cents: beforeTax,
    tax_cents: total === null || beforeTax === null ? null : total - beforeTax,
    total_cents: total,
    currency,
    taxes:
      document.taxes?.map(({ rate, base, tax }) => ({
        rate_percent: Number(rate),
        base_cents: cents(base) ?? 0,
        tax_cents: cents(tax) ?? 0,
      })) ?? null,
    exemption_code: document.exemption_code ?? null,
    qr_path: relations?.has_qr ? qrPath(customer_id, invoiceId) : null,
    related:
      relations?.documents.map(other => ({
        id: other.id,
        type: other.type,
        number: printedNumberOf(other),
        date: other.date,
        total_cents: cents(other.total, codeOf(other.currency)),
        status: other.status,
      })) ?? null,
  }
}

/** A document as it is stored with its invoice: the text that is sent, and the sum of its credit notes in force. */
export function documentColumns(document: InvoiceDocument | null): {
  document: string | null
  credited_cents: number
} {
  return { document: document && JSON.stringify(document), credited_cents: creditedCents(document) }
}

/** The sum of a document's credit notes in force. */
export function creditedCents(document: InvoiceDocument | null): number {
  return (document?.related ?? [])
    .filter(({ type, status }) => type === 'CreditNote' && !notInForce.includes(status))
    .reduce((sum, { total_cents }) => sum + Math.abs(total_cents ?? 0), 0)
}

/** Whether credit notes in force take back all of a document: what it certifies is owed no more. */
export function isFullyCredited(document: InvoiceDocument | null): boolean {
  const total = document?.total_cents ?? 0
  return total > 0 && creditedCents(document) >= total
}
