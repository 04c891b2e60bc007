/** Compares the tax of an invoice with its document's tax: in total, by rate, and the reason for an exemption. Pure. */
import { type Document, nameDocument } from '../../domain/document.ts'
import { isForeign } from '../../domain/document-json.ts'
import type { Invoice } from '../../domain/invoice.ts'
import { decimalsOf, toMillionths, writeAmount } from '../../domain/money.ts'
import type { PaymentFacts } from '../../domain/payment.ts'
import { allowedCents } from './compare-amounts.ts'
import type { Finding } from './difference-kinds.ts'

type Facts = Pick<PaymentFacts, 'taxes'>

/** The larger number of tax rates of the two sides. */
export function countRates({ taxes }: Facts, document: Document): number {
  return Math.max(taxes?.length ?? 0, document.taxes?.length ?? 0)
}

/** Compares the taxes of an invoice and a document whose totals agree. A tax that is unknown on one side is not compared. */
export function compareTaxes(
  invoice: Invoice,
  facts: Facts,
  document: Document,
  tolerance: number,
  platform: string,
): Finding | null {
  const scale = scaleOf(invoice, document)
  if (scale === null || document.taxes_total == null) return null
  const allowed = allowedCents(tolerance, countRates(facts, document)) + scale.slack
  const whole = scale.toSmallest(document.taxes_total)
  if (whole === null) return null
  const both = (own: number, other: string) =>
    `${writeAmount(own, invoice.currency)} ${invoice.currency} of tax at ${platform}, ${[other, document.currency].filter(Boolean).join(' ')} on ${nameDocument(document)}`
  const apart = distance(invoice.tax_cents, whole)
  if (apart > allowed) return ['tax_differs', both(invoice.tax_cents, document.taxes_total)]
  const rates = isStacked(invoice, facts) ? [] : compareRates(facts, document)
  for (const { rate, own, other } of rates) {
    const theirs = scale.toSmallest(other)
    if (theirs !== null && distance(own, theirs) > allowedCents(tolerance) + scale.slack)
      return ['tax_differs', `at ${rate} %, ${both(own, other)}`]
  }
  const isApart = rates.some(({ own, other }) => distance(own, scale.toSmallest(other) ?? own) > scale.slack)
  if (apart <= scale.slack && !isApart) return null
  return ['rounding', both(invoice.tax_cents, document.taxes_total)]
}

/** Whether two taxes apply to the same amount, for example in Canada. The document has their sum as one rate. */
function isStacked({ total_cents, tax_cents }: Invoice, { taxes }: Facts): boolean {
  const bases = (taxes ?? []).reduce((sum, { base_cents }) => sum + Math.abs(base_cents ?? 0), 0)
  return bases > Math.abs(total_cents - tax_cents) + (taxes?.length ?? 0)
}

/** Pairs the amounts of both sides by rate. Returns nothing when a rate is unknown or one side has no taxes by rate. */
function compareRates({ taxes }: Facts, document: Document): { rate: number; own: number; other: string }[] {
  if (taxes === null || document.taxes == null) return []
  const own = new Map<number, number>()
  for (const { rate_percent, tax_cents } of taxes) {
    if (rate_percent === null) return []
    own.set(rate_percent, (own.get(rate_percent) ?? 0) + tax_cents)
  }
  const others = new Map<number, string>()
  for (const { rate, tax } of document.taxes) {
    if (rate === null) return []
    others.set(Number(rate), tax)
  }
  return [...new Set([...own.keys(), ...others.keys()])].map(rate => ({
    rate,
    own: own.get(rate) ?? 0,
    other: others.get(rate) ?? '0',
  }))
}

const distance = (one: number, other: number) => Math.abs(one - other)

/**
 * Returns the conversion from the document's decimals to the invoice's smallest units. `slack` is the error of the conversion in these
 * units. Null when no conversion is known.
 */
export function scaleOf(invoice: Invoice, document: Document) {
  const unit = 10 ** (6 - decimalsOf(invoice.currency))
  const factor = isForeign(document, invoice) ? factorOf(invoice, document) : 1
  if (factor === null) return null
  return {
    toSmallest(decimal: string): number | null {
      const millionths = toMillionths(decimal)
      return millionths === null ? null : Math.round((Number(millionths) * factor) / unit)
    },
    // The conversion rounds twice, to the document's cents and to the invoice's smallest unit.
    slack: factor === 1 ? 0 : Math.ceil((factor * 10_000) / unit) + 1,
  }
}

/**
 * Returns the value of one unit of the document's currency in the invoice's currency. Null when it is unknown, or when a withheld tax makes
 * it uncertain.
 */
function factorOf({ currency }: Pick<Invoice, 'currency'>, document: Document): number | null {
  const { multicurrency, retention, total } = document
  if (!multicurrency || multicurrency.currency !== currency || retention) return null
  const [own, theirs] = [total, multicurrency.total].map(toMillionths)
  return own && theirs ? Number(theirs) / Number(own) : null
}

/** Codes of the Portuguese tax authority for reverse charge, where the client owes the tax. */
const reverseCharge = /^M(16|30|31|32|33|40|41|42|43)$/
/** Codes for sales that are exempt by the kind of product or seller. */
const exempt = /^M(07|09|10)$/

/** Reports a difference only when one side says that the client owes the tax, and the other side says that nobody does. */
export function compareExemptions(
  invoice: Invoice,
  { taxes }: Facts,
  document: Document,
  platform: string,
): Finding | null {
  const code = document.exemption_code?.trim().toUpperCase() ?? ''
  const reasons = new Set((taxes ?? []).map(({ reason }) => reason))
  const [reason] = reasons
  if (invoice.tax_cents !== 0 || reasons.size !== 1 || reason == null) return null
  const contradicts =
    (reason === 'reverse_charge' && exempt.test(code)) ||
    (/^product_exempt/.test(reason) && reverseCharge.test(code))
  return contradicts
    ? ['exemption_differs', `no tax as ${reason} at ${platform}, as ${code} on ${nameDocument(document)}`]
    : null
}
