/** The invoicing system's objects as the wire has them: the fields that the sandbox reads or changes. */
import type { DocumentType } from '../../src/document.ts'

/** Credit and debit notes and receipts are about an invoice, and certify none. */
export type IxType = DocumentType | 'CreditNote' | 'DebitNote' | 'Receipt'

interface TypeWords {
  /** In the address of one. */
  path: string
  /** What one is wrapped in. */
  key: string
  /** What follows the number. */
  series: string
  /** On paper. */
  title: string
}

export const ixTypes: Record<IxType, TypeWords> = {
  Invoice: { path: 'invoices', key: 'invoice', series: 'G', title: 'Fatura' },
  InvoiceReceipt: { path: 'invoice_receipts', key: 'invoice_receipt', series: 'FR', title: 'Fatura-recibo' },
  SimplifiedInvoice: {
    path: 'simplified_invoices',
    key: 'simplified_invoice',
    series: 'FS',
    title: 'Fatura simplificada',
  },
  VatMossInvoice: { path: 'vat_moss_invoices', key: 'vat_moss_invoice', series: 'VM', title: 'Fatura MOSS' },
  CashInvoice: { path: 'cash_invoices', key: 'cash_invoice', series: 'VD', title: 'Venda a dinheiro' },
  CreditNote: { path: 'credit_notes', key: 'credit_note', series: 'NC', title: 'Nota de crédito' },
  DebitNote: { path: 'debit_notes', key: 'debit_note', series: 'ND', title: 'Nota de débito' },
  Receipt: { path: 'receipts', key: 'receipt', series: 'RG', title: 'Recibo' },
}

export type IxStatus = 'draft' | 'final' | 'sent' | 'settled' | 'canceled' | 'deleted' | 'second_copy'

/** What the lists' filter calls them: `sent` stands for `final` too. */
export const statusFilters = ['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted'] as const

export interface IxItem {
  name: string
  description: string
  /** Text in lists, a number in a document by itself. */
  quantity: string
  unit_price: string
  tax: { name: string; value: number }
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
  /** Whoever made it may call it something, once in the account. */
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
  /** How many digits follow the point. */
  places: number
  /** Where customers who pay in it live, in this sandbox. */
  country: string
}

const currencies: Record<string, Currency> = {
  eur: { name: 'Euro', places: 2, country: 'Portugal' },
  usd: { name: 'US Dollar', places: 2, country: 'Canada' },
  jpy: { name: 'Yen', places: 0, country: 'Japan' },
  kwd: { name: 'Kuwaiti Dinar', places: 3, country: 'Kuwait' },
}

/** By Stripe's code. */
export function currencyOf(code: string): Currency {
  return currencies[code] ?? { name: code.toUpperCase(), places: 2, country: 'Portugal' }
}

/** From the smallest unit: 1234 is 12.34 in euros, 1234 in yen, 1.234 in dinars. */
export function toMajor(amount: number, code: string): number {
  return amount / 10 ** currencyOf(code).places
}

/** As printed, such as 12.30 Euro. */
export function formatTotal({ total, currency }: IxDocument): string {
  const known = Object.values(currencies).find(({ name }) => name === currency)
  return `${total.toFixed(known?.places ?? 2)} ${currency}`
}

/** dd/mm/yyyy of a moment in seconds, by UTC. */
export function formatDay(seconds: number): string {
  const [year, month, day] = new Date(seconds * 1000).toISOString().slice(0, 10).split('-')
  return `${day}/${month}/${year}`
}

/** yyyymmdd, which can be compared; null when the text is no day. */
export function parseDay(text: string): number | null {
  if (!/^\d\d\/\d\d\/\d{4}$/.test(text)) return null
  const [day, month, year] = [Number(text.slice(0, 2)), Number(text.slice(3, 5)), Number(text.slice(6))]
  // The 31st of February becomes a day of March.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
    ? year * 10_000 + month * 100 + day
    : null
}
