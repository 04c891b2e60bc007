/**
 * Free-text search: an invoice's text is folded once, when it is saved; a query is folded the same way, and each of
 * its words must then occur as a plain substring, or begin an id. Folding removes case, accents and separators, so
 * `JOAO` finds `João` and `2025 05128`, `2025/05128` and `202505128` all find `2025-05128`.
 */
import type { Invoice, InvoiceDocument } from '../../domain/invoice.ts'

/** A search among up to so many invoices of a customer costs no more than a page, and is answered as one is. */
export const searchedAtOnce = 1_000

/** How many words a query may have, when those that others imply are left out: each makes a search slower. */
export const maxSearchWords = 10

/** One word of a query: texts of which any must occur, in what is found by any part, or in the ids. */
export interface SearchWord {
  parts: readonly string[]
  /** Each begins with the mark of the id that it begins. */
  beginnings: readonly string[]
}

// No folded field holds these, so a word never matches across two fields, nor a mark by accident.
const fieldEnd = '\n'
const taxIdStart = '\t'
const idStart = '\n'
const customerStart = '\t'

const gap = /[\s\p{Cc}]+/u
// The wildcards of SQL and of shells (% _ * ? \) are deliberately not separators: they are text like any other.
const separators = /[\s\p{Cc}\p{Pd}−./,:;'’"()#·]+/gu
const marks = /[\p{M}\p{Cf}]+/gu
const plainAscii = /^[\x20-\x7e]*$/
const asciiSeparators = /[ \-./,:;'"()#]+/g

export function foldText(text: string): string {
  if (plainAscii.test(text)) return text.toLowerCase().replace(asciiSeparators, '')
  // Through upper case first, so that ß meets ss; sigma has two lower cases and must end as one.
  const cased = text.normalize('NFKD').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return cased.normalize('NFKD').replace(marks, '').replace(separators, '')
}

const idPrefix = 'in_'
const customerPrefix = 'cus_'

export interface SearchText {
  /** Number, names, e-mail, tax id, and the document's number and ATCUD: found by any part. */
  search_text: string
  /** The invoice's id, without its prefix, the document's, and the customer's: found by their beginnings. */
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

/** As long as a tax id, and with a digit; a country prefix before it is not part of what may be stored. */
const taxIdLike = /^(?=.*\d)[a-z0-9+*]{8,}$/
const countryCode = /^[a-z]{2}$/

/** Words that others imply, or of separators alone, are left out; a query of nothing else becomes a word that no text holds. */
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
  // With its prefix alone: without it, each short word would begin some customer's id, and so find all of its invoices.
  if (word.startsWith(customerPrefix)) beginnings.push(customerStart + word)
  if (word.startsWith(idPrefix)) beginnings.push(idStart + word.slice(idPrefix.length))
  return beginnings
}

/** Of words that imply each other, the first stays. */
function dropImplied(words: readonly SearchWord[]): SearchWord[] {
  const left: SearchWord[] = []
  for (const word of words) {
    if (left.some(other => implies(other, word))) continue
    const kept = left.filter(other => !implies(word, other))
    left.splice(0, left.length, ...kept, word)
  }
  return left
}

/** Whether an invoice that is found by one word is found by another as well, whichever form of it is met. */
function implies(one: SearchWord, other: SearchWord): boolean {
  return (
    one.parts.every(held => other.parts.some(part => held.includes(part))) &&
    one.beginnings.every(held => other.beginnings.some(beginning => held.startsWith(beginning)))
  )
}

/** The beginning of a tax id when this word is, or begins with, its country's code: `PT509442013`, `PT 509 442 013`. */
function unprefixedTaxId(word: string, following: readonly string[]): string | null {
  const country = word.slice(0, 2)
  if (!countryCode.test(country)) return null
  const end = following.findIndex(next => !/^\d+$/.test(next))
  const rest = word.length > 2 ? word.slice(2) : following.slice(0, end === -1 ? undefined : end).join('')
  return taxIdLike.test(rest) ? rest : null
}
