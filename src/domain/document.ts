/** The domain: the certified document of an invoice, and what ties the two together. */
import { fromMillionths, toMillionths } from './money.ts'

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

/** Credit notes, debit notes and receipts only refer to an invoice. Those of MOSS have no code of their own. */
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

/** What a document charges. A field that an answer leaves out is absent, or stays as it was stored; one that it gives as nothing is null. */
export interface Amounts {
  /** Decimal text in the currency's major unit, such as "12.34": what is to be paid, less the tax withheld. */
  total: string
  /** The name of the account's currency, such as "Euro": every amount but `multicurrency` is in it. */
  currency: string | null
  /** As `total`, and so is the next. */
  before_taxes?: string | null
  /** The whole tax, as the system gives it. */
  taxes_total?: string | null
  /** Tax that the client withholds, in percent of `before_taxes`, as decimal text; null for none. */
  retention?: string | null
  /** The total in the invoice's own currency; null when there is none beside the account's. */
  multicurrency?: Multicurrency | null
}

/** A document as the invoicing system had it at one moment. */
export interface Document extends Amounts {
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
  client_id: number | null
  /** Series and number, such as "A/123", without the type's code. */
  series_number?: string | null
  /** The tax authority's code of the series and the number, such as "ABCD1234-123". */
  atcud?: string | null
  /** As `date`. */
  due_date?: string | null
  /** By rate, the highest first, unknown rates last; null when the parts do not add up to the totals. */
  taxes?: readonly DocumentTax[] | null
  /** The reason for which no tax is due, such as "M07". */
  exemption_code?: string | null
  /** The client's tax ID and name as the document has them: clients are edited later. */
  tax_id?: string | null
  buyer_name?: string | null
  /** Where it can be paid at a cash machine; null when it cannot. */
  multibanco?: Multibanco | null
  /** The system's names of fields that did not fit, and were left out. */
  left_out?: string
}

/** Fields that a list may leave out, and a document by itself has. */
export const wholeFields = [
  'series_number',
  'atcud',
  'due_date',
  'before_taxes',
  'taxes_total',
  'taxes',
  'exemption_code',
] as const satisfies readonly (keyof Document)[]

/** And those that a document by itself may be without. */
export const optionalFields = [
  ...wholeFields,
  'retention',
  'multicurrency',
  'tax_id',
  'buyer_name',
  'multibanco',
] as const satisfies readonly (keyof Document)[]

/** Decimal texts: the rate in percent, null when it is not known; amounts in the currency's major unit. */
export interface DocumentTax {
  rate: string | null
  base: string
  tax: string
}

/** What is typed at a Portuguese cash machine to pay. */
export interface Multibanco {
  /** Five digits. */
  entity: string
  /** Nine digits. */
  reference: string
}

/** Decimal texts, as the system gives them. */
export interface Multicurrency {
  /** How many of the currency one of the account's is worth; from some creators the other way round. */
  rate: string | null
  /** Its code, such as "usd"; its name where no code is known for it. */
  currency: string
  total: string
}

/** The type by the printed number: the system gives some invoice-receipts out as invoices. */
export function printedTypeOf({ type, series_number }: PrintedNumber): string {
  return type === 'Invoice' && /^FR[ /]/.test(series_number ?? '') ? 'InvoiceReceipt' : type
}

/** The code before series and number, such as FT; null for a type that has none. */
export function printedCodeOf(number: PrintedNumber): string | null {
  return typeCodes[printedTypeOf(number)] ?? null
}

/** The number as printed, such as "FR A/123"; null before it is issued. */
export function printedNumberOf(number: PrintedNumber): string | null {
  const { series_number } = number
  if (!series_number) return null
  const code = printedCodeOf(number)
  return code === null || /^[A-Z]{2,3} /.test(series_number) ? series_number : `${code} ${series_number}`
}

/** A document in a line for people, with the day it carries. */
export function nameDocument({ id, date }: Pick<Document, 'id' | 'date'>): string {
  return `document ${id} of ${date ?? 'an unknown day'}`
}

/** What the document charges, before any tax is withheld: decimal text in the account's currency; null when it is not known. */
export function grossOf({ total, before_taxes, taxes_total, retention }: Amounts): string | null {
  const [base, tax] = [before_taxes, taxes_total].map(each => (each ? toMillionths(each) : null))
  if (base != null && tax != null) return fromMillionths(base + tax)
  return isNothing(retention) ? total : null
}

/** The tax that the client withholds; null for none, and when it is not known. */
export function withheldOf(amounts: Amounts): string | null {
  if (isNothing(amounts.retention)) return null
  const [gross, total] = [grossOf(amounts) ?? '', amounts.total].map(toMillionths)
  return gross == null || total == null ? null : fromMillionths(gross - total)
}

const isNothing = (percent: string | null | undefined) => !percent || toMillionths(percent) === 0n

/** A document about another: a credit note, a debit note, a receipt. */
export interface RelatedDocument extends PrintedNumber, Amounts {
  id: number
  /** The system's own word, as the next. */
  type: string
  status: string
  date: string | null
  /** As of a document, and so is the next. */
  taxes?: readonly DocumentTax[] | null
  exemption_code?: string | null
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

/** A second print of a document, which certifies what its original does, and nothing by itself. */
export const copyStatus = 'second_copy'

/** A document of these certifies nothing: a draft not yet, a canceled one no longer. */
export const notInForce: readonly string[] = ['draft', 'canceled', 'deleted']

/** Of a copy alone, nobody knows whether its original is in force. */
export function isInForce({ status }: Pick<Document, 'status'>): boolean {
  return !notInForce.includes(status) && status !== copyStatus
}

/** The status of a document; of a copy, that of its original among `others`, and the copy's own when it is not among them. */
export function originalStatusOf(document: Document, others: readonly Document[]): string {
  if (document.status !== copyStatus) return document.status
  const number = numberOf(document)
  const isOriginal = (other: Document) => other.status !== copyStatus && numberOf(other) === number
  return (number === null ? undefined : others.find(isOriginal))?.status ?? copyStatus
}

const numberOf = (document: Document) => printedNumberOf(document) ?? document.number

/** A document that is missing so often in a row counts as gone. */
export const missesToBelieve = 2

/** Statuses that still change, in the lists' words; documents of others are read again only now and then. */
export const openInLists = ['draft', 'sent'] as const

/** The same in the documents' words: `sent` is the lists' word for `final`. */
export const openDocumentStatuses = ['draft', 'final', 'sent'] as const
