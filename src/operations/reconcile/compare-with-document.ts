/** Compares an invoice with its document: amounts, taxes, credit notes, days, payment and limits. Pure. */
import {
  type Document,
  grossOf,
  isInForce,
  nameDocument,
  printedTypeOf,
  type Relations,
  withheldOf,
} from '../../domain/document.ts'
import { currencyOf } from '../../domain/document-json.ts'
import type { Invoice } from '../../domain/invoice.ts'
import { toMillionths, writeAmount } from '../../domain/money.ts'
import { type PaymentFacts, toPayCents } from '../../domain/payment.ts'
import { allowedCents, compareCharged, describeCharged } from './compare-amounts.ts'
import { compareCredits, isCredited } from './compare-credits.ts'
import { findLate, findWrongMonth } from './compare-days.ts'
import { compareExemptions, compareTaxes, countRates } from './compare-taxes.ts'
import type { Finding, Limits } from './difference-kinds.ts'

interface CountedPair {
  invoice: Invoice
  facts: PaymentFacts
  document: Document
  /** Status of the document. For a second copy, the status of its original. */
  status: string
  relations: Relations | null
}

/** Compares an invoice with a document that is not canceled. Of a draft only the money is compared, because a draft is not certified. */
export function compareWithDocument(pair: CountedPair, limits: Limits, platform: string): (Finding | null)[] {
  const { invoice, facts, document, status, relations } = pair
  const allowed = allowedCents(limits.tolerance, countRates(facts, document))
  const total = compareTotals(invoice, document, allowed, platform)
  const isAgreed = total === null || total[0] === 'rounding'
  const tax = isAgreed ? compareTaxes(invoice, facts, document, limits.tolerance, platform) : null
  // The same difference of cents is reported once, and not for the total and the tax.
  const money = tax === null || (tax[0] === 'rounding' && total !== null) ? [total] : [tax]
  if (status === 'draft') return money
  return [
    ...money,
    compareCredits(invoice, facts, document, relations, allowed, platform),
    findOpenSettled(pair),
    findWrongMonth(invoice, document),
    findLate(facts, document),
    findOverLimit(document, limits),
    compareExemptions(invoice, facts, document, platform),
  ]
}

function compareTotals(
  { total_cents, currency }: Invoice,
  document: Document,
  allowed: number,
  platform: string,
): Finding | null {
  const both = `${writeAmount(total_cents, currency)} ${currency} at ${platform}, ${describeCharged(document)} on the document`
  switch (compareCharged(total_cents, currency, document, allowed)) {
    case 'rounding':
      return ['rounding', both]
    case 'differs':
      return ['total_differs', both]
    case 'another currency':
      return ['total_differs', `${both}: another currency`]
    case 'unreadable':
      return ['total_differs', `${both}: the latter cannot be read`]
    case 'unknown currency':
      return ['currency_unknown', `${both}, which has no total in ${currency}${notYet(document)}`]
    default:
      return null
  }
}

/** A document may have a total in another currency that a list leaves out. A document fetched by its id is complete. */
function notYet({ multicurrency }: Document): string {
  return multicurrency === undefined ? ' as far as it was read' : ''
}

/** Types of documents that confirm a payment when they are issued. */
const receiptTypes = ['InvoiceReceipt', 'CashInvoice']

function findOpenSettled({ invoice, facts, document, status, relations }: CountedPair): Finding | null {
  const toPay = toPayCents(invoice, facts)
  if (isWithheld(toPay, invoice, document)) return null
  const isReceipt = receiptTypes.includes(printedTypeOf(document)) && isInForce({ status })
  if (toPay === 0 || (status !== 'settled' && !isReceipt) || isCredited(invoice, document, relations))
    return null
  const is = isReceipt ? 'confirms its payment' : 'is settled'
  const rest = `${writeAmount(toPay, invoice.currency)} ${invoice.currency}`
  return ['open_settled', `open with ${rest} to pay, but ${nameDocument(document)} ${is}`]
}

/**
 * Whether the open amount equals the tax that the client withholds, which is never paid at the platform. The withheld share is the same in
 * both currencies.
 */
function isWithheld(toPay: number, { total_cents }: Invoice, document: Document): boolean {
  const [withheld, gross] = [withheldOf(document), grossOf(document)].map(each => toMillionths(each ?? ''))
  if (!withheld || !gross) return false
  return Math.abs(toPay - (total_cents * Number(withheld)) / Number(gross)) < 2
}

function findOverLimit(document: Document, { simplifiedLimit }: Limits): Finding | null {
  const gross = grossOf(document)
  const millionths = gross === null ? null : toMillionths(gross)
  const isOver = millionths !== null && millionths > BigInt(simplifiedLimit) * 1_000_000n
  const isInEuros = (currencyOf(document.currency) ?? 'eur') === 'eur'
  if (printedTypeOf(document) !== 'SimplifiedInvoice' || !isInEuros || !isOver) return null
  return [
    'simplified_over_limit',
    `${nameDocument(document)} is a simplified invoice, and charges ${gross} EUR, above ${simplifiedLimit}`,
  ]
}
