/**
 * Free-text search: an invoice's text is folded once, when it is saved; a query is folded the same way, and each of
 * its words must then occur as a plain substring. Folding removes case, accents and separators, so `JOAO` finds
 * `João` and `2025 05128`, `2025/05128` and `202505128` all find `2025-05128`.
 */
import { hash } from 'node:crypto'
import type { Invoice } from '../../invoice.ts'

/** How many words a query may have, when those that others imply are left out: each makes a search slower. */
export const maxSearchWords = 10

/** One word of a query; and what it may be instead, at the beginning of a tax id alone. Either may occur. */
export type SearchWord = readonly [text: string, taxId: string | null]

// No folded field holds these, so a word never matches across two fields, nor a mark by accident.
const fieldEnd = '\n'
const taxIdStart = '\t'
/** Stands between texts that are kept together: folding leaves no control characters. */
export const textEnd = '\r'

const gap = /[\s\p{Cc}]+/u
// The wildcards of SQL and of shells (% _ * ? \) are deliberately not separators: they are text like any other.
const separators = /[\s\p{Cc}\p{Pd}−./,:;'’"()#·]+/gu
const marks = /[\p{M}\p{Cf}]+/gu
const plainAscii = /^[\x20-\x7e]*$/
/** Those of the separators that are plain ASCII. */
const asciiSeparators = /[ \-./,:;'"()#]+/g

export function foldText(text: string): string {
  if (plainAscii.test(text)) return text.toLowerCase().replace(asciiSeparators, '')
  // Through upper case first, so that ß meets ss; sigma has two lower cases and must end as one.
  const cased = text.normalize('NFKD').toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return cased.normalize('NFKD').replace(marks, '').replace(separators, '')
}

/** The text an invoice is found by, in two parts. No word matches across two fields, so none matches across the parts. */
export interface SearchText {
  /** What is the invoice's own: its ids and its number. */
  own: string
  /** Whom it is made out to: the same for most invoices of a customer, and kept once. The tax id comes last. */
  party: string
  /** What the party is known by among the customer's. */
  party_id: number
}

/** In bytes of UTF-8. */
const longestOwn = 500

/** Every id begins so: what is found in it is found in every invoice. */
const idPrefix = 'in_'

export function searchText(invoice: Invoice): SearchText {
  const { id, number, display_name, customer_name, customer_email, company_name, ix_id } = invoice
  const fields = [idPrefix, display_name, customer_name, customer_email, company_name]
  let own = joinFields([id, number, ix_id])
  // What is too long for an index lies with a party of its own.
  if (own.length * 3 > longestOwn && Buffer.byteLength(own) > longestOwn) {
    fields.push(id, number)
    own = joinFields([ix_id])
  }
  return { own, ...partyOf(fields, invoice.customer_tax_id) }
}

type Party = Pick<SearchText, 'party' | 'party_id'>

/** Those met last, by their fields: a customer's invoices are mostly made out to the same few. */
const parties = new Map<string, Party>()
const partiesHeld = 2_000

function partyOf(fields: readonly (string | null)[], taxId: string | null): Party {
  const key = JSON.stringify([fields, taxId])
  const known = parties.get(key)
  if (known !== undefined) return known
  const party = `${joinFields(fields)}${fieldEnd}${taxId === null ? '' : taxIdStart + foldText(taxId)}`
  const made = { party, party_id: partyIdOf(party) }
  if (parties.size >= partiesHeld) parties.clear()
  parties.set(key, made)
  return made
}

function joinFields(values: readonly (string | number | null)[]): string {
  const fields = new Set(values.map(value => (value === null ? '' : foldText(String(value)))))
  fields.delete('')
  return [...fields].join(fieldEnd)
}

/** What a party is known by: its text in 48 bits, so that it is an exact number everywhere. */
export function partyIdOf(text: string): number {
  return hash('sha1', text, 'buffer').readUIntBE(0, 6)
}

/**
 * What an invoice of a party must hold in its own text to be found: the words that the party's text does not hold. Only
 * the party's text has a tax id, so an alternative is looked for there alone.
 */
export function wordsLeft(words: readonly SearchWord[], party: string): string[] {
  const left = words.filter(([text, taxId]) => !party.includes(text) && !(taxId && party.includes(taxId)))
  return left.map(([text]) => text)
}

/** As long as a tax id, and with a digit; a country prefix before it is not part of what may be stored. */
const taxIdLike = /^(?=.*\d)[a-z0-9+*]{8,}$/
const countryCode = /^[a-z]{2}$/

/**
 * The words of a query that holds more than white space. Words of separators alone say nothing and are left out;
 * a query of nothing else becomes a word that no text holds, and so matches nothing. A word that is found wherever another one is
 * is left out as well.
 */
export function searchWords(query: string): SearchWord[] {
  const words = query.split(gap).map(foldText).filter(Boolean)
  if (words.length === 0) return [[taxIdStart + taxIdStart, null]]
  const sought = words.map((word, index): SearchWord => {
    const taxId = unprefixedTaxId(word, words.slice(index + 1))
    return [word, taxId === null ? null : taxIdStart + taxId]
  })
  return dropImplied(sought)
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

/** Whether a text that holds one word holds another as well, whichever form of it that is. */
function implies(one: SearchWord, other: SearchWord): boolean {
  return formsOf(one).every(held => formsOf(other).some(text => held.includes(text)))
}

/** What a text may hold for a word to be found: one form, or two. */
export function formsOf([text, taxId]: SearchWord): string[] {
  return taxId === null ? [text] : [text, taxId]
}

/** What a tax id begins with when this word is, or begins with, its country's code: `PT509442013`, `PT 509 442 013`. */
function unprefixedTaxId(word: string, following: readonly string[]): string | null {
  const country = word.slice(0, 2)
  if (!countryCode.test(country)) return null
  const end = following.findIndex(next => !/^\d+$/.test(next))
  const rest = word.length > 2 ? word.slice(2) : following.slice(0, end === -1 ? undefined : end).join('')
  return taxIdLike.test(rest) ? rest : null
}
