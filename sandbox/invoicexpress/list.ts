/** The list of documents: its filters, its pages, and how it lags behind. */
import type { DocumentAccount } from './account.ts'
import { IxError } from './errors.ts'
import { type IxDocument, ixTypes, parseDay, statusFilters } from './objects.ts'

const defaultSize = 10
const largestSize = 50

export interface IxPage {
  invoices: IxDocument[]
  pagination: { total_entries: number; per_page: number; current_page: number; total_pages: number }
}

/** `lag` is how long, in milliseconds, a change takes to be seen here. Parameters that are not known are ignored. */
export function listDocuments(documents: DocumentAccount, search: URLSearchParams, lag: number): IxPage {
  const matches = readFilters(search)
  const found = visible(documents, lag).filter(matches)
  const per_page = Math.min(readWhole(search, 'per_page', defaultSize), largestSize)
  const current_page = readWhole(search, 'page', 1)
  const start = (current_page - 1) * per_page
  return {
    invoices: found.slice(start, start + per_page),
    pagination: {
      total_entries: found.length,
      per_page,
      current_page,
      total_pages: Math.max(1, Math.ceil(found.length / per_page)),
    },
  }
}

/** The documents as lists have them, the highest id first. */
function visible({ documents, changes }: DocumentAccount, lag: number): IxDocument[] {
  const since = performance.now() - lag
  const former = new Map<number, IxDocument | null>()
  for (let index = changes.length - 1; index >= 0; index--) {
    const change = changes[index]
    if (change === undefined || change.at <= since) break
    former.set(change.id, change.before)
  }
  if (former.size === 0) return [...documents.values()].reverse()
  const seen = new Map<number, IxDocument | null>([...documents, ...former])
  return [...seen.values()].filter(document => document !== null).sort((a, b) => b.id - a.id)
}

function readFilters(search: URLSearchParams): (document: IxDocument) => boolean {
  const types = readWords(search, 'type[]', Object.keys(ixTypes))
  const statuses = readWords(search, 'status[]', statusFilters)
  // The lists' word for what a document calls final.
  if (statuses.has('sent')) statuses.add('final')
  const from = readDay(search, 'date[from]') ?? 0
  const to = readDay(search, 'date[to]') ?? Number.POSITIVE_INFINITY
  const isArchived = search.get('archived') === 'true'
  const reference = search.get('reference') ?? ''
  const text = (search.get('text') ?? '').toLowerCase()
  const isWithin = (day: number) => day >= from && day <= to
  return document =>
    (types.size === 0 || types.has(document.type)) &&
    (statuses.size === 0 || statuses.has(document.status)) &&
    // What was put away is in no list but its own.
    document.archived === isArchived &&
    // Found anywhere inside, whatever the case: who wants the very same must compare.
    (reference === '' || (document.reference ?? '').toLowerCase().includes(reference.toLowerCase())) &&
    (text === '' || textOf(document).includes(text)) &&
    isWithin(parseDay(document.date) ?? 0)
}

function textOf({ client, observations, sequence_number }: IxDocument): string {
  return [client.name, observations, sequence_number].join('\n').toLowerCase()
}

function readWords(search: URLSearchParams, name: string, known: readonly string[]): Set<string> {
  const words = new Set(search.getAll(name))
  for (const word of words)
    if (!known.includes(word)) throw new IxError(422, `${name} is not one of ${known.join(', ')}.`)
  return words
}

function readDay(search: URLSearchParams, name: string): number | null {
  const text = search.get(name)
  if (text === null || text === '') return null
  const day = parseDay(text)
  if (day === null) throw new IxError(422, `${name} is not a day as dd/mm/yyyy.`)
  return day
}

/** What is no number from 1 on counts as not given. */
function readWhole(search: URLSearchParams, name: string, fallback: number): number {
  const value = Number(search.get(name) ?? fallback)
  return Number.isSafeInteger(value) && value >= 1 ? value : fallback
}
