/** A stored record against the record that its source has now: pure. */
import type { Document } from '../document.ts'
import { type Invoice, invoiceFields, type Line, lineFields } from '../invoice.ts'

/** As in `total_cents: 1230 → 1240`. */
export interface FieldDifference {
  field: string
  stored: string
  now: string
}

/** Never shown: people are asked to publish findings in reports of bugs. */
const personal = new Set([
  ...['display_name', 'customer_name', 'customer_email', 'company_name', 'customer_tax_id', 'description'],
])

function compareFields<T extends object>(
  fields: readonly (keyof T & string)[],
  stored: T,
  now: T,
  path = '',
): FieldDifference[] {
  const show = (name: string, value: unknown) => {
    if (value === null || value === undefined) return 'null'
    return personal.has(name) ? `${String(value).length} characters (not shown)` : String(value)
  }
  return fields
    .filter(name => stored[name] !== now[name])
    .map(name => ({ field: path + name, stored: show(name, stored[name]), now: show(name, now[name]) }))
}

const ixFields = ['ix_sync_state', 'ix_id', 'ix_status', 'ix_created_at'] as const
type IxFields = Pick<Invoice, (typeof ixFields)[number]>
const ownFields = invoiceFields.filter(name => !(ixFields as readonly string[]).includes(name))
const documentFields = ['status', 'total', 'reference'] as const

export function compareInvoice(stored: Invoice, now: Invoice): FieldDifference[] {
  return compareFields<Invoice>(ownFields, stored, now)
}

export function compareLink(stored: IxFields, now: IxFields): FieldDifference[] {
  return compareFields<IxFields>(ixFields, stored, now)
}

/** Lines that are not known are no difference. */
export function compareLines(stored: readonly Line[] | null, now: readonly Line[] | null): FieldDifference[] {
  if (stored === null || now === null) return []
  if (stored.length !== now.length)
    return [{ field: 'lines', stored: String(stored.length), now: String(now.length) }]
  return stored.flatMap((line, i) => compareFields<Line>(lineFields, line, now[i] as Line, `lines[${i}].`))
}

/** Null stands for a document that is not known, or not there. */
export function compareDocument(
  id: number,
  stored: Document | null,
  now: Document | null,
): FieldDifference[] {
  if (stored === null && now === null) return []
  const field = `document ${id}`
  if (stored === null || now === null)
    return [{ field, stored: stored?.status ?? 'not known', now: now?.status ?? 'not found' }]
  return compareFields<Document>(documentFields, stored, now, `${field} `)
}
