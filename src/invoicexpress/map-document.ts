/** Maps InvoiceXpress' documents and clients to ours. Pure. */
import { isCalendarDay } from '../calendar.ts'
import { type Document, type DocumentType, documentTypes } from '../document.ts'
import { isIxStatus } from '../invoice.ts'
import type { DocumentClient } from '../sources.ts'
import {
  isAnything,
  isFilled,
  isLooseText,
  isOneOf,
  isOrNull,
  isStorable,
  isTextOrNull,
  isWhole,
  shape,
} from '../upstream/shape.ts'
import { readAs, unfit } from './read-answer.ts'

const isId = isWhole(1, /^[1-9][0-9]{0,14}$/)
const isAmount = (value: unknown): value is number | string => value !== null && isLooseText(value)

const anyDocument = shape({ type: isFilled })
const certifyingDocument = shape(
  { id: isId, type: isOneOf(documentTypes), status: isFilled, total: isAmount },
  {
    sequence_number: isLooseText,
    reference: isLooseText,
    proprietary_uid: isLooseText,
    date: isTextOrNull,
    currency: isLooseText,
    client: isAnything,
  },
)
const anyId = shape({ id: isId })
const client = shape({ id: isId }, { fiscal_id: isLooseText })

/** Null for a document of a type that certifies no invoice, whatever else it holds. */
export function mapDocument(payload: unknown): Document | null {
  const { type } = readAs(anyDocument, payload, 'a document')
  if (!documentTypes.includes(type as DocumentType)) return null
  const document = readAs(certifyingDocument, payload, 'a document')
  const { status } = document
  const [number, reference, uid, currency] = [
    document.sequence_number,
    document.reference,
    document.proprietary_uid,
    document.currency,
  ].map(readText)
  if (![status, number, reference, uid, currency].every(isOrNull(isStorable)) || !isIxStatus(status))
    throw unfit('a document')
  return {
    id: Number(document.id),
    type: document.type,
    status,
    // Unchanged: it is compared with an invoice's id.
    reference: reference ?? null,
    ...(uid && { uid }),
    number: number === 'draft' ? null : (number ?? null),
    date: document.date ? mapDate(document.date) : null,
    total: mapTotal(document.total),
    currency: currency ?? null,
    // A document without a readable client still counts.
    client_id: readId(document.client),
  }
}

export function mapClient(payload: unknown): DocumentClient {
  const { id, fiscal_id } = readAs(client, payload, 'a client')
  const taxId = readText(fiscal_id)
  if (!isOrNull(isStorable)(taxId)) throw unfit('a client')
  return { id: Number(id), tax_id: taxId }
}

/** The id of a record, whatever else is wrong with it; null when it has none. */
export function readId(payload: unknown): number | null {
  return anyId.misfit(payload) === null ? Number((payload as { id: number | string }).id) : null
}

function readText(value: string | number | null | undefined): string | null {
  return value === undefined || value === null || value === '' ? null : String(value)
}

/** From dd/mm/yyyy to YYYY-MM-DD. */
function mapDate(date: string): string {
  const [, day, month, year] = /^(\d\d)\/(\d\d)\/([1-9]\d{3})$/.exec(date) ?? []
  const iso = `${year}-${month}-${day}`
  if (!isCalendarDay(iso)) throw unfit('a date')
  return iso
}

/** From YYYY-MM-DD to dd/mm/yyyy. */
export function writeDate(day: string): string {
  return day.split('-').reverse().join('/')
}

/** As decimal text; a number in exponent form, or beyond exact integers, is no amount. */
function mapTotal(total: number | string): string {
  const text = String(total)
  if (!/^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) throw unfit('a total')
  if (typeof total === 'number' && Math.abs(total) > Number.MAX_SAFE_INTEGER) throw unfit('a total')
  return text
}
