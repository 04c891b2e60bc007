/** What a document's reference names, by the templates of the convention: an invoice, a payment or a printed number. Pure. */
import type { Document } from '../document.ts'
import { type Invoice, isInvoiceId } from '../invoice.ts'

/** What may stand in a template, in braces. */
const nameKinds = ['id', 'payment', 'number'] as const
type NameKind = (typeof nameKinds)[number]

/** A reference as companies write it: one name with fixed text around it, as in `Order #{payment}`. */
export interface Template {
  /** As it was given. */
  text: string
  kind: NameKind
  before: string
  after: string
}

export interface Name {
  kind: NameKind
  value: string
}

/** A name that a document has. */
export interface Naming extends Name {
  /** Null for an invoice's plain ID that no template allows: it ties nothing, and keeps others from the document. */
  template: string | null
  field: 'reference' | 'proprietary_uid'
}

/** An invoice and its payments: all that a document can name it by. */
export interface Named {
  invoice: Pick<Invoice, 'id' | 'number'>
  /** IDs of its payments. */
  payments: readonly string[]
}

/** Null when it is no template: a text with one of the names in braces, once, and no other braces. */
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

/** As PaymentIntents are named. */
const paymentId = /^pi_\w{1,252}$/

const isName: Record<NameKind, (value: string) => boolean> = {
  id: isInvoiceId,
  payment: value => paymentId.test(value),
  number: value => value !== '',
}

/** The names that a document has. An invoice's ID outweighs all others, and one in the reference that of the `proprietary_uid`. */
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

/** What stands in the place of the name, without regard to what it is. */
function valueIn(text: string, { before, after }: Template): string | null {
  const isLongEnough = text.length >= before.length + after.length
  if (!isLongEnough || !text.startsWith(before) || !text.endsWith(after)) return null
  return text.slice(before.length, text.length - after.length)
}

/** A creator's own ID may always be an invoice's. */
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

/** Every text that has one of the names as a reference or as a `proprietary_uid`. */
export function referencesTo(names: readonly Name[], templates: readonly Template[]): string[] {
  return withPlainId(templates).flatMap(template => referencesBy(template, names))
}

/** The references by one template. */
export function referencesBy({ kind, before, after }: Template, names: readonly Name[]): string[] {
  return names
    .filter(name => name.kind === kind && isName[kind](name.value))
    .map(({ value }) => before + value + after)
}

/** Names of one kind, each once. */
export function valuesOf(kind: NameKind, names: readonly Name[]): string[] {
  return [...new Set(names.filter(name => name.kind === kind).map(({ value }) => value))]
}

/** One text for a name, other than that of any other name. */
export function nameKey({ kind, value }: Name): string {
  return `${kind} ${value}`
}

/** The name for people. */
export function describeName({ kind, value }: Name): string {
  return kind === 'id' ? value : `${kind} ${value}`
}
