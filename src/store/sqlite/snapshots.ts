import type { DatabaseSync } from 'node:sqlite'
import type { Snapshot } from '../store.ts'

export type Snapshots = ReturnType<typeof openSnapshots>

export function openSnapshots(db: DatabaseSync) {
  const begin = db.prepare('BEGIN')
  const end = db.prepare('ROLLBACK')
  const find = db.prepare(`
    SELECT coalesce(total, 0) AS total, coalesce(version, 0) AS version, counted, synced_at, life
    FROM freshness LEFT JOIN customers ON customer_id = ?1`)
  return {
    /** Runs `work` in a read transaction, so that everything in it reads the same moment. */
    during<T>(work: () => T): T {
      begin.run()
      try {
        return work()
      } finally {
        end.run()
      }
    },
    /** Reads a customer's total, and the version and freshness of the customer's data. `counted` is 1 for a customer with counters. */
    customer(customerId: string) {
      return find.get(customerId) as unknown as Snapshot & { total: number; counted: number | null }
    },
  }
}
