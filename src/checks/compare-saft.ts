/** One document of a SAF-T file against the store's, and the invoice that it certifies. Pure. */
import { copyStatus, grossOf, notInForce, printedNumberOf } from '../document.ts'
import { currencyOf } from '../document-json.ts'
import type { Invoice } from '../invoice.ts'
import { anonymousTaxId, isSameTaxId, type LinkRules } from '../linking/link.ts'
import { writeAmount } from '../money.ts'
import { describeCharged, isNear, isSameAmount } from './compare-amounts.ts'
import { knownSources } from './known-sources.ts'
import type { SaftDocument } from './read-saft.ts'
import { type Difference, type DifferenceKind, describeUnlinked, sidesOf } from './reconcile.ts'
import { bareAtcud, type Pair, type StoredSide, withoutCode } from './saft-tables.ts'

export function* comparePair({ filed, taxId, stored }: Pair, rules: LinkRules): Generator<Difference> {
  if (stored === null) {
    const detail = `${nameOf(filed)} of ${filed.date} is in the file, and not in the store`
    return yield describe('not_in_store', filedSide(filed), detail)
  }
  const { document, invoice, isGone } = stored
  const sides = { ...sidesOf(invoice, document), document_number: filed.number }
  const add = (kind: DifferenceKind, detail: string | null) =>
    detail === null ? [] : [{ kind, ...sides, detail } satisfies Difference]
  const status = isGone ? 'deleted' : document.status
  const isCanceled = filed.status === 'A'
  // The file tells whether a copy's original is in force.
  if (status !== copyStatus && isCanceled !== (status === 'canceled' || status === 'deleted'))
    yield* add(
      'canceled_in_one',
      `${isCanceled ? 'canceled' : 'in force'} in the file, ${status} in the store`,
    )
  yield* add('number_differs', compareNumbers(filed, stored))
  if (filed.date !== document.date)
    yield* add('date_differs', `${filed.date} in the file, ${document.date ?? 'none'} on the document`)
  if (isCanceled || notInForce.includes(document.status)) return
  yield* add('total_differs', compareAmounts(filed, stored))
  yield* add('currency_unknown', findUnknownCurrency(filed, stored))
  yield* add('tax_id_differs', compareTaxIds(taxId, stored))
  if (invoice?.status === 'void') yield* add('document_on_void', 'void, but in force in the file')
  if (stored.isUnlinked) yield { ...describeUnlinked(document, rules), document_number: filed.number }
}

function compareNumbers(filed: SaftDocument, { document }: StoredSide): string | null {
  const { series_number = null, atcud = null } = document
  const isSameNumber = series_number === null || withoutCode(series_number) === withoutCode(filed.number)
  const isSameAtcud = atcud === null || filed.atcud === null || bareAtcud(atcud) === bareAtcud(filed.atcud)
  if (isSameNumber && isSameAtcud) return null
  const printed = nameOf({ number: printedNumberOf(document) ?? 'no number', atcud })
  return `${nameOf(filed)} in the file, ${printed} on the document`
}

/** Totals of the file, the document and the invoice: less than a smallest unit apart, in euros and in the invoice's currency. */
function compareAmounts(filed: SaftDocument, { document, invoice }: StoredSide): string | null {
  const inEuros = (currencyOf(document.currency) ?? 'eur') === 'eur'
  const gross = grossOf(document)
  const isSame =
    (!inEuros || gross === null || isNear(filed.gross, gross)) &&
    (filed.foreign === null || isSameForeign(filed.foreign, document)) &&
    (invoice === null || isSameInvoice(filed, invoice))
  const isSameNet = !inEuros || !document.before_taxes || isNear(filed.net, document.before_taxes)
  if (isSame && isSameNet) return null
  if (isSame) return `${filed.net} before taxes in the file, ${document.before_taxes} on the document`
  const inFile = filed.foreign ? `${nameForeign(filed.foreign)} (${filed.gross} EUR)` : `${filed.gross} EUR`
  const both = `${inFile} in the file, ${describeCharged(document)} on the document`
  const onInvoice = invoice && `${writeAmount(invoice.total_cents, invoice.currency)} ${invoice.currency}`
  return onInvoice === null ? both : `${both}, ${onInvoice} at ${knownSources.billing.name}`
}

type Foreign = NonNullable<SaftDocument['foreign']>

const nameForeign = ({ amount, currency }: Foreign) => `${amount} ${currency}`

function isSameForeign({ currency, amount }: Foreign, { multicurrency }: StoredSide['document']): boolean {
  if (!multicurrency) return true
  const theirs = currencyOf(multicurrency.currency)
  return (theirs === null || theirs === currency.toLowerCase()) && isNear(amount, multicurrency.total)
}

/** A file without the invoice's currency says nothing of its total. */
function isSameInvoice({ gross, foreign }: SaftDocument, { total_cents, currency }: Invoice): boolean {
  if (currency === 'eur') return isSameAmount(total_cents, currency, gross) === true
  if (foreign === null) return true
  return (
    foreign.currency.toLowerCase() === currency &&
    isSameAmount(total_cents, currency, foreign.amount) === true
  )
}

function findUnknownCurrency({ foreign, gross }: SaftDocument, { invoice }: StoredSide): string | null {
  if (invoice === null || invoice.currency === 'eur' || foreign !== null) return null
  return `${gross} EUR in the file, which has no total in ${invoice.currency}`
}

function compareTaxIds(filed: string | null, { client_tax_id, invoice }: StoredSide) {
  const known: [taxId: string, where: string][] = []
  if (client_tax_id) known.push([client_tax_id, "of the document's client"])
  if (invoice?.customer_tax_id) known.push([invoice.customer_tax_id, `at ${knownSources.billing.name}`])
  const own = filed || anonymousTaxId
  if (known.every(([taxId]) => isSameTaxId(own, taxId))) return null
  return [`${filed || 'none'} in the file`, ...known.map(([taxId, where]) => `${taxId} ${where}`)].join(', ')
}

/** A difference that concerns no stored document. */
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
