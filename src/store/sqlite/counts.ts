import { defaultPageSize } from '../../invoice.ts'
import { changeColumns, countedAbove } from '../read-model/counting.ts'
import type { CustomerWrites, LockedCustomer } from '../shared/counts.ts'
import type { Db, Insertion } from '../shared/db.ts'
import { joinSummaries } from './read-pages.ts'

const joinExpansions =
  "coalesce(group_concat(expanded_document || char(10) || expanded_payment, char(10)), '')"

const saveCustomer = `
  INSERT INTO customers (customer_id, version, total, first_page_size, first_page, first_expansions)
  SELECT $1, $2, $3, ${defaultPageSize}, ${joinSummaries}, ${joinExpansions} FROM (
    SELECT summary, expanded_document, expanded_payment
    FROM invoices WHERE customer_id = $1 ORDER BY issued_at DESC, id DESC LIMIT ${defaultPageSize})
  WHERE true
  ON CONFLICT (customer_id) DO UPDATE SET version = max(version + 1, excluded.version),
    total = total + excluded.total, first_page_size = excluded.first_page_size, first_page = excluded.first_page,
    first_expansions = excluded.first_expansions
  RETURNING total, counted`

const changeInsertion: Insertion = {
  into: 'fatura.changes',
  columns: { ...changeColumns, batch: 'bigint', at: 'bigint' },
  rest: '',
}

export function customerWrites(db: Db): CustomerWrites {
  return {
    // A write transaction is the only one.
    lockCustomers: customerIds =>
      db.query<LockedCustomer>(
        `SELECT customer_id, counted, version FROM customers WHERE ${db.isAmong('customer_id', '$1')}`,
        [customerIds],
      ),
    async saveCustomers(customers, batch) {
      const large: string[] = []
      for (const { customerId, added, version } of customers) {
        const values = [customerId, version, added]
        const [saved] = await db.query<{ total: number; counted: number }>(saveCustomer, values)
        if (saved?.counted === 0 && saved.total > countedAbove) large.push(customerId)
      }
      const now = Date.now()
      await db.insert(
        changeInsertion,
        customers.flatMap(({ changes }) => changes.map(change => [...change, batch, now])),
      )
      return large
    },
  }
}
