/** Differences planted in a SAF-T file alone, for reconciliations to find: the documents are right. */
import { monthOf } from '../../src/domain/calendar.ts'
import { pick } from '../random.ts'
import type { Ledger } from './ledger.ts'
import { type IxDocument, parseDay } from './objects.ts'

export const saftDifferenceKinds = [
  /** Not in the file. */
  'saft_omitted',
  /** A document that there is nowhere else, in a series of its own. */
  'saft_invented',
  /** Canceled in the file. */
  'saft_canceled',
  /** A total that is too high by a euro. */
  'saft_total',
  /** Another tax ID. */
  'saft_tax_id',
  /** The day before, or after the month's first. */
  'saft_date',
  /** An ATCUD of another series. */
  'saft_atcud',
  /** Twice in the file. */
  'saft_twice',
  /** A TotalCredit of the section that is too high by a euro. */
  'saft_sum',
] as const
export type SaftDifferenceKind = (typeof saftDifferenceKinds)[number]

export interface PlantedInSaft {
  kind: SaftDifferenceKind
  invoice_id: string
  document_id: number
}

/** Plants one in a month's SAF-T file: at a document in force that is neither the first nor the last of its series there. */
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
    // The file has no documents of MOSS. An invoice without a customer is nobody's, and its document is known by lists alone.
    const isFiled = isInForce && document.type !== 'VatMossInvoice' && !!invoice?.customer
    return isFiled && document.multicurrency === undefined && (hasTaxId || kind !== 'saft_tax_id')
  })
  if (found.length === 0) throw new Error(`There is no document of ${month} where ${kind} fits.`)
  const [invoice_id, document_id] = pick(random, found)
  return { kind, invoice_id, document_id }
}
