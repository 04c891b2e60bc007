/** Maps the parameters of a list to a filter of the store. No other file defines their meaning. */
import { dayMs } from '../domain/calendar.ts'
import { ApiError } from '../domain/errors.ts'
import type { InvoiceFilters } from '../domain/list-query.ts'
import { maxSearchWords, type SearchWord, searchWords } from '../store/sql/search.ts'
import type { InvoiceFilter } from '../store/store.ts'
import { listInvoicesSchema } from './openapi/schemas.ts'
import { readTexts } from './parameters.ts'

type Reader<Value> = (value: NonNullable<Value>) => InvoiceFilter

/** Maps each parameter to its filter. A new parameter without an entry does not compile. */
const readers: { readonly [Name in keyof InvoiceFilters]-?: Reader<InvoiceFilters[Name]> } = {
  status: status => ({ status }),
  ix_status: ix_status => ({ ix_status }),
  date_from: day => ({ issued_from: Date.parse(day) }),
  date_to: day => ({ issued_before: Date.parse(day) + dayMs }),
  q: text => (text.trim() === '' ? {} : { words: readWords(text.trim()) }),
}
const names = Object.keys(readers) as (keyof InvoiceFilters)[]

export function readFilter(query: InvoiceFilters): InvoiceFilter {
  const filter: InvoiceFilter = {}
  for (const name of names) {
    const value = query[name]
    if (value !== undefined) Object.assign(filter, (readers[name] as Reader<typeof value>)(value))
  }
  return filter
}

/** Reads a filter from texts that did not come over HTTP. Throws an `ApiError` that names the invalid parameter. */
export function readFilterTexts(
  texts: Partial<Record<keyof InvoiceFilters, string | undefined>>,
): InvoiceFilter {
  return readFilter(readTexts(listInvoicesSchema.querystring, texts))
}

function readWords(q: string): SearchWord[] {
  const words = searchWords(q)
  if (words.length > maxSearchWords)
    throw new ApiError(
      'invalid_parameter',
      `q must have at most ${maxSearchWords} different words, and has ${words.length}; a word that begins another does not count.`,
      { param: 'q' },
    )
  return words
}
