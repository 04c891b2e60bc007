/** Compares amounts of two systems. The payment platform counts smallest currency units, the invoicing system writes decimals. No floats. */
import { type Amounts, grossOf } from '../../domain/document.ts'
import { currencyOf } from '../../domain/document-json.ts'
import { decimalsOf, fromMillionths, toMillionths } from '../../domain/money.ts'

/**
 * Returns the largest difference that counts as rounding. The lines of each tax rate are rounded separately, so each rate adds the
 * tolerance.
 */
export function allowedCents(tolerance: number, rates = 1): number {
  return tolerance * Math.max(1, rates)
}

/** Whether two amounts differ by less than `allowed` + 1 smallest units. Null when the decimal cannot be read. */
export function isSameAmount(
  smallest: number,
  currency: string,
  decimal: string,
  allowed = 0,
): boolean | null {
  const unit = unitOf(currency)
  return isWithin(unit * BigInt(allowed + 1), BigInt(smallest) * unit, toMillionths(decimal))
}

/** Whether two decimals differ by less than `allowed` + 1 smallest units of the currency. */
export function isNear(one: string, other: string, allowed = 0, currency = 'eur'): boolean {
  return isWithin(unitOf(currency) * BigInt(allowed + 1), toMillionths(one), toMillionths(other)) === true
}

/** Returns a currency's smallest unit in millionths. */
function unitOf(currency: string): bigint {
  return 10n ** BigInt(6 - decimalsOf(currency))
}

function isWithin(bound: bigint, one: bigint | null, other: bigint | null): boolean | null {
  if (one === null || other === null) return null
  return one - other < bound && other - one < bound
}

/**
 * `rounding`: a difference within the allowed size. `unknown amount`: the document's charge is unknown. `unknown currency`: the charge in
 * the invoice's currency is unknown.
 */
export type Comparison =
  | 'same'
  | 'rounding'
  | 'differs'
  | 'another currency'
  | 'unreadable'
  | 'unknown amount'
  | 'unknown currency'

/** Compares an invoice's total with the document's charge in the invoice's currency. */
export function compareCharged(
  total: number,
  currency: string,
  document: Amounts,
  allowed: number,
): Comparison {
  const own = currencyOf(document.currency)
  const { multicurrency } = document
  if (own !== currency && multicurrency) {
    const theirs = currencyOf(multicurrency.currency) ?? currency
    if (theirs !== currency) return 'another currency'
    return compareWithAny(total, currency, convertedCharges(document, multicurrency.total), allowed)
  }
  if (own !== null && own !== currency) return 'unknown currency'
  const gross = grossOf(document)
  if (gross === null) return 'unknown amount'
  const compared = compareWithAny(total, currency, [gross], allowed)
  // An unknown currency name may mean the invoice's currency. The account of the invoicing system is in euros.
  return compared === 'differs' && own === null && currency !== 'eur' ? 'unknown currency' : compared
}

function compareWithAny(
  total: number,
  currency: string,
  decimals: readonly string[],
  allowed: number,
): Comparison {
  const within = (units: number) => decimals.map(decimal => isSameAmount(total, currency, decimal, units))
  const same = within(0)
  if (same.includes(true)) return 'same'
  if (within(allowed).includes(true)) return 'rounding'
  return same.includes(null) ? 'unreadable' : 'differs'
}

/**
 * Returns the possible charges. The total in another currency may be before or after the withheld tax, and the document does not say which.
 */
function convertedCharges(document: Amounts, converted: string): string[] {
  const [gross, total, theirs] = [grossOf(document) ?? '', document.total, converted].map(toMillionths)
  if (gross == null || theirs == null || !total || gross === total) return [converted]
  return [converted, fromMillionths((theirs * gross) / total)]
}

/** Describes a document's charge, for example "123.00 Euro", "133.70 usd (123 Euro)" or "123 Euro (98 after retention)". */
export function describeCharged(document: Amounts): string {
  const { total, currency, multicurrency } = document
  const gross = grossOf(document) ?? total
  const isTotal = gross === total || isNear(gross, total)
  const shown = [isTotal ? total : gross, currency].filter(Boolean).join(' ')
  const whole = multicurrency ? `${multicurrency.total} ${multicurrency.currency} (${shown})` : shown
  if (isTotal) return whole
  return `${whole} (${document.retention ? `${total} after retention` : `its total is ${total}`})`
}
