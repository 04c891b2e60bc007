/** Maps InvoiceXpress' documents and clients to the types of `domain`. Pure. */
import { isCalendarDay } from '../../domain/calendar.ts'
import {
  type Document,
  type DocumentTax,
  type DocumentType,
  documentTypes,
  type Multibanco,
  type Multicurrency,
  optionalFields,
  type RelatedDocument,
} from '../../domain/document.ts'
import { currencyOf } from '../../domain/document-json.ts'
import { isIxStatus } from '../../domain/invoice.ts'
import { fromMillionths, toMillionths } from '../../domain/money.ts'
import {
  isAnything,
  isFilled,
  isListOf,
  isLooseText,
  isOneOf,
  isOrNull,
  isStorable,
  isTextOrNull,
  isWhole,
  shape,
} from '../calls/shape.ts'
import type { DocumentClient } from '../source.ts'
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
const items = isListOf(
  shape(
    { tax: isOrNull(shape({}, { value: isLooseText })) },
    { tax_amount: isLooseText, total: isLooseText },
  ),
)
const anyId = shape({ id: isId })
const client = shape({ id: isId }, { fiscal_id: isLooseText })

/**
 * Returns null for a document type that certifies no invoice. `isWhole`: the document
 * was fetched by its id, so a missing field is empty. A list may leave fields out.
 */
export function mapDocument(payload: unknown, isWhole = false): Document | null {
  const { type } = readAs(anyDocument, payload, 'a document')
  if (!documentTypes.includes(type as DocumentType)) return null
  const document = readAs(certifyingDocument, payload, 'a document')
  const { status } = document
  if (!isStorable(status) || !isIxStatus(status)) throw unfit('a document')
  const uid = readText(document.proprietary_uid, 'a document')
  return {
    id: Number(document.id),
    type: document.type,
    status,
    // The reference is not trimmed, because it is compared with an invoice's id.
    reference: readText(document.reference, 'a document'),
    ...(uid !== null && { uid }),
    number: mapNumber(readText(document.sequence_number, 'a document')),
    date: document.date ? mapDate(document.date) : null,
    total: mapTotal(document.total),
    currency: readText(document.currency, 'a document'),
    client_id: readId(document.client),
    ...(isWhole && { retention: null, multicurrency: null }),
    ...mapOptional(payload as Payload),
  }
}

type Optional = Pick<Document, (typeof optionalFields)[number]>
type Payload = Record<string, unknown>

/** Each optional field's name in InvoiceXpress' record, and its mapping. A mapping throws when the value fails the checks. */
const mappings: {
  [Name in keyof Required<Optional>]: [
    name: string,
    map: (value: unknown, payload: Payload) => Optional[Name],
  ]
} = {
  series_number: ['inverted_sequence_number', value => mapNumber(mapText(value))],
  atcud: ['atcud', value => mapText(value)],
  due_date: ['due_date', value => (mapText(value) === null ? null : mapDate(String(value)))],
  before_taxes: ['before_taxes', mapAmount],
  taxes_total: ['taxes', mapAmount],
  taxes: ['items', mapTaxes],
  retention: ['retention', mapRetention],
  multicurrency: ['multicurrency', mapMulticurrency],
  exemption_code: ['tax_exemption', value => mapText(value)],
  tax_id: ['client', value => mapOfClient(value, 'fiscal_id')],
  buyer_name: ['client', value => mapOfClient(value, 'name')],
  multibanco: ['mb_reference', mapMultibanco],
}

/** Leaves out optional fields that fail the checks, and names them in `left_out`. The document itself is kept. */
function mapOptional(
  payload: Payload,
  fields: readonly (keyof Optional)[] = optionalFields,
): Optional & Pick<Document, 'left_out'> {
  const found: Record<string, unknown> = invertNumber(payload.sequence_number)
  const leftOut: string[] = []
  for (const field of fields) {
    const [name, map] = mappings[field]
    const value = payload[name]
    if (value === undefined) continue
    try {
      const mapped = map(value, payload)
      if (mapped !== undefined) found[field] = mapped
    } catch {
      leftOut.push(name)
    }
  }
  return { ...found, ...(leftOut.length > 0 && { left_out: leftOut.join(', ') }) }
}

/** Converts 6/G to G/6. Some lists hold a number only in the first form. */
function invertNumber(number: unknown): { series_number?: string } {
  const [, digits, series] = /^(\d{1,15})\/([^/]{1,100})$/.exec(String(number)) ?? []
  return digits === undefined ? {} : { series_number: `${series}/${digits}` }
}

const longestText = 255

function mapText(value: unknown): string | null {
  if (!isLooseText(value)) throw unfit('a text')
  const text = readText(value, 'a text')?.trim() ?? ''
  if (text.length > longestText) throw unfit('a text')
  return text === '' ? null : text
}

/** Returns null for a draft, which has a word such as "draft" or "rascunho" in place of a number. */
function mapNumber(text: string | null): string | null {
  return text !== null && /\d/.test(text) && text.includes('/') ? text : null
}

function mapAmount(value: unknown): string | null {
  return mapText(value) === null ? null : mapTotal(value as number | string)
}

/** Returns null when no tax is withheld. InvoiceXpress then sends null, an empty text or 0. */
function mapRetention(value: unknown): string | null {
  const percent = mapAmount(value)
  return toMillionths(percent ?? '0') === 0n ? null : percent
}

const multicurrency = shape({}, { rate: isLooseText, currency: isLooseText, total: isLooseText })

/** Returns null unless the value names both a currency and a total. */
function mapMulticurrency(value: unknown): Multicurrency | null {
  if (value === null) return null
  if (!multicurrency(value)) throw unfit('a currency')
  const name = mapText(value.currency ?? null)
  const total = mapAmount(value.total ?? null)
  if (name === null || total === null) return null
  return { rate: mapAmount(value.rate ?? null), currency: currencyOf(name) ?? name, total }
}

/** Reads a field of the document's client. Undefined when it is absent: most documents name only the client's id and name. */
function mapOfClient(value: unknown, field: 'fiscal_id' | 'name'): string | null | undefined {
  const { [field]: found } = (value ?? {}) as Payload
  return found === undefined ? undefined : mapText(found)
}

const multibanco = shape({ entity: isLooseText, reference: isLooseText })

/** Reads the entity and reference of Multibanco from an object or from one text. Null for any other value. */
function mapMultibanco(value: unknown): Multibanco | null {
  const text = multibanco(value) ? `${value.entity} ${value.reference}` : String(value ?? '')
  const [, entity, reference] = /^(\d{5})(\d{9})$/.exec(text.replace(/[\s/]/g, '')) ?? []
  return entity === undefined || reference === undefined ? null : { entity, reference }
}

/**
 * Sums the items by tax rate. A missing rate is unknown, not 0. A discount on the whole document is in no item. If all items have one rate,
 * this rate gets the document's totals. With several rates, the result is null unless the items add up to the totals.
 */
function mapTaxes(value: unknown, { before_taxes, taxes }: Payload): readonly DocumentTax[] | null {
  if (!items(value)) throw unfit('items')
  const [wholeBase, wholeTax] = [readMillionths(before_taxes), readMillionths(taxes)]
  const byRate = Map.groupBy(value, ({ tax }) => mapRate(tax?.value ?? ''))
  const sums = [...byRate].map(([rate, of]) => {
    const tax = sum(of.map(({ tax_amount }) => readMillionths(tax_amount)))
    const total = sum(of.map(({ total }) => readMillionths(total)))
    return { rate, tax, base: tax === null || total === null ? null : total - tax }
  })
  // Allows a difference of one cent for each item, because each item is rounded separately.
  const isNear = (one: bigint | null, other: bigint | null) =>
    one !== null && other !== null && abs(one - other) <= 10_000n * BigInt(Math.max(1, value.length))
  const isWhole =
    isNear(sum(sums.map(({ base }) => base)), wholeBase) && isNear(sum(sums.map(({ tax }) => tax)), wholeTax)
  const [sole, ...others] = sums
  const isSole = sole !== undefined && others.length === 0 && wholeBase !== null && wholeTax !== null
  if (!isSole && !isWhole) return null
  const parts = isSole ? [{ ...sole, base: wholeBase, tax: wholeTax }] : sums
  return parts
    .sort((a, b) => Number((b.rate ?? -1n) - (a.rate ?? -1n)))
    .map(({ rate, base, tax }) => ({
      rate: rate === null ? null : fromMillionths(rate),
      base: fromMillionths(base ?? 0n),
      tax: fromMillionths(tax ?? 0n),
    }))
}

function mapRate(value: string | number): bigint | null {
  if (value === '') return null
  const rate = readMillionths(value)
  if (rate === null) throw unfit('a rate')
  return rate
}

const readMillionths = (value: unknown) => toMillionths(String(value))

function sum(amounts: readonly (bigint | null)[]): bigint | null {
  return amounts.reduce((all, each) => (all === null || each === null ? null : all + each), 0n)
}

function abs(amount: bigint): bigint {
  return amount < 0n ? -amount : amount
}

export function mapClient(payload: unknown): DocumentClient {
  const { id, fiscal_id } = readAs(client, payload, 'a client')
  return { id: Number(id), tax_id: readText(fiscal_id, 'a client') }
}

const relatedDocument = shape(
  { id: isId, type: isFilled, status: isFilled, total: isAmount },
  { date: isTextOrNull, currency: isLooseText },
)

const relatedFields = [
  'series_number',
  'before_taxes',
  'taxes_total',
  'taxes',
  'exemption_code',
  'retention',
  'multicurrency',
] as const satisfies readonly (keyof Optional)[]

export function mapRelated(payload: unknown): RelatedDocument {
  const related = readAs(relatedDocument, payload, 'a related document')
  const { left_out, ...fields } = mapOptional(payload as Payload, relatedFields)
  return {
    id: Number(related.id),
    type: mapText(related.type) ?? '',
    status: mapText(related.status) ?? related.status,
    date: related.date ? mapDate(related.date) : null,
    total: mapTotal(related.total),
    currency: mapText(related.currency ?? null),
    ...fields,
  }
}

/** Reads the id of a record that may fail all other checks. Null when the id is unreadable too. */
export function readId(payload: unknown): number | null {
  return anyId(payload) ? Number(payload.id) : null
}

/** Returns null for an empty text. Throws for a text that the store cannot hold. */
function readText(value: string | number | null | undefined, what: string): string | null {
  const text = String(value ?? '')
  if (!isStorable(text)) throw unfit(what)
  return text === '' ? null : text
}

/** Converts dd/mm/yyyy to YYYY-MM-DD. */
function mapDate(date: string): string {
  const [, day, month, year] = /^(\d\d)\/(\d\d)\/([1-9]\d{3})$/.exec(date) ?? []
  const iso = `${year}-${month}-${day}`
  if (!isCalendarDay(iso)) throw unfit('a date')
  return iso
}

export function writeDate(day: string): string {
  return day.split('-').reverse().join('/')
}

/** Returns an amount as decimal text. Throws for a number in exponent form or beyond `Number.MAX_SAFE_INTEGER`. */
function mapTotal(total: number | string): string {
  const text = String(total)
  if (!/^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) throw unfit('a total')
  if (typeof total === 'number' && Math.abs(total) > Number.MAX_SAFE_INTEGER) throw unfit('a total')
  return text
}
