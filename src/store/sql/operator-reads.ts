/** Reads of commands that only look; the writer does them over its own connection. */
import { type InvoiceKey, unsettledStatuses } from '../../domain/invoice.ts'
import type { OperatorStore, StoredRecord, Stream } from '../store.ts'
import { changeReadsOf } from './changes.ts'
import { connectorReads } from './connector-state.ts'
import { contentsReads } from './contents.ts'
import { credentialReads } from './credentials.ts'
import { type Db, literals, queryColumn } from './db.ts'
import { documentReads } from './read-documents.ts'
import { webhookReads } from './webhooks.ts'

/** As the index `invoices_by_email` has it: null for an address with characters that JSON escapes. */
export const emailOf = {
  sqlite: "lower(json_extract(summary, '$.customer_email'))",
  postgres: `lower(substring(summary from '"customer_email":"([^"\\\\]{1,254})"'))`,
}

export function operatorReads(db: Db): Omit<OperatorStore, 'walkInvoices' | 'checkCounts' | 'close'> {
  return {
    ...documentReads(db),
    ...connectorReads(db),
    ...contentsReads(db),
    ...credentialReads(db),
    ...webhookReads(db),
    ...changeReadsOf(db),
    findCustomers: ids =>
      queryColumn(db, `SELECT customer_id FROM fatura.customers WHERE ${db.isAmong('customer_id', '$1')}`, [
        ids,
      ]),
    findCustomersByEmail: email =>
      queryColumn(
        db,
        `SELECT DISTINCT customer_id FROM fatura.invoices
         WHERE ${emailOf[db.engine]} = $1 ORDER BY customer_id LIMIT 50`,
        [email],
      ),
    readInvoices: (after, limit) =>
      db.query<StoredRecord>(
        `SELECT i.customer_id, i.id, i.summary, i.payment, l.lines
         FROM fatura.invoices i
         LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
         WHERE (i.customer_id, i.id) > ($1, $2) ORDER BY i.customer_id, i.id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit],
      ),
    drawInvoices: count =>
      db.query<InvoiceKey>('SELECT customer_id, id FROM fatura.invoices ORDER BY random() LIMIT $1', [count]),
    readUnsettled: (after, limit, observedBefore) =>
      db.query<InvoiceKey>(
        `SELECT customer_id, id FROM fatura.invoices ${db.byIndex('invoices_unsettled')}
         WHERE status IN (${literals(unsettledStatuses)}) AND (customer_id, id) > ($1, $2) AND observed_at < $4
         ORDER BY customer_id, id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit, observedBefore],
      ),
    listStreams: () =>
      db.query<Stream>(
        'SELECT name, cursor, succeeded_at, failed_at, error FROM fatura.streams ORDER BY name',
      ),
    async readLastObserved() {
      return (await queryColumn<number>(db, 'SELECT last_at FROM fatura.observation'))[0] ?? 0
    },
  }
}
