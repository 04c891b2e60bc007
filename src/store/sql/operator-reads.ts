/** Reads for commands that only read. The writer offers the same reads over its own connection. */
import { type InvoiceKey, unsettledStatuses } from '../../domain/invoice.ts'
import type { Value } from '../contents.ts'
import type { InvoiceWalk, OperatorStore, StoredRecord, Stream } from '../store.ts'
import { changeReadsOf } from './changes.ts'
import { connectorReads } from './connector-state.ts'
import { contentsReads } from './contents.ts'
import { credentialReads } from './credentials.ts'
import { type Db, literals, queryColumn } from './db.ts'
import { conditionsOf, type EngineName } from './filters.ts'
import { documentReads } from './read-documents.ts'
import { tiedReads } from './read-ties.ts'
import { webhookReads } from './webhooks.ts'

/** Expression of the index `invoices_by_email`. On PostgreSQL it is null for an address with characters that JSON escapes. */
export const emailOf = {
  sqlite: "lower(json_extract(summary, '$.customer_email'))",
  postgres: `lower(substring(summary from '"customer_email":"([^"\\\\]{1,254})"'))`,
}

export function operatorReads(db: Db): Omit<OperatorStore, 'walkInvoices' | 'checkCounts' | 'close'> {
  return {
    ...documentReads(db),
    ...tiedReads(db),
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
         WHERE status IN (${literals(unsettledStatuses)}) AND (customer_id, id) > ($1, $2) AND observed_stamp < $4
         ORDER BY customer_id, id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit, observedBefore],
      ),
    listStreams: () =>
      db.query<Stream>(
        'SELECT name, cursor, succeeded_at, failed_at, error FROM fatura.streams ORDER BY name',
      ),
    async readLastObserved() {
      return (await queryColumn<number>(db, 'SELECT last_stamp FROM fatura.observation'))[0] ?? 0
    },
  }
}

/**
 * Yields the statements that read filtered invoices in the order of lists: one statement for all customers, or one for each given customer.
 */
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

/** Number of invoices that are read together. Batches with lines are smaller, because an invoice may have a thousand lines. */
export function batchSizeOf({ withLines }: InvoiceWalk): number {
  return withLines ? 50 : 500
}
