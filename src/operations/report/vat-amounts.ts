/** Computes the VAT amounts of a document or an invoice, by rate. Pure. Only rates are floats. */
import type { Amounts, Document } from '../../domain/document.ts'
import { currencyOf, toSmallest } from '../../domain/document-json.ts'
import type { Invoice, InvoiceDocument } from '../../domain/invoice.ts'
import { anonymousTaxId } from '../../domain/link/link.ts'
import type { PaymentFacts, TaxByRate } from '../../domain/payment.ts'

/** Amounts are in the smallest unit of the currency. */
export interface VatPart {
  /** Null when the rate is unknown. */
  rate_percent: number | null
  base_cents: number
  tax_cents: number
}

/** `unread` says what is unknown, and is null when everything is known. `parts` is null when no amount is known. */
export interface VatAmounts {
  parts: readonly VatPart[] | null
  unread: string | null
}

/** Currency of the InvoiceXpress account and of the VAT declaration. */
export const vatCurrency = 'eur'

type Taxed = Amounts & Pick<Document, 'taxes'>

/** Returns cents by rate. The sum equals the document's own amounts. A withheld tax is not subtracted. */
export function amountsOfDocument({ currency, before_taxes, taxes_total, taxes }: Taxed): VatAmounts {
  if (currency !== null && currencyOf(currency) !== vatCurrency)
    return { parts: null, unread: `its amounts are in ${currency}, and not in euros` }
  const [base, tax] = [before_taxes, taxes_total].map(each =>
    each == null ? null : toSmallest(each, vatCurrency),
  )
  if (base == null || tax == null)
    return { parts: null, unread: 'its amount before taxes or its taxes are not known' }
  const whole = { rate_percent: null, base_cents: base, tax_cents: tax }
  if (base === 0 && tax === 0) return { parts: [], unread: null }
  if (!taxes || taxes.length === 0) return { parts: [whole], unread: 'its taxes by rate are not known' }
  const parts = taxes.map(part => ({
    rate_percent: part.rate === null ? null : Number(part.rate),
    base_cents: toSmallest(part.base, vatCurrency) ?? 0,
    tax_cents: toSmallest(part.tax, vatCurrency) ?? 0,
  }))
  return {
    parts: fitTo(parts, base, tax),
    unread: parts.some(({ rate_percent }) => rate_percent === null) ? 'one of its rates is not known' : null,
  }
}

/** Returns amounts by rate in the invoice's currency. The sum equals the invoice's total. An amount without a rate counts as 0 %. */
export function amountsOfInvoice(
  { total_cents: total, tax_cents: tax }: Pick<Invoice, 'total_cents' | 'tax_cents'>,
  { taxes }: Pick<PaymentFacts, 'taxes'>,
): VatAmounts {
  if (total === 0 && tax === 0 && !taxes?.length) return { parts: [], unread: null }
  if (taxes === null && tax !== 0) return unknownRate(total - tax, tax)
  const reported = taxes ?? []
  const all = sum(reported, ({ tax_cents }) => tax_cents)
  const net = total - all
  const parts = joinTogether(reported, net)
  if (parts === null) return unknownRate(net, all)
  const rest = net - sum(parts, ({ base_cents }) => base_cents)
  // Each rate is rounded separately, so the bases may differ from the net amount by a few units.
  if (Math.abs(rest) < parts.length) return { parts: fitTo(parts, net, all), unread: null }
  // When the bases add up to more than the net amount, some taxes apply to other taxes. The rates of such taxes cannot be added.
  if (rest !== 0 && rest < 0 === total > 0) return unknownRate(net, all)
  const isUntaxed = { rate_percent: 0, base_cents: rest, tax_cents: 0 }
  return { parts: byRate([...parts, ...(rest === 0 ? [] : [isUntaxed])]), unread: null }
}

function unknownRate(base_cents: number, tax_cents: number): VatAmounts {
  return {
    parts: [{ rate_percent: null, base_cents, tax_cents }],
    unread: 'taxes by rate are not known',
  }
}

/** Taxes that all apply to the whole net amount become one part whose rate is the sum. Returns null when a base is unknown. */
function joinTogether(taxes: readonly TaxByRate[], net: number): VatPart[] | null {
  const [first] = taxes
  if (first === undefined) return []
  const isOfWhole = ({ base_cents }: TaxByRate) =>
    base_cents === net || (base_cents === null && taxes.length === 1)
  if (net !== 0 && taxes.every(isOfWhole)) {
    const percents = taxes.map(({ rate_percent }) => rate_percent)
    const isKnown = percents.every(percent => percent !== null)
    const rate_percent = isKnown ? Number(sum(percents, Number).toFixed(6)) : null
    return [{ rate_percent, base_cents: net, tax_cents: sum(taxes, each => each.tax_cents) }]
  }
  if (taxes.some(({ base_cents }) => base_cents === null)) return null
  const parts = taxes.map(({ rate_percent, base_cents, tax_cents }) => ({
    rate_percent,
    base_cents: base_cents ?? 0,
    tax_cents,
  }))
  return byRate(parts)
}

/** Converts an invoice's parts to euros by the two totals of its own document. Null when the exchange rate is unknown. */
export function toEuros(
  parts: readonly VatPart[],
  { total_cents: total, currency }: Pick<Invoice, 'total_cents' | 'currency'>,
  document: InvoiceDocument | null,
): VatPart[] | null {
  if (currency === vatCurrency) return [...parts]
  const euros = document === null ? null : eurosOf(total, currency, document)
  if (euros === null) return null
  if (total === 0) return []
  const tax = scale(
    sum(parts, part => part.tax_cents),
    euros,
    total,
  )
  const scaled = parts.map(({ rate_percent, base_cents, tax_cents }) => ({
    rate_percent,
    base_cents: scale(base_cents, euros, total),
    tax_cents: scale(tax_cents, euros, total),
  }))
  return fitTo(scaled, euros - tax, tax)
}

/** Converts an invoice's total to euros. The result is what its document charges, or a share in proportion to the total. */
function eurosOf(total: number, currency: string, document: InvoiceDocument): number | null {
  const { in_invoice_currency: converted, total_cents, gross_cents } = document
  if (document.currency !== vatCurrency || converted?.currency !== currency) return null
  const theirs = converted.total_cents
  if (!theirs || !total_cents) return null
  const gross = gross_cents ?? total_cents
  // The total in another currency may be before or after the withheld tax, and the document does not say which.
  if (total === theirs || Math.abs(total - scale(theirs, gross, total_cents)) <= 1) return gross
  return scale(total, total_cents, theirs)
}

/** Adjusts the largest part so that the parts add up to `base` and `tax`. */
function fitTo(parts: readonly VatPart[], base: number, tax: number): VatPart[] {
  const [largest, ...others] = byRate(parts).toSorted(
    (a, b) => Math.abs(b.base_cents) - Math.abs(a.base_cents),
  )
  if (largest === undefined) return []
  const base_cents = base - sum(others, part => part.base_cents)
  const tax_cents = tax - sum(others, part => part.tax_cents)
  return byRate([{ ...largest, base_cents, tax_cents }, ...others])
}

function byRate(parts: readonly VatPart[]): VatPart[] {
  const alike = Map.groupBy(parts, ({ rate_percent }) => rate_percent)
  return [...alike].map(([rate_percent, some]) => ({
    rate_percent,
    base_cents: sum(some, part => part.base_cents),
    tax_cents: sum(some, part => part.tax_cents),
  }))
}

/** Returns `amount · times / over`, rounded half away from zero. */
function scale(amount: number, times: number, over: number): number {
  const [product, divisor] = [BigInt(amount) * BigInt(times), BigInt(over)]
  const isNegative = product < 0n !== divisor < 0n
  const [top, bottom] = [product, divisor].map(each => (each < 0n ? -each : each)) as [bigint, bigint]
  const rounded = Number((2n * top + bottom) / (2n * bottom))
  return isNegative ? -rounded : rounded
}

function sum<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((all, item) => all + amountOf(item), 0)
}

/** Prefixes of VAT numbers. `countryOfPrefix` holds the prefixes that differ from the country code. */
const vatPrefixes = new Set(
  'AT BE BG CY CZ DE DK EE EL ES FI FR GB HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK XI CHE'.split(' '),
)
const countryOfPrefix: Readonly<Record<string, string>> = { EL: 'GR', CHE: 'CH' }

/** Returns the country of a tax ID, from its prefix or because it is a Portuguese NIF. Null when the country is unknown. */
export function countryOf(taxId: string | null): string | null {
  const text = (taxId ?? '').toUpperCase()
  const nif = text.replace(/[\s.]/g, '').replace(/^PT-?/, '')
  if (isNif(nif)) return nif === anonymousTaxId ? null : 'PT'
  const bare = text.replace(/[^A-Z0-9]/g, '').replace(/^GR(?=\d)/, 'EL')
  const [, prefix = ''] = /^(CHE|[A-Z]{2})(?=[A-Z]{0,2}\d)/.exec(bare) ?? []
  return vatPrefixes.has(prefix) ? (countryOfPrefix[prefix] ?? prefix) : null
}

/** A Portuguese NIF has nine digits. The last digit is a check digit. */
function isNif(text: string): boolean {
  return /^\d{9}$/.test(text) && checkDigitOf(text) === Number(text[8])
}

function checkDigitOf(text: string): number {
  const weighted = [...text.slice(0, 8)].reduce((all, digit, index) => all + Number(digit) * (9 - index), 0)
  const rest = weighted % 11
  return rest < 2 ? 0 : 11 - rest
}
