/** What is stored of an invoice against what the two systems say now: pure. */
import type { Document } from '../document.ts'
import { type Invoice, invoiceFields, type Line, lineFields } from '../invoice.ts'

/** As in `total_cents: 1230 → 1240`. */
export interface Difference {
  field: string
  stored: string
  now: string
}

/** What people are asked to report must not tell of a customer. */
const personal = new Set([
  'display_name',
  'customer_name',
  'customer_email',
  'company_name',
  'customer_tax_id',
  'description',
])

function compareFields<T extends object>(
  fields: readonly (keyof T & string)[],
  stored: T,
  now: T,
  path = '',
): Difference[] {
  return fields
    .filter(name => stored[name] !== now[name])
    .map(name => ({
      field: path + name,
      stored: show(stored[name], personal.has(name)),
      now: show(now[name], personal.has(name)),
    }))
}

function show(value: unknown, isPersonal: boolean): string {
  if (value === null || value === undefined) return 'null'
  return isPersonal ? `${String(value).length} characters (not shown)` : String(value)
}

const ixFields = ['ix_sync_state', 'ix_id', 'ix_status', 'ix_created_at'] as const
const ownFields = invoiceFields.filter(name => !(ixFields as readonly string[]).includes(name))
const documentFields = ['status', 'total', 'reference'] as const

/** All but what belongs to the document. */
export function compareInvoice(stored: Invoice, now: Invoice): Difference[] {
  return compareFields<Invoice>(ownFields, stored, now)
}

export function compareLink(stored: Invoice, now: Pick<Invoice, (typeof ixFields)[number]>): Difference[] {
  return compareFields<Pick<Invoice, (typeof ixFields)[number]>>(ixFields, stored, now)
}

/** Lines that are not known are no difference. */
export function compareLines(stored: readonly Line[] | null, now: readonly Line[] | null): Difference[] {
  if (stored === null || now === null) return []
  if (stored.length !== now.length)
    return [{ field: 'lines', stored: String(stored.length), now: String(now.length) }]
  return stored.flatMap((line, i) => compareFields<Line>(lineFields, line, now[i] as Line, `lines[${i}].`))
}

/** Null stands for a document that is not known, or not there. */
export function compareDocument(id: number, stored: Document | null, now: Document | null): Difference[] {
  if (stored === null && now === null) return []
  const field = `document ${id}`
  if (stored === null || now === null)
    return [{ field, stored: stored?.status ?? 'not known', now: now?.status ?? 'not found' }]
  return compareFields<Document>(documentFields, stored, now, `${field} `)
}
