/** What commands read that only look, over sessions that cannot write; and what the writer reads over its own. */
import type pg from 'pg'
import type { InvoiceKey } from '../../invoice.ts'
import { connectorReads } from '../shared/connector-state.ts'
import { contentsReads } from '../shared/contents.ts'
import type { OperatorStore, StoredRecord, StoredToken, Stream } from '../store.ts'
import { openOperatorPool } from './pool.ts'
import { documentReads } from './read-documents.ts'
import { recount } from './recount.ts'
import { checkSchema } from './schema-version.ts'
import { createDb } from './shared-db.ts'
import { explain } from './transact.ts'

export const tokenColumns = 'id, name, hash, customers, created_at, expires_at, revoked_at'

export function openPostgresOperator(url: string): Promise<OperatorStore> {
  return operatorReads(openOperatorPool(url))
}

/** Closes the pool when the schema is not this version's. */
export async function operatorReads(pool: pg.Pool): Promise<OperatorStore> {
  const query = async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> => {
    return (await explain(pool.query<Row>(text, values))).rows
  }
  try {
    await checkSchema(query)
  } catch (error) {
    await pool.end()
    throw error
  }
  const shared = createDb((sql, values) => pool.query(sql, values))
  return {
    checkCounts: onProgress => recount(pool, false, onProgress),
    ...documentReads(query),
    ...connectorReads(shared),
    ...contentsReads(shared),
    async readInvoices(after, limit) {
      return query<StoredRecord>(
        `SELECT i.customer_id, i.id, i.summary, l.lines
         FROM fatura.invoices i
         LEFT JOIN fatura.invoice_lines l ON l.customer_id = i.customer_id AND l.invoice_id = i.id
         WHERE (i.customer_id, i.id) > ($1, $2) ORDER BY i.customer_id, i.id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit],
      )
    },
    async readUnsettled(after, limit, observedBefore) {
      return query<InvoiceKey>(
        `SELECT customer_id, id FROM fatura.invoices
         WHERE status IN ('draft', 'open', 'uncollectible') AND (customer_id, id) > ($1, $2) AND observed_at < $4
         ORDER BY customer_id, id LIMIT $3`,
        [after?.customer_id ?? '', after?.id ?? '', limit, observedBefore],
      )
    },
    async readLastObserved() {
      const [row] = await query<{ last_at: number }>('SELECT last_at FROM fatura.observation')
      return row?.last_at ?? 0
    },
    async listStreams() {
      return query<Stream>(
        'SELECT name, cursor, succeeded_at, failed_at, error FROM fatura.streams ORDER BY name',
      )
    },
    async listTokens() {
      return query<StoredToken>(`SELECT ${tokenColumns} FROM fatura.tokens ORDER BY created_at DESC, id`)
    },
    async close() {
      await pool.end()
    },
  }
}
