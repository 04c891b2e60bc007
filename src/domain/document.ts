/** The certified document of an invoice, and the claim that ties it to the invoice. */
import { fromMillionths, toMillionths } from './money.ts'

/** Document types that certify an invoice. The value is the code printed before series and number. */
const certifyingCodes = {
  Invoice: 'FT',
  InvoiceReceipt: 'FR',
  SimplifiedInvoice: 'FS',
  VatMossInvoice: 'FVM',
  CashInvoice: 'VD',
}
export type DocumentType = keyof typeof certifyingCodes
export const documentTypes = Object.keys(certifyingCodes) as DocumentType[]

/** Types of documents that refer to an invoice and do not certify it. The MOSS types have no printed code. */
export const relatedTypes = [
  'CreditNote',
  'DebitNote',
  'Receipt',
  'VatMossCreditNote',
  'VatMossReceipt',
] as const
const typeCodes: Readonly<Record<string, string>> = {
  ...certifyingCodes,
  CreditNote: 'NC',
  DebitNote: 'ND',
  Receipt: 'RG',
}

/** Types of documents that take back what an invoice charged. */
export const creditTypes: readonly string[] = ['CreditNote', 'VatMossCreditNote']

/**
 * Amounts of a document. A field is absent when the answer did not contain it, and its stored value then stays. A field is null when the
 * answer had no value for it.
 */
export interface Amounts {
  /** Amount to pay after withheld tax, as decimal text in the currency's major unit, such as "12.34". */
  total: string
  /** Name of the account's currency, such as "Euro". All amounts except `multicurrency` are in this currency. */
  currency: string | null
  /** Amount before taxes, as decimal text in the currency's major unit. */
  before_taxes?: string | null
  /** Sum of all taxes as the invoicing system states it, as decimal text. */
  taxes_total?: string | null
  /** Tax that the client withholds, in percent of `before_taxes`, as decimal text. Null when nothing is withheld. */
  retention?: string | null
  /** Total in the invoice's currency. Null when all amounts are only in the account's currency. */
  multicurrency?: Multicurrency | null
}

/** A document in the state that the invoicing system reported at one moment. */
export interface Document extends Amounts {
  id: number
  type: DocumentType
  /** The invoicing system's own word for the status. `deleted` when the document is known to be gone. */
  status: string
  /** Reference text of the document. By convention it names the invoice. */
  reference: string | null
  /** The document's `proprietary_uid`, which its creator sets. Some creators put the invoice's ID here. */
  uid?: string
  /** Printed number, such as "6/G". Null before the document is issued. */
  number: string | null
  /** The date that is printed on the document, YYYY-MM-DD. */
  date: string | null
  client_id: number | null
  /** Series and number, such as "A/123", without the type's code. */
  series_number?: string | null
  /** The tax authority's code for series and number, such as "ABCD1234-123". */
  atcud?: string | null
  /** The document's due day, YYYY-MM-DD. */
  due_date?: string | null
  /** Taxes by rate, the highest rate first and an unknown rate last. Null when the parts do not add up to the totals. */
  taxes?: readonly DocumentTax[] | null
  /** Code of the reason why no tax is due, such as "M07". */
  exemption_code?: string | null
  /** The client's tax ID as it stands on the document. The client's own record may be edited later. */
  tax_id?: string | null
  buyer_name?: string | null
  /** Data to pay at a Portuguese cash machine. Null when the document cannot be paid there. */
  multibanco?: Multibanco | null
  /** Names of the fields whose values had an unexpected form and were left out, joined by commas. */
  left_out?: string
}

/** Fields that a list of documents may omit. A document fetched by itself always has these fields. */
export const wholeFields = [
  'series_number',
  'atcud',
  'due_date',
  'before_taxes',
  'taxes_total',
  'taxes',
  'exemption_code',
] as const satisfies readonly (keyof Document)[]

/** Fields that an answer may omit. A list may omit any of them. A document fetched by itself always has those in `wholeFields`. */
export const optionalFields = [
  ...wholeFields,
  'retention',
  'multicurrency',
  'tax_id',
  'buyer_name',
  'multibanco',
] as const satisfies readonly (keyof Document)[]

/** Tax of one rate, as decimal texts. The rate is in percent, and null when unknown. Amounts are in the currency's major unit. */
export interface DocumentTax {
  rate: string | null
  base: string
  tax: string
}

/** Numbers that a customer types at a Portuguese cash machine to pay. */
export interface Multibanco {
  /** Entity number of the payee, five digits. */
  entity: string
  /** Payment reference, nine digits. */
  reference: string
}

/** A total in a currency other than the account's. Rate and total are decimal texts from the invoicing system. */
export interface Multicurrency {
  /** Units of this currency that one unit of the account's currency is worth. Some creators record the reverse rate. */
  rate: string | null
  /** Currency code, such as "usd", or the currency's name when its code is unknown. */
  currency: string
  total: string
}

/** Returns the document type that the printed number shows. The invoicing system reports some invoice-receipts as `Invoice`. */
export function printedTypeOf({ type, series_number }: PrintedNumber): string {
  return type === 'Invoice' && /^FR[ /]/.test(series_number ?? '') ? 'InvoiceReceipt' : type
}

/** Returns the code printed before series and number, such as FT. Null for a type without a code. */
export function printedCodeOf(number: PrintedNumber): string | null {
  return typeCodes[printedTypeOf(number)] ?? null
}

/** Returns the printed number, such as "FR A/123". Null before the document is issued. */
export function printedNumberOf(number: PrintedNumber): string | null {
  const { series_number } = number
  if (!series_number) return null
  const code = printedCodeOf(number)
  return code === null || /^[A-Z]{2,3} /.test(series_number) ? series_number : `${code} ${series_number}`
}

/** Returns the document's ID and day as a text for people, such as "document 7 of 2026-03-01". */
export function nameDocument({ id, date }: Pick<Document, 'id' | 'date'>): string {
  return `document ${id} of ${date ?? 'an unknown day'}`
}

/**
 * Returns the amount that the document charges before any tax is withheld, as decimal text in the account's currency. Null when unknown.
 */
export function grossOf({ total, before_taxes, taxes_total, retention }: Amounts): string | null {
  const [base, tax] = [before_taxes, taxes_total].map(each => (each ? toMillionths(each) : null))
  if (base != null && tax != null) return fromMillionths(base + tax)
  return isNothing(retention) ? total : null
}

/** Returns the withheld tax as decimal text. Null when nothing is withheld or the amount is unknown. */
export function withheldOf(amounts: Amounts): string | null {
  if (isNothing(amounts.retention)) return null
  const [gross, total] = [grossOf(amounts) ?? '', amounts.total].map(toMillionths)
  return gross == null || total == null ? null : fromMillionths(gross - total)
}

const isNothing = (percent: string | null | undefined) => !percent || toMillionths(percent) === 0n

/** A credit note, debit note or receipt that refers to another document. */
export interface RelatedDocument extends PrintedNumber, Amounts {
  id: number
  /** `type` and `status` are the invoicing system's own words. */
  type: string
  status: string
  date: string | null
  /** Taxes by rate, the highest rate first. Null when the parts do not add up to the totals. */
  taxes?: readonly DocumentTax[] | null
  exemption_code?: string | null
}

/** Facts about a document that the invoicing system reports separately: its QR code, and the documents that refer to it. */
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

/** Facts about the document that its creator recorded with the invoice. A field is null when nothing readable is recorded. */
export interface Claim {
  state: ClaimedState | null
  ix_id: number | null
  ix_type: DocumentType | null
  /** `created_at` and `attempted_at` are ISO 8601 times in UTC, with milliseconds. */
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

/** Status of a second print of a document. Whether a second print is in force depends on its original. */
export const copyStatus = 'second_copy'

/** Statuses of documents that certify nothing. A draft does not certify yet, and a canceled document no longer does. */
export const notInForce: readonly string[] = ['draft', 'canceled', 'deleted']

/** Tells whether a document is in force by its status. A second print never is, because its original may be canceled. */
export function isInForce({ status }: Pick<Document, 'status'>): boolean {
  return !notInForce.includes(status) && status !== copyStatus
}

/**
 * Returns the document's status. A second print has the status of its original among `others`, or keeps its own when the original is
 * missing.
 */
export function originalStatusOf(document: Document, others: readonly Document[]): string {
  if (document.status !== copyStatus) return document.status
  const number = numberOf(document)
  const isOriginal = (other: Document) => other.status !== copyStatus && numberOf(other) === number
  return (number === null ? undefined : others.find(isOriginal))?.status ?? copyStatus
}

const numberOf = (document: Document) => printedNumberOf(document) ?? document.number

/** A document counts as gone after this number of consecutive answers without it. */
export const missesToBelieve = 2

/** Statuses of documents that may still change, as lists of documents name them. Documents with other statuses are rarely read again. */
export const openInLists = ['draft', 'sent'] as const

/** Statuses of documents that may still change, as single documents name them. Lists use `sent` for `final`. */
export const openDocumentStatuses = ['draft', 'final', 'sent'] as const
