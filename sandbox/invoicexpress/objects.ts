/** The invoicing system's objects as the wire has them: the fields that the sandbox reads or changes. */
import { dayIn, dayOf, isCalendarDay } from '../../src/calendar.ts'
import type { DocumentType } from '../../src/document.ts'
import { decimalsOf } from '../../src/money.ts'

/** Credit and debit notes and receipts are about an invoice, and certify none. */
export type IxType = DocumentType | 'CreditNote' | 'DebitNote' | 'Receipt'

interface TypeWords {
  /** In addresses. */
  path: string
  /** The wrapper of a single document. */
  key: string
  /** After the number. */
  series: string
  /** The tax authority's code of the series, as in the ATCUD. */
  validation: string
  /** On paper. */
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
}

export type IxStatus = 'draft' | 'final' | 'sent' | 'settled' | 'canceled' | 'deleted' | 'second_copy'

/** The words of the lists' filter: `sent` stands for `final` too. */
export const statusFilters = ['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted'] as const

export interface IxItem {
  name: string
  description: string
  /** Text in lists, a number in a document by itself. */
  quantity: string
  unit_price: string
  tax: { name: string; value: number }
  /** Before taxes, less the discount. */
  subtotal: number
  tax_amount: number
  total: number
}

/** Never changed, only replaced. Amounts are numbers in the currency's major unit. */
export interface IxDocument {
  id: number
  status: IxStatus
  archived: boolean
  type: IxType
  /** As in 6/G; null before it is issued. */
  sequence_number: string | null
  /** dd/mm/yyyy, as the next. */
  date: string
  due_date: string
  reference: string | null
  /** Set by its creator, unique in the account. */
  proprietary_uid: string | null
  observations: string | null
  sum: number
  discount: number
  before_taxes: number
  taxes: number
  total: number
  /** A name, such as Euro. */
  currency: string
  /** Without tax id. */
  client: { id: number; name: string; country: string }
  items: IxItem[]
  /** The reason for which no tax is due, as in M07. */
  tax_exemption: string | null
}

/** The numbers on paper, as in G/6 and ABCD1234-6; null before it is issued. */
export function printedOf({ type, sequence_number }: Pick<IxDocument, 'type' | 'sequence_number'>): {
  inverted_sequence_number: string | null
  atcud: string | null
} {
  if (sequence_number === null) return { inverted_sequence_number: null, atcud: null }
  const [number, series] = sequence_number.split('/')
  return {
    inverted_sequence_number: `${series}/${number}`,
    atcud: `${ixTypes[type].validation}-${number}`,
  }
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
  /** The country of its payers, in this sandbox. */
  country: string
}

const currencies: Record<string, Currency> = {
  eur: { name: 'Euro', country: 'Portugal' },
  usd: { name: 'US Dollar', country: 'Canada' },
  jpy: { name: 'Yen', country: 'Japan' },
  kwd: { name: 'Kuwaiti Dinar', country: 'Kuwait' },
}

/** By Stripe's code. */
export function currencyOf(code: string): Currency {
  return currencies[code] ?? { name: code.toUpperCase(), country: 'Portugal' }
}

/** From the smallest unit: 1234 is 12.34 in euros, 1234 in yen, 1.234 in dinars. */
export function toMajor(amount: number, code: string): number {
  return amount / 10 ** decimalsOf(code)
}

/** The code of a document's currency, such as eur. */
export function codeOf({ currency }: IxDocument): string {
  return Object.keys(currencies).find(code => currencies[code]?.name === currency) ?? 'eur'
}

/** As printed, such as 12.30 Euro. */
export function formatTotal(document: IxDocument): string {
  return `${document.total.toFixed(decimalsOf(codeOf(document)))} ${document.currency}`
}

const lisbon = dayIn('Europe/Lisbon')

/** dd/mm/yyyy of a moment in seconds, by the clocks of Lisbon. */
export function formatDay(seconds: number): string {
  // These are never behind UTC, and an hour ahead at most.
  const isNextDay = seconds % 86_400 >= 82_800
  return (isNextDay ? lisbon : dayOf)(seconds * 1000)
    .split('-')
    .reverse()
    .join('/')
}

/** From dd/mm/yyyy to yyyy-mm-dd; null when the text is no day. */
export function parseDay(text: string): string | null {
  const day = text.split('/').reverse().join('-')
  return /^\d\d\/\d\d\/\d{4}$/.test(text) && isCalendarDay(day) ? day : null
}
