import { changeColumns } from '../read-model/counting.ts'
import type { CustomerWrites, GrownCustomer, LockedCustomer } from '../shared/counts.ts'
import { callAtShards } from './at-shards.ts'
import { writeList } from './lists.ts'
import type { PostgresDb } from './shared-db.ts'

/** Nothing is updated but the lock. */
const customerLock = {
  into: 'fatura.customers',
  columns: { customer_id: 'text', version: 'bigint' },
  rest: 'ON CONFLICT (customer_id) DO UPDATE SET version = stored.version RETURNING customer_id, counted, version',
} as const

const customersAtOnce = 5_000

export function customerWrites(db: PostgresDb): CustomerWrites {
  return {
    lockCustomers: customerIds =>
      db.insert<LockedCustomer>(
        customerLock,
        customerIds.map(customerId => [customerId, 0]),
      ),
    async saveCustomers(customers, batch) {
      const large: string[] = []
      for (let at = 0; at < customers.length; at += customersAtOnce) {
        const answers = await callAtShards<GrownCustomer, string[]>(
          db,
          'count_customers',
          customers.slice(at, at + customersAtOnce),
          ({ customerId }) => customerId,
          some => {
            const changes = some.flatMap(({ changes }) => changes)
            return [
              some.map(({ customerId }) => customerId),
              some.map(({ added }) => added),
              some.map(({ version }) => version),
              ...Object.values(changeColumns).map((type, i) =>
                writeList(
                  type,
                  changes.map(change => change[i] ?? null),
                ),
              ),
              batch,
              Date.now(),
            ]
          },
        )
        large.push(...answers.flatMap(({ told }) => told))
      }
      return large
    },
  }
}
