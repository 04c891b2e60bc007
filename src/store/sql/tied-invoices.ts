/** Invoices that are tied to documents. */
import type { Invoice } from '../../domain/invoice.ts'
import type { PaymentFacts } from '../../domain/payment.ts'
import type { Db } from './db.ts'

interface TiedInvoice {
  invoice: Invoice
  payment: PaymentFacts
}

/** The invoices that are tied to each of the documents. */
export async function findInvoicesOf(
  db: Db,
  documents: readonly number[],
): Promise<Map<number, TiedInvoice[]>> {
  const tied = await db.query<{ id: number; summary: string; payment: string }>(
    `SELECT l.ix_id AS id, i.summary, i.payment FROM fatura.links l
     JOIN fatura.invoices i ON i.customer_id = l.customer_id AND i.id = l.invoice_id
     WHERE ${db.isAmong('l.ix_id', '$1')} ORDER BY l.ix_id, i.customer_id, i.id`,
    [documents],
  )
  const found = new Map<number, TiedInvoice[]>()
  for (const { id, summary, payment } of tied) {
    const each = { invoice: JSON.parse(summary), payment: JSON.parse(payment) }
    found.set(id, [...(found.get(id) ?? []), each])
  }
  return found
}
