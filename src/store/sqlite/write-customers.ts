import { changeColumns, countedAbove } from '../sql/counters.ts'
import type { Db, Insertion } from '../sql/db.ts'
import type { CustomerWrites, LockedCustomer } from '../sql/write-counters.ts'

const saveCustomer = `
  INSERT INTO customers (customer_id, version, total) VALUES ($1, $2, $3)
  ON CONFLICT (customer_id) DO UPDATE SET version = max(version + 1, excluded.version), total = total + excluded.total
  RETURNING total, counted`

const changeInsertion: Insertion = {
  into: 'fatura.changes',
  columns: { ...changeColumns, commit_id: 'bigint', at: 'bigint' },
  rest: '',
}

export function customerWrites(db: Db): CustomerWrites {
  return {
    // SQLite runs only one write transaction at a time, so nothing has to be locked.
    lockCustomers: customerIds =>
      db.query<LockedCustomer>(
        `SELECT customer_id, counted, version FROM customers WHERE ${db.isAmong('customer_id', '$1')}`,
        [customerIds],
      ),
    async saveCustomers(customers, commitId) {
      const large: string[] = []
      for (const { customerId, added, version } of customers) {
        const values = [customerId, version, added]
        const [saved] = await db.query<{ total: number; counted: number }>(saveCustomer, values)
        if (saved?.counted === 0 && saved.total > countedAbove) large.push(customerId)
      }
      const now = Date.now()
      await db.insert(
        changeInsertion,
        customers.flatMap(({ changes }) => changes.map(change => [...change, commitId, now])),
      )
      return large
    },
  }
}
