/** The contract's list, written as plainly as can be: every record filtered, sorted and cut for every question. */
import { type Invoice, invoiceStatuses } from '../../../src/domain/invoice.ts'
import type { InvoiceFilters } from '../../../src/domain/list-query.ts'

export interface Question extends Partial<Record<keyof InvoiceFilters, string>> {
  page?: number
  page_size?: number
}

interface FilterModel {
  matches(invoice: Invoice, value: string): boolean
  /** A value that the invoice matches. */
  valueOf(invoice: Invoice): string
}

/** What each filter says of an invoice. One that is added later is missing here, and does not compile. */
const filters: Record<keyof InvoiceFilters, FilterModel> = {
  status: {
    matches: (invoice, value) => invoice.status === value,
    valueOf: ({ status }) => status,
  },
  ix_status: {
    matches: (invoice, value) => invoice.ix_status === value,
    valueOf: ({ ix_status }) => ix_status ?? '',
  },
  date_from: {
    matches: (invoice, value) => invoice.issued_at.slice(0, 10) >= value,
    valueOf: ({ issued_at }) => issued_at.slice(0, 10),
  },
  date_to: {
    matches: (invoice, value) => invoice.issued_at.slice(0, 10) <= value,
    valueOf: ({ issued_at }) => issued_at.slice(0, 10),
  },
  q: { matches: isFound, valueOf: ({ id }) => id },
}
export const filterNames = Object.keys(filters) as (keyof InvoiceFilters)[]

/** Values of every filter, each of which some of the invoices match. */
export function filterValues(invoices: readonly Invoice[]): Record<keyof InvoiceFilters, string[]> {
  const values = filterNames.map(name => [name, [...new Set(invoices.map(filters[name].valueOf))]])
  return Object.fromEntries(values) as Record<keyof InvoiceFilters, string[]>
}

/** All that matches, in the list's order. */
export function expectedMatches(
  invoices: readonly Invoice[],
  customer: string,
  question: Question,
): Invoice[] {
  const { page, page_size, ...asked } = question
  const given = Object.entries(asked) as [keyof InvoiceFilters, string | undefined][]
  return invoices
    .filter(invoice => invoice.customer_id === customer)
    .filter(invoice =>
      given.every(([name, value]) => value === undefined || filters[name].matches(invoice, value)),
    )
    .sort((a, b) => compare(b.issued_at, a.issued_at) || compare(b.id, a.id))
}

export function expectedPage(invoices: readonly Invoice[], customer: string, question: Question) {
  const matching = expectedMatches(invoices, customer, question)
  const page_size = Math.min(question.page_size ?? 10, 50)
  const total = matching.length
  const total_pages = Math.ceil(total / page_size)
  const page = Math.max(1, Math.min(question.page ?? 1, total_pages))
  return {
    invoices: matching.slice((page - 1) * page_size, page * page_size),
    page,
    page_size,
    total,
    total_pages,
    source: 'synchronized_records',
  }
}

/** The customer's sums as they are sent, made of every record: sums may be beyond 2^53. */
export function expectedSummary(invoices: readonly Invoice[], customer: string): string {
  const own = invoices.filter(({ customer_id }) => customer_id === customer)
  const unique = (values: readonly string[]) => [...new Set(values)].sort()
  const sum = (status: string, of: readonly Invoice[]) => {
    const some = of.filter(invoice => invoice.status === status)
    const total = some.reduce((sum, { total_cents }) => sum + BigInt(total_cents), 0n)
    return some.length === 0 ? [] : `"status":"${status}","count":${some.length},"total_cents":${total}`
  }
  const currencies = unique(own.map(({ currency }) => currency)).map(currency => {
    const of = own.filter(invoice => invoice.currency === currency)
    const statuses = invoiceStatuses.flatMap(status => sum(status, of)).map(text => `{${text}}`)
    const months = unique(of.map(({ issued_at }) => issued_at.slice(0, 7))).flatMap(month => {
      const then = of.filter(({ issued_at }) => issued_at.startsWith(month))
      const texts = invoiceStatuses.flatMap(status => sum(status, then))
      return texts.map(text => `{"month":"${month}",${text}}`)
    })
    const open = of.filter(({ status, total_cents }) => status === 'open' && total_cents > 0)
    const remaining = open.reduce((sum, { total_cents }) => sum + BigInt(total_cents), 0n)
    return `{"currency":"${currency}","remaining_cents":${remaining},"credited_cents":0,"statuses":[${statuses}],"months":[${months}]}`
  })
  return `{"currencies":[${currencies}]}`
}

/** The question as a query string. */
export function writeQuestion(question: Question): string {
  const pairs = Object.entries(question).filter(([, value]) => value !== undefined)
  return `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** An invoice's texts as they are searched: by any part, and by their beginnings. Folding is slow, and is done once. */
interface Texts {
  parts: readonly string[]
  ids: readonly string[]
  /** Found by its beginning too, from its prefix on. */
  customer: string
}
const foldedTexts = new WeakMap<Invoice, Texts>()

function textsOf(invoice: Invoice): Texts {
  const known = foldedTexts.get(invoice)
  if (known !== undefined) return known
  const { id, number, display_name, customer_name, customer_email, company_name, customer_tax_id, ix_id } =
    invoice
  const foldAll = (fields: readonly (string | number | null)[]) =>
    fields.filter(field => field !== null).map(field => fold(String(field)))
  const parts = [number, display_name, customer_name, customer_email, company_name, customer_tax_id]
  const texts = {
    parts: foldAll(parts),
    ids: foldAll([id, id.slice('in_'.length), ix_id, ix_id && `in_${ix_id}`]),
    customer: fold(invoice.customer_id),
  }
  foldedTexts.set(invoice, texts)
  return texts
}

/** The words of a question, of which each invoice is asked: those that were typed, and what is left of them folded. */
const foldedWords = new Map<string, { words: readonly string[]; telling: readonly string[] }>()

function wordsOf(q: string) {
  const known = foldedWords.get(q)
  if (known !== undefined) return known
  const words = q.trim() === '' ? [] : q.trim().split(/\s+/)
  const made = { words, telling: words.map(fold).filter(word => word !== '') }
  foldedWords.set(q, made)
  return made
}

function isFound(invoice: Invoice, q: string): boolean {
  const { parts, ids, customer } = textsOf(invoice)
  const { words, telling } = wordsOf(q)
  if (words.length > 0 && telling.length === 0) return false
  return telling.every(
    (word, i) =>
      parts.some(text => text.includes(word)) ||
      ids.some(id => id.startsWith(word)) ||
      (word.startsWith('cus_') && customer.startsWith(word)) ||
      isTaxId(word + joinDigits(word, telling.slice(i + 1)), invoice.customer_tax_id),
  )
}

/** A country code alone stands before the digits that follow it. */
function joinDigits(word: string, following: readonly string[]): string {
  let digits = ''
  for (const next of word.length === 2 ? following : []) {
    if (!/^\d+$/.test(next)) break
    digits += next
  }
  return digits
}

/** A country prefix before a tax id that is stored without one. */
function isTaxId(word: string, taxId: string | null): boolean {
  const form = /^[a-z]{2}[a-z0-9+*]{8,}$/
  return (
    taxId !== null && form.test(word) && /\d/.test(word.slice(2)) && fold(taxId).startsWith(word.slice(2))
  )
}

function fold(text: string): string {
  return [...text.normalize('NFKD').toUpperCase().toLowerCase().normalize('NFKD')]
    .map(char => (char === 'ς' ? 'σ' : char))
    .filter(char => !/[\p{M}\p{Cf}\p{Cc}\p{Pd}\s−./,:;'’"()#·]/u.test(char))
    .join('')
}
