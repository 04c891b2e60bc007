import { countPages } from '../../invoice.ts'
import { conditionsOf } from '../read-model/filters.ts'
import type { InvoiceQuery } from '../store.ts'

export type Value = string | number

export function clampPage({ page, page_size }: InvoiceQuery, total: number): { page: number; skip: number } {
  const clamped = Math.max(1, Math.min(page, countPages(total, page_size)))
  return { page: clamped, skip: (clamped - 1) * page_size }
}

/** SQLite compiles a statement anew for every value of a parameter that stands alone behind LIMIT: a sum does not stand alone. */
export function cutOut(values: Value[], limit: number, skip: number): string {
  return `LIMIT ?${values.push(limit)} + 0 OFFSET ?${values.push(skip)}`
}

/** The rows that match, in the list's order, from the index alone. The SQL depends on which filters are given, never on their values. */
export function matchingRows(query: InvoiceQuery): { from: string; order: string; values: Value[] } {
  const values: Value[] = [query.customer_id]
  const bind = (value: Value): string => `?${values.push(value)}`
  const conditions = ['customer_id = ?1', ...conditionsOf(query, { engine: 'sqlite', row: '', bind })]
  return {
    from: `FROM invoices INDEXED BY invoices_in_order WHERE ${conditions.join(' AND ')}`,
    order: 'ORDER BY issued_at DESC, id DESC',
    values,
  }
}
