/**
 * Free-text search. An invoice's text is folded once, when the invoice is saved. A query is folded in the same way. Each word of the query
 * must then occur in the text as a substring, or begin an ID. Folding removes case, accents and separators. So `JOAO` finds `João`, and
 * `2025 05128`, `2025/05128` and `202505128` all find `2025-05128`.
 */
import type { Invoice, InvoiceDocument } from '../../domain/invoice.ts'

/** A search among at most this many invoices of a customer costs no more than a page, and is answered like a page. */
export const searchedAtOnce = 1_000

/** Maximum number of words in a query. Words that other words imply are not counted. Each word makes a search slower. */
export const maxSearchWords = 10

/** One word of a query in several forms. An invoice is found when one of `parts` occurs in its text, or one of `beginnings` in its IDs. */
export interface SearchWord {
  parts: readonly string[]
  /** Beginnings of IDs. In the searched text, a control character stands before each ID. A beginning starts with that character. */
  beginnings: readonly string[]
}

// These characters separate fields and stand before IDs. No folded field contains them. A word therefore never matches across two fields.
const fieldEnd = '\n'
const taxIdStart = '\t'
const idStart = '\n'
const customerStart = '\t'

const gap = /[\s\p{Cc}]+/u
// The wildcards of SQL and shells (% _ * ? \) are deliberately not among the separators. A search treats them as ordinary text.
const separators = /[\s\p{Cc}\p{Pd}−./,:;'’"()#·]+/gu
const marks = /[\p{M}\p{Cf}]+/gu
const plainAscii = /^[\x20-\x7e]*$/
const asciiSeparators = /[ \-./,:;'"()#]+/g

export function foldText(text: string): string {
  if (plainAscii.test(text)) return text.toLowerCase().replace(asciiSeparators, '')
  // Upper case comes first, so that ß becomes ss. Sigma has two lower-case forms, which become one.
  const cased = text.normalize('NFKD').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return cased.normalize('NFKD').replace(marks, '').replace(separators, '')
}

const idPrefix = 'in_'
const customerPrefix = 'cus_'

export interface SearchText {
  /** Number, names, e-mail, tax ID, and the document's number and ATCUD. A search finds any part of this text. */
  search_text: string
  /** IDs of the invoice (without `in_`), the document and the customer. A search finds only the beginning of an ID. */
  search_ids: string
}

export function searchText(invoice: Invoice, document: InvoiceDocument | null = null): SearchText {
  const { id, number, display_name, customer_id, customer_name, customer_email, company_name } = invoice
  const { customer_tax_id, ix_id } = invoice
  const { number: documentNumber, atcud } = document ?? {}
  const texts = [number, display_name, customer_name, customer_email, company_name, documentNumber, atcud]
  const fields = new Set(texts.map(text => foldText(text ?? '')))
  if (customer_tax_id !== null) fields.add(taxIdStart + foldText(customer_tax_id))
  fields.delete('')
  const ids = [idStart + foldText(id.replace(/^in_/, '')), ix_id === null ? '' : idStart + ix_id]
  return {
    search_text: [...fields].join(fieldEnd),
    search_ids: ids.join('') + customerStart + foldText(customer_id),
  }
}

/**
 * Matches a text that is as long as a tax ID and contains a digit. The country prefix is not part of this text, because it may be missing
 * in the store.
 */
const taxIdLike = /^(?=.*\d)[a-z0-9+*]{8,}$/
const countryCode = /^[a-z]{2}$/

/**
 * Splits a query into words. Words that others imply, and words of separators alone, are left out. If a query holds nothing but separators,
 * the result is one word that no text contains.
 */
export function searchWords(query: string): SearchWord[] {
  const words = query.split(gap).map(foldText).filter(Boolean)
  if (words.length === 0) return [{ parts: [taxIdStart + taxIdStart], beginnings: [] }]
  const sought = words.map((word, index): SearchWord => {
    const taxId = unprefixedTaxId(word, words.slice(index + 1))
    return {
      parts: taxId === null ? [word] : [word, taxIdStart + taxId],
      beginnings: beginningsOf(word),
    }
  })
  return dropImplied(sought)
}

function beginningsOf(word: string): string[] {
  if (idPrefix.startsWith(word)) return [idStart]
  const beginnings = [idStart + word]
  // A customer's ID is found only by a word with its prefix. Otherwise each short word would begin some customer's ID and find all invoices
  // of this customer.
  if (word.startsWith(customerPrefix)) beginnings.push(customerStart + word)
  if (word.startsWith(idPrefix)) beginnings.push(idStart + word.slice(idPrefix.length))
  return beginnings
}

/** Removes words that other words imply. Of words that imply each other, the first remains. */
function dropImplied(words: readonly SearchWord[]): SearchWord[] {
  const remaining: SearchWord[] = []
  for (const word of words) {
    if (remaining.some(other => implies(other, word))) continue
    const kept = remaining.filter(other => !implies(word, other))
    remaining.splice(0, remaining.length, ...kept, word)
  }
  return remaining
}

/** Tells whether every invoice that `one` finds is also found by `other`. */
function implies(one: SearchWord, other: SearchWord): boolean {
  return (
    one.parts.every(held => other.parts.some(part => held.includes(part))) &&
    one.beginnings.every(held => other.beginnings.some(beginning => held.startsWith(beginning)))
  )
}

/**
 * Returns the beginning of a tax ID after its country code, for queries such as `PT509442013` and `PT 509 442 013`. Null when the word has
 * no country code.
 */
function unprefixedTaxId(word: string, following: readonly string[]): string | null {
  const country = word.slice(0, 2)
  if (!countryCode.test(country)) return null
  const end = following.findIndex(next => !/^\d+$/.test(next))
  const rest = word.length > 2 ? word.slice(2) : following.slice(0, end === -1 ? undefined : end).join('')
  return taxIdLike.test(rest) ? rest : null
}
