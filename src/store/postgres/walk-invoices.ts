import type pg from 'pg'
import { customersInOrder, walkStatement } from '../shared/walk-statement.ts'
import { batchSizeOf, type InvoiceWalk, type WalkedInvoice } from '../store.ts'
import { explain, rollBack } from './pool.ts'

/** May wait long for a slow receiver. An index gives the order: to sort everything first would fill the server's disk. */
const begin = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL idle_in_transaction_session_timeout = '1h'; SET LOCAL jit = off;
  SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`

/** One transaction is one snapshot from the first row to the last; a cursor brings them batch by batch. */
export async function* walkPostgres(pool: pg.Pool, walk: InvoiceWalk): AsyncGenerator<WalkedInvoice[]> {
  const client = await explain(pool.connect())
  const size = batchSizeOf(walk)
  try {
    await explain(client.query(begin))
    for (const customerId of customersInOrder(walk.customers)) {
      const { sql, values } = walkStatement(walk, customerId, 'postgres')
      await explain(client.query(`DECLARE walk NO SCROLL CURSOR FOR ${sql}`, values))
      for (;;) {
        const { rows } = await explain(client.query<WalkedInvoice>(`FETCH ${size} FROM walk`))
        if (rows.length > 0) yield rows
        if (rows.length < size) break
      }
      await explain(client.query('CLOSE walk'))
    }
  } finally {
    await rollBack(client)
  }
}
