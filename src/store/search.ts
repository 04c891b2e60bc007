/**
 * Free-text search: an invoice's text is folded once, when it is saved; a query is folded the same way, and each of
 * its words must then occur as a plain substring. Folding removes case, accents and separators, so `JOAO` finds
 * `João` and `2025 05128`, `2025/05128` and `202505128` all find `2025-05128`.
 */
import type { Invoice } from '../invoice.ts'

/** One word of a query: any of the alternatives may occur. */
export type SearchWord = readonly string[]

// No folded field holds these, so a word never matches across two fields, nor a mark by accident.
const fieldEnd = '\n'
const taxIdStart = '\t'

const gap = /[\s\p{Cc}]+/u
// The wildcards of SQL and of shells (% _ * ? \) are deliberately not separators: they are text like any other.
const separators = /[\s\p{Cc}\p{Pd}−./,:;'’"()#·]+/gu
const marks = /[\p{M}\p{Cf}]+/gu
const plainAscii = /^[\x20-\x7e]*$/

export function foldText(text: string): string {
  if (plainAscii.test(text)) return text.toLowerCase().replace(separators, '')
  // Through upper case first, so that ß meets ss; sigma has two lower cases and must end as one.
  const cased = text.normalize('NFKD').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return cased.normalize('NFKD').replace(marks, '').replace(separators, '')
}

/** The text an invoice is found by. The tax id comes last, behind a mark of its own. */
export function searchText(invoice: Invoice): string {
  const fields = new Set(
    [
      invoice.id,
      invoice.number,
      invoice.display_name,
      invoice.customer_name,
      invoice.customer_email,
      invoice.company_name,
      invoice.ix_id,
    ].map(value => (value === null ? '' : foldText(String(value)))),
  )
  fields.delete('')
  const taxId = invoice.customer_tax_id === null ? '' : taxIdStart + foldText(invoice.customer_tax_id)
  return [...fields, taxId].join(fieldEnd)
}

/** As long as a tax id, and with a digit; a country prefix before it is not part of what may be stored. */
const taxIdLike = /^(?=.*\d)[a-z0-9+*]{8,}$/
const countryCode = /^[a-z]{2}$/

/**
 * The words of a query that holds more than white space. Words of separators alone say nothing and are left out;
 * a query of nothing else becomes a word that no text holds, and so matches nothing.
 */
export function searchWords(query: string): SearchWord[] {
  const words = query.split(gap).map(foldText).filter(Boolean)
  if (words.length === 0) return [[fieldEnd + fieldEnd]]
  return words.map((word, index) => {
    const taxId = unprefixedTaxId(word, words.slice(index + 1))
    return taxId === null ? [word] : [word, taxIdStart + taxId]
  })
}

/** What a tax id begins with when this word is, or begins with, its country's code: `PT509442013`, `PT 509 442 013`. */
function unprefixedTaxId(word: string, following: readonly string[]): string | null {
  const country = word.slice(0, 2)
  if (!countryCode.test(country)) return null
  const end = following.findIndex(next => !/^\d+$/.test(next))
  const rest = word.length > 2 ? word.slice(2) : following.slice(0, end === -1 ? undefined : end).join('')
  return taxIdLike.test(rest) ? rest : null
}
