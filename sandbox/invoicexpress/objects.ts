/** The objects of InvoiceXpress as its API writes them. Only fields that the sandbox reads or changes are listed. */
import { dayIn, dayOf, isCalendarDay } from '../../src/domain/calendar.ts'
import type { DocumentType, relatedTypes } from '../../src/domain/document.ts'
import { decimalsOf } from '../../src/domain/money.ts'

/** Credit notes, debit notes and receipts refer to another document and certify no invoice. */
export type IxType = DocumentType | (typeof relatedTypes)[number]

interface TypeWords {
  /** Name of the type in addresses. */
  path: string
  /** JSON key around a single document. */
  key: string
  /** Series of the type. It follows the number after a slash. */
  series: string
  /** The tax authority's code of the series. It begins the ATCUD. */
  validation: string
  title: string
}

export const ixTypes: Record<IxType, TypeWords> = {
  Invoice: { path: 'invoices', key: 'invoice', series: 'G', validation: 'JFX8PR2J', title: 'Fatura' },
  InvoiceReceipt: {
    path: 'invoice_receipts',
    key: 'invoice_receipt',
    series: 'FR',
    validation: 'JFR2K9W4',
    title: 'Fatura-recibo',
  },
  SimplifiedInvoice: {
    path: 'simplified_invoices',
    key: 'simplified_invoice',
    series: 'FS',
    validation: 'JFS7D3TN',
    title: 'Fatura simplificada',
  },
  VatMossInvoice: {
    path: 'vat_moss_invoices',
    key: 'vat_moss_invoice',
    series: 'VM',
    validation: 'JVM4H8QX',
    title: 'Fatura MOSS',
  },
  CashInvoice: {
    path: 'cash_invoices',
    key: 'cash_invoice',
    series: 'VD',
    validation: 'JVD6B2LC',
    title: 'Venda a dinheiro',
  },
  CreditNote: {
    path: 'credit_notes',
    key: 'credit_note',
    series: 'NC',
    validation: 'JNC3M7ZK',
    title: 'Nota de crédito',
  },
  DebitNote: {
    path: 'debit_notes',
    key: 'debit_note',
    series: 'ND',
    validation: 'JND9T5FG',
    title: 'Nota de débito',
  },
  Receipt: { path: 'receipts', key: 'receipt', series: 'RG', validation: 'JRG5V2HD', title: 'Recibo' },
  VatMossCreditNote: {
    path: 'vat_moss_credit_notes',
    key: 'vat_moss_credit_note',
    series: 'VMNC',
    validation: 'JVN8C3RT',
    title: 'Nota de crédito MOSS',
  },
  VatMossReceipt: {
    path: 'vat_moss_receipts',
    key: 'vat_moss_receipt',
    series: 'VMRG',
    validation: 'JVR2F6YK',
    title: 'Recibo MOSS',
  },
}

export type IxStatus = 'draft' | 'final' | 'sent' | 'settled' | 'canceled' | 'deleted' | 'second_copy'

/** Values of the status filter. `sent` includes final documents. */
export const statusFilters = ['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted'] as const

export interface IxItem {
  name: string
  description: string
  /** InvoiceXpress writes the quantity as a text in lists, and as a number in a single document. */
  quantity: string
  unit_price: string
  unit: string
  tax: { id: number; name: string; value: number }
  discount: number
  subtotal: number
  tax_amount: number
  discount_amount: number
  total: number
}

/** A document object is replaced, never modified. Amounts are in euros, the account's currency. */
export interface IxDocument {
  id: number
  status: IxStatus
  archived: boolean
  type: IxType
  /** Number and series, for example 6/G. Null for a draft. */
  sequence_number: string | null
  /** Written dd/mm/yyyy, like `due_date`. */
  date: string
  due_date: string
  reference: string | null
  /** A text set by the document's creator. It is unique in the account. */
  proprietary_uid: string | null
  observations: string | null
  sum: number
  discount: number
  before_taxes: number
  taxes: number
  /** Tax that the client withholds, in percent of `before_taxes`. Null when no tax is withheld. */
  retention: string | null
  /** Amount to pay, after the withheld tax is subtracted. */
  total: number
  currency: 'Euro'
  /** The total in the invoice's currency. Missing when the invoice is in euros. */
  multicurrency?: IxMulticurrency
  client: IxParty
  items: IxItem[]
  /** Code of the exemption reason, for example M07. */
  tax_exemption: string | null
}

export interface IxMulticurrency {
  /** Value of one euro in this currency. */
  rate: number
  /** Stripe's code of the currency, for example usd. */
  code: string
  /** Amount in the major unit of the currency. */
  total: number
}

/** A copy of the client with the data of the day of issue. */
export interface IxParty {
  id: number
  name: string
  country: string
  fiscal_id: string | null
}

/** Returns the document's total before a withheld tax is subtracted. */
export function chargedBy({ before_taxes, taxes }: Pick<IxDocument, 'before_taxes' | 'taxes'>): number {
  return toCents(before_taxes + taxes) / 100
}

/** Returns the tax that the client withholds, in euros. */
export function withheldFrom({ before_taxes, retention }: Pick<IxDocument, 'before_taxes' | 'retention'>) {
  return toCents((before_taxes * Number(retention ?? 0)) / 100) / 100
}

/** Returns the amount that the client pays, after the withheld tax is subtracted. */
export function toPay(amounts: Pick<IxDocument, 'before_taxes' | 'taxes' | 'retention'>): number {
  return toCents(chargedBy(amounts) - withheldFrom(amounts)) / 100
}

/** Returns a share of a document's amounts, item by item. Credit notes and receipts are built from it. */
export function shareOf(document: IxDocument, share: number): IxDocument {
  const part = (amount: number) => toCents(amount * share) / 100
  const { before_taxes, taxes, retention, multicurrency } = document
  const parts = { before_taxes: part(before_taxes), taxes: part(taxes), retention }
  const unit = 10 ** decimalsOf(multicurrency?.code ?? 'eur')
  return {
    ...document,
    ...parts,
    sum: part(document.sum),
    discount: part(document.discount),
    total: toPay(parts),
    ...(multicurrency && {
      multicurrency: { ...multicurrency, total: Math.round(multicurrency.total * share * unit) / unit },
    }),
    items: document.items.map(item => ({
      ...item,
      quantity: (Number(item.quantity) * share).toFixed(2),
      subtotal: part(item.subtotal),
      tax_amount: part(item.tax_amount),
      discount_amount: part(item.discount_amount),
      total: part(item.total),
    })),
  }
}

export function toCents(euros: number): number {
  // Adding 0 turns -0 into 0, because JSON cannot express -0.
  return Math.round(euros * 100) + 0
}

/** Returns the printed number, for example G/6, and the ATCUD, for example ABCD1234-6. Both are null for a draft. */
export function printedOf(document: Pick<IxDocument, 'id' | 'type' | 'sequence_number'>): {
  inverted_sequence_number: string | null
  atcud: string | null
} {
  const { id, sequence_number } = document
  if (sequence_number === null) return { inverted_sequence_number: null, atcud: null }
  const [number, series] = sequence_number.split('/')
  const type = printedTypeOf(document)
  // An invoice-receipt that is recorded as an invoice prints the code FR before its series, or only its series.
  const code = type !== document.type && id % 2 === 0 ? 'FR ' : ''
  return {
    inverted_sequence_number: `${code}${series}/${number}`,
    atcud: `${ixTypes[type].validation}-${number}`,
  }
}

/** Returns the type that a document prints. An invoice with a number of the invoice-receipts' series prints as an invoice-receipt. */
export function printedTypeOf({ type, sequence_number }: Pick<IxDocument, 'type' | 'sequence_number'>) {
  return type === 'Invoice' && sequence_number?.endsWith(`/${ixTypes.InvoiceReceipt.series}`)
    ? 'InvoiceReceipt'
    : type
}

export interface IxClient {
  id: number
  name: string
  code: string
  email: string | null
  language: string
  address: string | null
  city: string | null
  postal_code: string | null
  country: string
  fiscal_id: string | null
  website: string | null
  phone: string | null
  observations: string | null
}

interface Currency {
  name: string
  /** Country of customers who pay in this currency, in this sandbox. */
  country: string
  /** Value of one euro in this currency. */
  rate: number
}

const currencies: Record<string, Currency> = {
  eur: { name: 'Euro', country: 'Portugal', rate: 1 },
  usd: { name: 'US Dollar', country: 'Canada', rate: 1.087 },
  jpy: { name: 'Yen', country: 'Japan', rate: 163.93 },
  kwd: { name: 'Kuwaiti Dinar', country: 'Kuwait', rate: 0.3323 },
}

export function currencyOf(code: string): Currency {
  return currencies[code] ?? { name: code.toUpperCase(), country: 'Portugal', rate: 1 }
}

/** Converts an amount in the smallest unit of a currency to euros. */
export function toEuros(amount: number, code: string): number {
  return toCents(toMajor(amount, code) / currencyOf(code).rate) / 100
}

/** Converts the smallest unit of a currency to its major unit. 1234 is 12.34 in euros, 1234 in yen and 1.234 in dinars. */
export function toMajor(amount: number, code: string): number {
  return amount / 10 ** decimalsOf(code)
}

/** Formats an amount for print, for example "12.30 US Dollar". */
export function formatMajor(amount: number, code: string): string {
  return `${amount.toFixed(decimalsOf(code))} ${currencyOf(code).name}`
}

const lisbon = dayIn('Europe/Lisbon')

/** Formats a moment in seconds as dd/mm/yyyy in Lisbon's time zone. */
export function formatDay(seconds: number): string {
  // Lisbon is at most an hour ahead of UTC, so only the last hour of a day in UTC needs the time zone.
  const isNextDay = seconds % 86_400 >= 82_800
  return (isNextDay ? lisbon : dayOf)(seconds * 1000)
    .split('-')
    .reverse()
    .join('/')
}

/** Converts dd/mm/yyyy to yyyy-mm-dd. Null when the text is not a day. */
export function parseDay(text: string): string | null {
  const day = text.split('/').reverse().join('-')
  return /^\d\d\/\d\d\/\d{4}$/.test(text) && isCalendarDay(day) ? day : null
}
