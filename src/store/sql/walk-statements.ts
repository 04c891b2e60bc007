import type { Value } from '../contents.ts'
import type { InvoiceWalk } from '../store.ts'
import { conditionsOf, type EngineName } from './filters.ts'

/** The statements that walk through invoices in the list's order, narrowed down as a list is: one for all customers, or one for each. */
export function* walkStatements(walk: InvoiceWalk, engine: EngineName) {
  const customers = walk.customers === null ? [null] : [...new Set(walk.customers)].sort()
  for (const customerId of customers) {
    const values: Value[] = []
    const bind = (value: Value): string => `$${values.push(value)}`
    const conditions = conditionsOf(walk, { engine, row: 'i.', bind })
    if (customerId !== null) conditions.unshift(`i.customer_id = ${bind(customerId)}`)
    const sql = `
      SELECT i.summary, i.document, i.payment, ${walk.withLines ? 'l.lines' : 'NULL AS lines'} FROM fatura.invoices i ${engine === 'sqlite' ? 'INDEXED BY invoices_in_order' : ''}
      ${walk.withLines ? 'LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id' : ''}
      ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
      ORDER BY i.customer_id, i.issued_at DESC, i.id DESC`
    yield { sql, values }
  }
}

/** How many invoices of a walk are read together: fewer with lines, of which an invoice may have a thousand. */
export function batchSizeOf({ withLines }: InvoiceWalk): number {
  return withLines ? 50 : 500
}
