/** Explains documents in force that belong to no invoice, by the names in these documents. Pure. */
import type { Document } from '../../domain/document.ts'
import type { Claimed, KnownDocument } from '../../domain/link/known.ts'
import { type LinkRules, listWords, resolveNames } from '../../domain/link/link.ts'
import { describeName, type Naming } from '../../domain/link/reference.ts'
import { type Difference, sidesOf } from './reconcile.ts'

export interface Unlinked {
  kind: 'document_of_unknown_invoice' | 'document_of_several_invoices' | 'document_without_invoice'
  /** ID of an invoice that is not stored. Null when the document contains no ID. */
  invoice_id: string | null
  target: string
}

/**
 * Returns null when the document names exactly one stored invoice. `claimants` are invoices with a payment or number that the document
 * names. `isStored` holds the ids of stored invoices.
 */
export function judgeUnlinked(
  known: KnownDocument,
  claimants: readonly Claimed[],
  isStored: ReadonlySet<string>,
  rules: LinkRules,
): Unlinked | null {
  const { document } = known
  if (document === null) return null
  const { names, ids } = resolveNames(known, claimants, rules)
  const [name] = names
  if (name === undefined || (ids.size === 0 && !isClear(name))) {
    const target = document.reference === null ? 'nothing' : `'${document.reference}'`
    return { kind: 'document_without_invoice', invoice_id: null, target }
  }
  const all = [...ids].sort()
  if (name.kind === 'id') {
    const [id = ''] = all
    if (all.some(each => isStored.has(each))) return null
    const target = `${id}, which is not in the store`
    return { kind: 'document_of_unknown_invoice', invoice_id: id, target }
  }
  if (all.length === 1) return null
  const target =
    all.length > 1
      ? `${describeName(name)}, which ${listWords(all)} have`
      : `${describeName(name)}, which no invoice in the store has${name.kind === 'number' ? ' whose customer has the tax ID of its client' : ''}`
  const kind = all.length > 1 ? 'document_of_several_invoices' : 'document_of_unknown_invoice'
  return { kind, invoice_id: null, target }
}

/** A template such as `{number}` matches any text. A text without a digit, or with spaces, does not name an invoice. */
function isClear({ kind, value }: Naming): boolean {
  return kind !== 'number' || /^(?=\S*\d)\S+$/.test(value)
}

export function describeUnlinked(document: Document, { kind, invoice_id, target }: Unlinked): Difference {
  const { id, date, status } = document
  const detail = `document ${id} of ${date ?? 'an unknown day'} is ${status}, and refers to ${target}`
  return { kind, ...sidesOf(null, document), invoice_id, detail }
}
