/** Finds invoices by names: documents that they claim or are linked to, their IDs, their payments and their numbers. */
import { type Invoice, type InvoiceKey, keyOf } from '../../domain/invoice.ts'
import type { Claimed, InvoiceNames } from '../../domain/link/known.ts'
import type { PaymentFacts } from '../../domain/payment.ts'
import { type Db, queryAny } from './db.ts'

interface ClaimantRow extends InvoiceKey {
  summary: string
  payment: string
  claim: string
}

/** Returns each invoice once, even when it has several of the names. */
export async function findNamed(
  db: Db,
  { documents = [], invoices = [], payments = [], numbers = [] }: Partial<InvoiceNames>,
): Promise<InvoiceKey[]> {
  const keys = 'SELECT customer_id, invoice_id AS id FROM'
  const linked = await queryAny<InvoiceKey>(db, `${keys} fatura.links`, [
    ['claimed_id', documents],
    ['ix_id', documents],
    ['invoice_id', invoices],
    ['number', numbers],
  ])
  const paid = await queryAny<InvoiceKey>(db, `${keys} fatura.invoice_payments`, [['payment_id', payments]])
  return eachOnce([...linked, ...paid])
}

/** Returns the invoices with their claims and the IDs of their payments. Each invoice is returned once. */
export async function findClaimants(
  db: Db,
  { documents, payments, numbers }: Omit<InvoiceNames, 'invoices'>,
): Promise<Claimed[]> {
  const select = 'SELECT i.customer_id, i.id, i.summary, i.payment, l.claim FROM fatura.links l'
  const ofInvoice = 'JOIN fatura.invoices i ON i.customer_id = l.customer_id AND i.id = l.invoice_id'
  const ofPayment =
    'JOIN fatura.invoice_payments p ON p.customer_id = l.customer_id AND p.invoice_id = l.invoice_id'
  const found = await queryAny<ClaimantRow>(db, `${select} ${ofInvoice}`, [
    ['l.claimed_id', documents],
    ['l.number', numbers],
  ])
  const paid = await queryAny<ClaimantRow>(db, `${select} ${ofInvoice} ${ofPayment}`, [
    ['p.payment_id', payments],
  ])
  return eachOnce([...found, ...paid]).map(({ summary, claim, payment }) => ({
    invoice: JSON.parse(summary),
    claim: JSON.parse(claim),
    payments: (JSON.parse(payment) as PaymentFacts).payments.map(({ id }) => id),
  }))
}

function eachOnce<T extends InvoiceKey>(rows: readonly T[]): T[] {
  return [...new Map(rows.map(row => [keyOf(row), row])).values()]
}

interface TiedInvoice {
  invoice: Invoice
  payment: PaymentFacts
}

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
