/** The domain: the certified document of an invoice, and what ties the two together. */

/** The types that certify an invoice, with the codes printed before series and number. */
const certifyingCodes = {
  Invoice: 'FT',
  InvoiceReceipt: 'FR',
  SimplifiedInvoice: 'FS',
  VatMossInvoice: 'FVM',
  CashInvoice: 'VD',
}
export type DocumentType = keyof typeof certifyingCodes
export const documentTypes = Object.keys(certifyingCodes) as DocumentType[]

/** Credit notes, debit notes and receipts only refer to an invoice. */
const typeCodes: Readonly<Record<string, string>> = {
  ...certifyingCodes,
  CreditNote: 'NC',
  DebitNote: 'ND',
  Receipt: 'RG',
}

/** A document as the invoicing system had it at one moment. */
export interface Document {
  id: number
  type: DocumentType
  /** The system's own word; `deleted` when the document is known to be gone. */
  status: string
  /** Its reference: an invoice's id, by the convention. */
  reference: string | null
  /** An id that its creator gave: some put the invoice's id here. */
  uid?: string
  /** The printed number, such as "6/G"; null before it is issued. */
  number: string | null
  /** The day it carries, as YYYY-MM-DD. */
  date: string | null
  /** Decimal text in the currency's major unit, such as "12.34". */
  total: string
  /** The currency's name, such as "Euro". */
  currency: string | null
  client_id: number | null
  // A field that an answer leaves out stays as it was stored; one that it gives as nothing is null.
  /** Series and number, such as "A/123", without the type's code. */
  series_number?: string | null
  /** The tax authority's code of the series and the number, such as "ABCD1234-123". */
  atcud?: string | null
  /** As `date`. */
  due_date?: string | null
  /** As `total`. */
  before_taxes?: string | null
  /** By rate, the highest first; null when the parts do not add up to the totals. */
  taxes?: readonly DocumentTax[] | null
  /** The reason for which no tax is due, such as "M07". */
  exemption_code?: string | null
  /** The system's names of fields that did not fit, and were left out. */
  left_out?: string
}

/** Fields that a list may leave out. */
export const optionalFields = [
  'series_number',
  'atcud',
  'due_date',
  'before_taxes',
  'taxes',
  'exemption_code',
] as const satisfies readonly (keyof Document)[]

/** Decimal texts: the rate in percent, amounts in the currency's major unit. */
export interface DocumentTax {
  rate: string
  base: string
  tax: string
}

/** The number as printed, such as "FR A/123"; null before it is issued. */
export function printedNumberOf({ type, series_number }: PrintedNumber): string | null {
  if (!series_number) return null
  const code = typeCodes[type]
  return code === undefined || /^[A-Z]{2,3} /.test(series_number) ? series_number : `${code} ${series_number}`
}

/** A document about another: a credit note, a debit note, a receipt. */
export interface RelatedDocument extends PrintedNumber {
  id: number
  /** The system's own word, as the next. */
  type: string
  status: string
  date: string | null
  total: string
  currency: string | null
}

/** The rest of what the invoicing system has on a document. */
export interface Relations {
  has_qr: boolean
  documents: readonly RelatedDocument[]
}

interface PrintedNumber {
  type: string
  series_number?: string | null | undefined
}

export const claimedStates = ['creating', 'synced', 'failed', 'ignored'] as const
export type ClaimedState = (typeof claimedStates)[number]

/** The creator's record of the document, kept with the invoice. Null where nothing readable is recorded. */
export interface Claim {
  state: ClaimedState | null
  ix_id: number | null
  ix_type: DocumentType | null
  /** ISO 8601, UTC, with milliseconds. */
  created_at: string | null
  attempted_at: string | null
  error: string | null
}

export const noClaim: Claim = {
  state: null,
  ix_id: null,
  ix_type: null,
  created_at: null,
  attempted_at: null,
  error: null,
}

/** A document of these certifies nothing: a draft not yet, a canceled one no longer. */
export const notInForce: readonly string[] = ['draft', 'canceled', 'deleted']

export function isInForce({ status }: Document): boolean {
  return !notInForce.includes(status)
}

/** A document that is missing so often in a row counts as gone. */
export const missesToBelieve = 2

/** Statuses that still change, in the lists' words; documents of others are read again only now and then. */
export const openInLists = ['draft', 'sent'] as const

/** The same in the documents' words: `sent` is the lists' word for `final`. */
export const openDocumentStatuses = ['draft', 'final', 'sent'] as const
