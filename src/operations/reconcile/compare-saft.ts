/** Compares one document of a SAF-T file with the stored document and its invoice. Pure. */
import { copyStatus, type Document, grossOf, notInForce, printedNumberOf } from '../../domain/document.ts'
import { currencyOf } from '../../domain/document-json.ts'
import type { Invoice } from '../../domain/invoice.ts'
import { anonymousTaxId, isNobody, isSameTaxId } from '../../domain/link/link.ts'
import { writeAmount } from '../../domain/money.ts'
import { knownSources } from '../../sources/known-sources.ts'
import { allowedCents, describeCharged, isNear, isSameAmount } from './compare-amounts.ts'
import { isCredited } from './compare-credits.ts'
import type { DifferenceKind, Finding, Limits } from './difference-kinds.ts'
import type { SaftDocument } from './read-saft.ts'
import { type Difference, sidesOf } from './reconcile.ts'
import { bareAtcud, type Pair, type StoredSide, withoutCode } from './saft-tables.ts'
import { describeUnlinked } from './unlinked.ts'

export function* comparePair({ filed, taxId, stored }: Pair, { tolerance }: Limits): Generator<Difference> {
  if (stored === null) {
    const detail = `${nameOf(filed)} of ${filed.date} is in the file, and not in the store`
    return yield describe('not_in_store', filedSide(filed), detail)
  }
  const { document, invoice, isGone, relations = null } = stored
  const sides = { ...sidesOf(invoice, document), document_number: filed.number }
  const add = (kind: DifferenceKind, detail: string | null) =>
    detail === null ? [] : [{ kind, ...sides, detail } satisfies Difference]
  const status = isGone ? 'deleted' : document.status
  const isCanceled = filed.status === 'A'
  // The status of a second copy does not say whether the original is in force. The SAF-T file does.
  if (status !== copyStatus && isCanceled !== (status === 'canceled' || status === 'deleted'))
    yield* add(
      'canceled_in_one',
      `${isCanceled ? 'canceled' : 'in force'} in the file, ${status} in the store`,
    )
  yield* add('number_differs', compareNumbers(filed, stored))
  if (filed.date !== document.date)
    yield* add('date_differs', `${filed.date} in the file, ${document.date ?? 'none'} on the document`)
  if (isCanceled || notInForce.includes(document.status)) return
  for (const [kind, detail] of compareAmounts(filed, stored, tolerance)) yield* add(kind, detail)
  yield* add('currency_unknown', findUnknownCurrency(filed, stored))
  for (const [kind, detail] of compareTaxIds(taxId, stored)) yield* add(kind, detail)
  if (invoice?.status === 'void' && !isCredited(invoice, document, relations))
    yield* add('document_on_void', 'void, but in force in the file')
  if (stored.unlinked !== null)
    yield { ...describeUnlinked(document, stored.unlinked), document_number: filed.number }
}

function compareNumbers(filed: SaftDocument, { document }: StoredSide): string | null {
  const { series_number = null, atcud = null } = document
  const isSameNumber = series_number === null || withoutCode(series_number) === withoutCode(filed.number)
  const isSameAtcud = atcud === null || filed.atcud === null || bareAtcud(atcud) === bareAtcud(filed.atcud)
  if (isSameNumber && isSameAtcud) return null
  const printed = nameOf({ number: printedNumberOf(document) ?? 'no number', atcud })
  return `${nameOf(filed)} in the file, ${printed} on the document`
}

/** Compares the totals of file, document and invoice, and the net amounts. Amounts are in euros and in the invoice's currency. */
function compareAmounts(filed: SaftDocument, stored: StoredSide, tolerance: number): Finding[] {
  const { document, invoice } = stored
  const allowed = allowedCents(tolerance, document.taxes?.length)
  if (!isSameTotal(filed, stored, allowed))
    return [['total_differs', describeTotals(filed, document, invoice)]]
  const isInEuros = (currencyOf(document.currency) ?? 'eur') === 'eur'
  const isSameNet = (cents: number) =>
    !isInEuros || !document.before_taxes || isNear(filed.net, document.before_taxes, cents)
  const nets = `${filed.net} before taxes in the file, ${document.before_taxes} on the document`
  if (!isSameNet(allowed)) return [['tax_differs', nets]]
  if (!isSameTotal(filed, stored, 0)) return [['rounding', describeTotals(filed, document, invoice)]]
  return isSameNet(0) ? [] : [['rounding', nets]]
}

function isSameTotal(filed: SaftDocument, { document, invoice }: StoredSide, allowed: number): boolean {
  const isInEuros = (currencyOf(document.currency) ?? 'eur') === 'eur'
  const gross = grossOf(document)
  return (
    (!isInEuros || gross === null || isNear(filed.gross, gross, allowed)) &&
    (filed.foreign === null || isSameForeign(filed.foreign, document, allowed)) &&
    (invoice === null || isSameInvoice(filed, invoice, allowed))
  )
}

function describeTotals(filed: SaftDocument, document: Document, invoice: Invoice | null): string {
  const inFile = filed.foreign ? `${nameForeign(filed.foreign)} (${filed.gross} EUR)` : `${filed.gross} EUR`
  const both = `${inFile} in the file, ${describeCharged(document)} on the document`
  const onInvoice = invoice && `${writeAmount(invoice.total_cents, invoice.currency)} ${invoice.currency}`
  return onInvoice === null ? both : `${both}, ${onInvoice} at ${knownSources.billing.name}`
}

type Foreign = NonNullable<SaftDocument['foreign']>

const nameForeign = ({ amount, currency }: Foreign) => `${amount} ${currency}`

function isSameForeign({ currency, amount }: Foreign, { multicurrency }: Document, allowed: number): boolean {
  if (!multicurrency) return true
  const code = currency.toLowerCase()
  if ((currencyOf(multicurrency.currency) ?? code) !== code) return false
  return isNear(amount, multicurrency.total, allowed, code)
}

/** Returns true when the file has no amount in the invoice's currency, because the totals cannot be compared then. */
function isSameInvoice(
  { gross, foreign }: SaftDocument,
  { total_cents, currency }: Invoice,
  allowed: number,
): boolean {
  if (currency === 'eur') return isSameAmount(total_cents, currency, gross, allowed) === true
  if (foreign === null) return true
  return (
    foreign.currency.toLowerCase() === currency &&
    isSameAmount(total_cents, currency, foreign.amount, allowed) === true
  )
}

function findUnknownCurrency({ foreign, gross }: SaftDocument, { invoice }: StoredSide): string | null {
  if (invoice === null || invoice.currency === 'eur' || foreign !== null) return null
  return `${gross} EUR in the file, which has no total in ${invoice.currency}`
}

function compareTaxIds(filed: string | null, { client_tax_id, invoice }: StoredSide): Finding[] {
  const known: [taxId: string, where: string][] = []
  if (client_tax_id) known.push([client_tax_id, "of the document's client"])
  if (invoice?.customer_tax_id) known.push([invoice.customer_tax_id, `at ${knownSources.billing.name}`])
  const own = filed || anonymousTaxId
  if (known.every(([taxId]) => isSameTaxId(own, taxId))) return []
  const isOneSide = isNobody(own) || known.some(([taxId]) => isNobody(taxId))
  const all = [`${filed || 'none'} in the file`, ...known.map(([taxId, where]) => `${taxId} ${where}`)]
  return [[isOneSide ? 'tax_id_one_side' : 'tax_id_differs', all.join(', ')]]
}

/** Builds a difference without a stored document. */
export function describe(kind: DifferenceKind, side: Partial<Difference>, detail: string): Difference {
  return { kind, ...sidesOf(null, null), ...side, detail }
}

function filedSide({ number, status, gross, foreign }: SaftDocument): Partial<Difference> {
  return {
    document_number: number,
    document_status: status,
    document_currency: foreign?.currency ?? 'EUR',
    document_total: foreign?.amount ?? gross,
  }
}

function nameOf({ number, atcud }: { number: string; atcud: string | null }): string {
  return atcud === null ? number : `${number} (ATCUD ${bareAtcud(atcud)})`
}
