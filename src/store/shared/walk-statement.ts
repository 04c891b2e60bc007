/** The statement that walks through invoices in the list's order, of one customer or of all, narrowed down as a list is. */
import type { Value } from '../contents.ts'
import { conditionsOf, type EngineName } from '../read-model/filters.ts'
import type { InvoiceWalk } from '../store.ts'

export function walkStatement(walk: InvoiceWalk, customerId: string | null, engine: EngineName) {
  const values: Value[] = []
  const bind = (value: Value): string => `$${values.push(value)}`
  const conditions = conditionsOf(walk, { engine, row: 'i.', bind })
  if (customerId !== null) conditions.unshift(`i.customer_id = ${bind(customerId)}`)
  const sql = `
    SELECT i.summary, i.document, ${walk.withLines ? 'l.lines' : 'NULL AS lines'} FROM fatura.invoices i ${engine === 'sqlite' ? 'INDEXED BY invoices_in_order' : ''}
    ${walk.withLines ? 'LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id' : ''}
    ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
    ORDER BY i.customer_id, i.issued_at DESC, i.id DESC`
  return { sql, values }
}

/** Each once, in the order of all; null stands for all in one statement. */
export function customersInOrder(customers: readonly string[] | null): (string | null)[] {
  return customers === null ? [null] : [...new Set(customers)].sort()
}
