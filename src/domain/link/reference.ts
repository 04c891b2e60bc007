/**
 * Finds the names in a document's reference by the templates of the convention. A name is an invoice ID, a payment or an invoice number.
 * Pure functions.
 */
import type { Document } from '../document.ts'
import { type Invoice, isInvoiceId } from '../invoice.ts'

/** Kinds of names that a template may hold, written in braces. */
const nameKinds = ['id', 'payment', 'number'] as const
type NameKind = (typeof nameKinds)[number]

/** Format of a company's references: one name with fixed text around it, such as `Order #{payment}`. */
export interface Template {
  /** The template as it was configured. */
  text: string
  kind: NameKind
  before: string
  after: string
}

export interface Name {
  kind: NameKind
  value: string
}

export interface Naming extends Name {
  /**
   * The template that matched. Null for a plain invoice ID that no template allows. Such an ID ties the document to no invoice. All other
   * names in the document are ignored even so.
   */
  template: string | null
  field: 'reference' | 'proprietary_uid'
}

/** An invoice and its payments. A document can name the invoice by any of these. */
export interface Named {
  invoice: Pick<Invoice, 'id' | 'number'>
  payments: readonly string[]
}

/** Reads a template. Returns null unless the text has exactly one known name in braces, and no other braces or control characters. */
export function readTemplate(text: string): Template | null {
  const [, before = '', kind, after = ''] = /^([^{}]*)\{(\w+)\}([^{}]*)$/.exec(text) ?? []
  const known = nameKinds.find(each => each === kind)
  return known === undefined || /\p{Cc}/u.test(text) ? null : { text, kind: known, before, after }
}

const plainId: Template = { text: '{id}', kind: 'id', before: '', after: '' }
export const defaultTemplates: readonly Template[] = [
  plainId,
  { text: '{payment}', kind: 'payment', before: '', after: '' },
]

/** Format of PaymentIntent IDs. */
const paymentId = /^pi_\w{1,252}$/

const isName: Record<NameKind, (value: string) => boolean> = {
  id: isInvoiceId,
  payment: value => paymentId.test(value),
  number: value => value !== '',
}

/**
 * Returns the names in a document. An invoice ID outweighs all other names. An ID in the reference outweighs an ID in the
 * `proprietary_uid`.
 */
export function namesIn(
  { reference, uid }: Pick<Document, 'reference' | 'uid'>,
  templates: readonly Template[],
): readonly Naming[] {
  const inReference = read(reference, 'reference', templates)
  const inUid = read(uid ?? null, 'proprietary_uid', withPlainId(templates))
  const isId = ({ kind }: Naming) => kind === 'id'
  if (inReference.some(isId)) return inReference.filter(isId)
  if (reference !== null && isInvoiceId(reference))
    return [{ kind: 'id', value: reference, template: null, field: 'reference' }]
  return inUid.some(isId) ? inUid.filter(isId) : [...inReference, ...inUid]
}

function read(text: string | null, field: Naming['field'], templates: readonly Template[]): Naming[] {
  if (text === null) return []
  return templates.flatMap(template => {
    const { kind, text: written } = template
    const value = valueIn(text, template)
    return value !== null && isName[kind](value) ? { kind, value, template: written, field } : []
  })
}

/** Returns the text between the fixed parts of the template, unchecked. Null when the fixed parts do not match. */
function valueIn(text: string, { before, after }: Template): string | null {
  const isLongEnough = text.length >= before.length + after.length
  if (!isLongEnough || !text.startsWith(before) || !text.endsWith(after)) return null
  return text.slice(before.length, text.length - after.length)
}

/** A `proprietary_uid` may always be a plain invoice ID, whatever templates are configured. */
function withPlainId(templates: readonly Template[]): readonly Template[] {
  return templates.some(({ text }) => text === plainId.text) ? templates : [...templates, plainId]
}

export function namesOf({ invoice, payments }: Named): Name[] {
  return [
    { kind: 'id', value: invoice.id },
    ...payments.map(value => ({ kind: 'payment' as const, value })),
    ...(invoice.number === null ? [] : [{ kind: 'number' as const, value: invoice.number }]),
  ]
}

/** Returns every text with which a document's reference or `proprietary_uid` can name the invoice. */
export function referencesTo(names: readonly Name[], templates: readonly Template[]): string[] {
  return withPlainId(templates).flatMap(template => referencesBy(template, names))
}

export function referencesBy({ kind, before, after }: Template, names: readonly Name[]): string[] {
  return names
    .filter(name => name.kind === kind && isName[kind](name.value))
    .map(({ value }) => before + value + after)
}

/** Returns the values of all names of one kind, without duplicates. */
export function valuesOf(kind: NameKind, names: readonly Name[]): string[] {
  return [...new Set(names.filter(name => name.kind === kind).map(({ value }) => value))]
}

export function nameKey({ kind, value }: Name): string {
  return `${kind} ${value}`
}

export function describeName({ kind, value }: Name): string {
  return kind === 'id' ? value : `${kind} ${value}`
}
