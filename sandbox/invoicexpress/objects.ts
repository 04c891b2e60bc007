/** The invoicing system's objects as the wire has them: the fields that the sandbox reads or changes. */
import { dayIn, dayOf, isCalendarDay } from '../../src/domain/calendar.ts'
import type { DocumentType, relatedTypes } from '../../src/domain/document.ts'
import { decimalsOf } from '../../src/domain/money.ts'

/** Credit and debit notes and receipts are about an invoice, and certify none. */
export type IxType = DocumentType | (typeof relatedTypes)[number]

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

/** The words of the lists' filter: `sent` stands for `final` too. */
export const statusFilters = ['draft', 'sent', 'settled', 'canceled', 'second_copy', 'deleted'] as const

export interface IxItem {
  name: string
  description: string
  /** Text in lists, a number in a document by itself. */
  quantity: string
  unit_price: string
  unit: string
  tax: { id: number; name: string; value: number }
  /** Percent. */
  discount: number
  /** Before taxes, less the discount. */
  subtotal: number
  tax_amount: number
  discount_amount: number
  total: number
}

/** Never changed, only replaced. Amounts are numbers in euros, the account's currency, whatever the invoice's is. */
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
  /** Tax that the client withholds, in percent of `before_taxes`; null for none. */
  retention: string | null
  /** What is to be paid: less the tax withheld. */
  total: number
  /** The account's, by name. */
  currency: 'Euro'
  /** In the invoice's currency, where that is not the account's. */
  multicurrency?: IxMulticurrency
  client: IxParty
  items: IxItem[]
  /** The reason for which no tax is due, as in M07. */
  tax_exemption: string | null
}

export interface IxMulticurrency {
  /** How many of the currency one euro is worth. */
  rate: number
  /** Stripe's code, such as usd. */
  code: string
  /** In the currency's major unit. */
  total: number
}

/** The client as the document has it: with the tax id of the day of issue. */
export interface IxParty {
  id: number
  name: string
  country: string
  fiscal_id: string | null
}

/** What it charges: before any tax is withheld. */
export function chargedBy({ before_taxes, taxes }: Pick<IxDocument, 'before_taxes' | 'taxes'>): number {
  return toCents(before_taxes + taxes) / 100
}

/** The tax that the client withholds, in euros. */
export function withheldFrom({ before_taxes, retention }: Pick<IxDocument, 'before_taxes' | 'retention'>) {
  return toCents((before_taxes * Number(retention ?? 0)) / 100) / 100
}

/** What the client pays: what it charges less the tax withheld. */
export function toPay(amounts: Pick<IxDocument, 'before_taxes' | 'taxes' | 'retention'>): number {
  return toCents(chargedBy(amounts) - withheldFrom(amounts)) / 100
}

/** A part of what a document charges, item by item: with the amounts of a document about it. */
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

/** Of euros. */
export function toCents(euros: number): number {
  // Never the negative zero that JSON does not have.
  return Math.round(euros * 100) + 0
}

/** The numbers on paper, as in G/6 and ABCD1234-6; null before it is issued. */
export function printedOf(document: Pick<IxDocument, 'id' | 'type' | 'sequence_number'>): {
  inverted_sequence_number: string | null
  atcud: string | null
} {
  const { id, sequence_number } = document
  if (sequence_number === null) return { inverted_sequence_number: null, atcud: null }
  const [number, series] = sequence_number.split('/')
  const type = printedTypeOf(document)
  // One that is given out as another type shows its code, or only its series.
  const code = type !== document.type && id % 2 === 0 ? 'FR ' : ''
  return {
    inverted_sequence_number: `${code}${series}/${number}`,
    atcud: `${ixTypes[type].validation}-${number}`,
  }
}

/** The type of the series that its number is of: an invoice-receipt may be given out as an invoice. */
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
  /** The country of its payers, in this sandbox. */
  country: string
  /** How many of it one euro is worth. */
  rate: number
}

const currencies: Record<string, Currency> = {
  eur: { name: 'Euro', country: 'Portugal', rate: 1 },
  usd: { name: 'US Dollar', country: 'Canada', rate: 1.087 },
  jpy: { name: 'Yen', country: 'Japan', rate: 163.93 },
  kwd: { name: 'Kuwaiti Dinar', country: 'Kuwait', rate: 0.3323 },
}

/** By Stripe's code. */
export function currencyOf(code: string): Currency {
  return currencies[code] ?? { name: code.toUpperCase(), country: 'Portugal', rate: 1 }
}

/** From the smallest unit of a currency. */
export function toEuros(amount: number, code: string): number {
  return toCents(toMajor(amount, code) / currencyOf(code).rate) / 100
}

/** From the smallest unit: 1234 is 12.34 in euros, 1234 in yen, 1.234 in dinars. */
export function toMajor(amount: number, code: string): number {
  return amount / 10 ** decimalsOf(code)
}

/** As printed, such as 12.30 US Dollar. */
export function formatMajor(amount: number, code: string): string {
  return `${amount.toFixed(decimalsOf(code))} ${currencyOf(code).name}`
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
