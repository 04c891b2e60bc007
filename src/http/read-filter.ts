/** From what a list is asked for to a filter of the store: the one place that says what the parameters mean. */
import { dayMs } from '../calendar.ts'
import { ApiError } from '../errors.ts'
import type { InvoiceFilters } from '../invoice.ts'
import { maxSearchWords, type SearchWord, searchWords } from '../store/read-model/search.ts'
import type { WholeFilter } from '../store/store.ts'
import { listInvoicesSchema } from './openapi/schemas.ts'
import { compileParameters, parseQuery } from './parameters.ts'

export function readFilter(query: InvoiceFilters): WholeFilter {
  const { status, ix_status, date_from, date_to } = query
  const q = query.q?.trim()
  return {
    status,
    ix_status,
    issued_from: date_from === undefined ? undefined : Date.parse(date_from),
    issued_before: date_to === undefined ? undefined : Date.parse(date_to) + dayMs,
    words: q ? readWords(q) : undefined,
  }
}

/**
 * The same from texts that did not come over HTTP: they are read exactly as a query string is. Throws an `ApiError` that
 * names the parameter at fault.
 */
export function readFilterTexts(
  texts: Partial<Record<keyof InvoiceFilters, string | undefined>>,
): WholeFilter {
  const given = Object.entries(texts).flatMap(([name, text]) => (text === undefined ? [] : [[name, text]]))
  const read = compileParameters({
    schema: listInvoicesSchema.querystring,
    httpPart: 'querystring',
    method: 'GET',
    url: '',
  })
  const result = read(parseQuery(new URLSearchParams(given).toString()))
  const { value, error } = result as { value?: InvoiceFilters; error?: Error }
  if (error !== undefined) throw error
  return readFilter(value ?? {})
}

function readWords(q: string): SearchWord[] {
  const words = searchWords(q)
  if (words.length > maxSearchWords)
    throw new ApiError(
      'invalid_parameter',
      `q must have at most ${maxSearchWords} different words, and has ${words.length}; a word that is part of another does not count.`,
      { param: 'q' },
    )
  return words
}
