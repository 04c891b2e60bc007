/** An invoice as the columns of its tables. All values are texts and numbers that are computed without the database. */
import { storedEntries } from '../../domain/account.ts'
import { inFavourCents } from '../../domain/balance.ts'
import { documentColumns } from '../../domain/document-json.ts'
import { expansionColumns } from '../../domain/expansion.ts'
import type { InvoiceRecord } from '../../domain/invoice.ts'
import { serializeLines, serializeSummary } from '../../domain/invoice-json.ts'
import { completePaymentFacts, serializePaymentFacts, toPayCents } from '../../domain/payment.ts'
import { searchText } from './search.ts'

export type InvoiceRow = ReturnType<typeof toRow>

export function toRow({
  invoice,
  lines,
  document = null,
  payment = completePaymentFacts(invoice),
}: InvoiceRecord) {
  const { customer_id, id, status, ix_status, currency, total_cents } = invoice
  return {
    customer_id,
    id,
    issued_at: Date.parse(invoice.issued_at),
    status,
    ix_status,
    currency,
    total_cents,
    ...searchText(invoice, document),
    summary: serializeSummary(invoice),
    lines: lines === null ? null : serializeLines(lines),
    ...documentColumns(document, currency),
    payment: serializePaymentFacts(payment),
    due_date: payment.due_date,
    to_pay_cents: toPayCents(invoice, payment),
    in_favour_cents: inFavourCents(invoice, payment, document),
    ...expansionColumns(invoice, payment, document),
    /** JSON array of `StoredEntry` values. They become rows of the table `account_entries`. */
    entries: JSON.stringify(storedEntries(invoice, payment, document)),
  }
}

export type ComparedRow = Pick<InvoiceRow, 'summary' | 'search_text' | 'search_ids' | 'document' | 'payment'>

/** Tells whether a row differs from the stored row and must be written. Lines are compared separately. */
export function isOtherRow(row: InvoiceRow, stored: ComparedRow | null): boolean {
  return (
    stored === null ||
    stored.summary !== row.summary ||
    stored.search_text !== row.search_text ||
    stored.search_ids !== row.search_ids ||
    stored.document !== row.document ||
    stored.payment !== row.payment
  )
}
