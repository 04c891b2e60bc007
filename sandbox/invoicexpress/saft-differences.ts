/** Plants differences in a SAF-T file for a reconciliation to find. The documents themselves are correct. */
import { monthOf } from '../../src/domain/calendar.ts'
import { pick } from '../random.ts'
import type { Ledger } from './ledger.ts'
import { type IxDocument, parseDay } from './objects.ts'

export const saftDifferenceKinds = [
  /** A document is missing from the file. */
  'saft_omitted',
  /** The file has a document in its own series that does not exist elsewhere. */
  'saft_invented',
  /** A document is canceled in the file. */
  'saft_canceled',
  /** The file has a total that is too high by one euro. */
  'saft_total',
  /** The file has another tax ID for the document's customer. */
  'saft_tax_id',
  /** The file dates the document a day too early. A document of the first of a month is dated the second instead. */
  'saft_date',
  /** The file has an ATCUD of another series. */
  'saft_atcud',
  /** The file has the document twice. */
  'saft_twice',
  /** The section's TotalCredit is too high by one euro. */
  'saft_sum',
] as const
export type SaftDifferenceKind = (typeof saftDifferenceKinds)[number]

export interface PlantedInSaft {
  kind: SaftDifferenceKind
  invoice_id: string
  document_id: number
}

/** Plants a difference in a month's SAF-T file. The chosen document is in force and not the first or last of its series in the month. */
export function plantInSaft(
  { account, random, ofInvoice, documents }: Ledger,
  kind: SaftDifferenceKind,
  isOrdinary: (invoiceId: string) => boolean,
  month = monthOf(account.clock * 1000),
): PlantedInSaft {
  const isOfMonth = ({ date }: IxDocument) => parseDay(date)?.startsWith(month) === true
  const issued = [...documents.values()].filter(each => each.sequence_number !== null && isOfMonth(each))
  const ends = new Set<IxDocument | undefined>()
  for (const series of Map.groupBy(issued, ({ type }) => type).values()) {
    ends.add(series[0])
    ends.add(series.at(-1))
  }
  const found = [...ofInvoice].filter(([id, documentId]) => {
    const document = documents.get(documentId)
    if (document === undefined || !isOfMonth(document) || ends.has(document) || !isOrdinary(id)) return false
    const invoice = account.invoices.get(id)
    const hasTaxId = (invoice?.customer_tax_ids ?? []).length > 0
    const isInForce = /^(final|sent|settled)$/.test(document.status)
    // MOSS documents are not in the file. An invoice without a customer is excluded, because it belongs to nobody.
    const isFiled = isInForce && document.type !== 'VatMossInvoice' && !!invoice?.customer
    return isFiled && document.multicurrency === undefined && (hasTaxId || kind !== 'saft_tax_id')
  })
  if (found.length === 0) throw new Error(`There is no document of ${month} where ${kind} fits.`)
  const [invoice_id, document_id] = pick(random, found)
  return { kind, invoice_id, document_id }
}
