/** The list of documents, with filters, pages and a delay. */
import { SandboxError } from '../spoil.ts'
import type { DocumentAccount } from './account.ts'
import { type IxDocument, ixTypes, parseDay, statusFilters } from './objects.ts'

const defaultSize = 10
const largestSize = 50

export interface IxPage {
  invoices: IxDocument[]
  pagination: { total_entries: number; per_page: number; current_page: number; total_pages: number }
}

/** Unknown parameters are ignored, as at InvoiceXpress. */
export function listDocuments(documents: DocumentAccount, search: URLSearchParams, lagMs: number): IxPage {
  const matches = readFilters(search)
  const found = visible(documents, lagMs).filter(matches)
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

/** Returns the documents that a list shows, highest id first. Changes younger than `lagMs` are not shown. */
function visible({ documents, changes }: DocumentAccount, lagMs: number): IxDocument[] {
  const since = performance.now() - lagMs
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
  // At InvoiceXpress, the filter `sent` includes final documents.
  if (statuses.has('sent')) statuses.add('final')
  const from = readDay(search, 'date[from]') ?? ''
  const to = readDay(search, 'date[to]') ?? '9999-12-31'
  const isArchived = search.get('archived') === 'true'
  const reference = search.get('reference') ?? ''
  const text = (search.get('text') ?? '').toLowerCase()
  const isWithin = (day: string) => day >= from && day <= to
  return document =>
    (types.size === 0 || types.has(document.type)) &&
    (statuses.size === 0 || statuses.has(document.status)) &&
    // Archived documents appear only in the list of archived documents.
    document.archived === isArchived &&
    // As at InvoiceXpress, the reference filter finds substrings and ignores case.
    (reference === '' || (document.reference ?? '').toLowerCase().includes(reference.toLowerCase())) &&
    (text === '' || textOf(document).includes(text)) &&
    isWithin(parseDay(document.date) ?? '')
}

function textOf({ client, observations, sequence_number }: IxDocument): string {
  return [client.name, observations, sequence_number].join('\n').toLowerCase()
}

function readWords(search: URLSearchParams, name: string, known: readonly string[]): Set<string> {
  const words = new Set(search.getAll(name))
  for (const word of words)
    if (!known.includes(word)) throw new SandboxError(422, `${name} is not one of ${known.join(', ')}.`)
  return words
}

function readDay(search: URLSearchParams, name: string): string | null {
  const text = search.get(name)
  if (text === null || text === '') return null
  const day = parseDay(text)
  if (day === null) throw new SandboxError(422, `${name} is not a day as dd/mm/yyyy.`)
  return day
}

/** Returns `fallback` when the value is not a positive whole number. */
function readWhole(search: URLSearchParams, name: string, fallback: number): number {
  const value = Number(search.get(name) ?? fallback)
  return Number.isSafeInteger(value) && value >= 1 ? value : fallback
}
