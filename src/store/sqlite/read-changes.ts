import type { BatchedRow, BatchRow, CustomerRow, FeedStatements } from '../shared/changes.ts'
import type { Db } from '../shared/db.ts'

export function feedStatements(db: Db): FeedStatements {
  return {
    // The version first: what is committed in between has a later one.
    customer: async (customerId, after, limit) => [
      ...(await db.query<CustomerRow>(
        'SELECT (SELECT version FROM fatura.customers WHERE customer_id = $1) AS version',
        [customerId],
      )),
      ...(await db.query<CustomerRow>(
        `SELECT version, previous, invoice_id, kind, at FROM fatura.changes
         WHERE customer_id = $1 AND version > $2 ORDER BY version LIMIT $3`,
        [customerId, after, limit],
      )),
    ],
    batches: async (after, limit) => [
      ...(await db.query<BatchRow>('SELECT last_seq AS seq, pruned_seq AS batch, 0 AS n FROM fatura.feed')),
      ...(await db.query<BatchRow>(
        'SELECT seq, batch, n FROM fatura.batches WHERE seq > $1 ORDER BY seq LIMIT $2',
        [after, limit],
      )),
    ],
    async changes(spans) {
      const read = spans.map(({ batch, start, end }) =>
        db.query<BatchedRow>(
          `SELECT batch, place, customer_id, invoice_id, kind, version, at FROM fatura.changes
           WHERE batch = $1 AND place > $2 AND place <= $3`,
          [batch, start, end],
        ),
      )
      return (await Promise.all(read)).flat()
    },
    settleMs: 0,
  }
}
