/** Collects the totals and counters of the customers that a transaction changes, and writes them before the commit. */
import { type ChangeRow, Changes, type CustomerChange, changeRows, counterColumns } from './counters.ts'
import type { Db, Insertion } from './db.ts'
import type { SharedRows } from './shared-rows.ts'

const counterInsertion: Insertion = {
  into: 'fatura.counters',
  columns: {
    customer_id: 'text',
    month: 'text',
    status: 'text',
    currency: 'text',
    ix: 'text',
    n: 'bigint',
    total_cents: 'numeric',
  },
  rest: `ON CONFLICT (customer_id, month, status, currency, ix) DO UPDATE SET
    n = stored.n + excluded.n, total_cents = stored.total_cents + excluded.total_cents`,
}

/** Maximum number of changes that a transaction keeps in memory before it writes them. */
const maxHeld = 100_000

export interface LockedCustomer {
  customer_id: string
  /** True for a customer with counters. SQLite returns this boolean as a number. */
  counted: boolean | number
  version: number
}

export interface GrownCustomer {
  customerId: string
  /** Number of added invoices, less the number of removed ones. */
  added: number
  version: number
  changes: readonly ChangeRow[]
}

/** Writes of customers that each engine implements in its own way. */
export interface CustomerWrites {
  /** Locks customers, so that no other writer changes them until the transaction ends. New customers may be missing in the result. */
  lockCustomers(customerIds: readonly string[]): Promise<LockedCustomer[]>
  /** Saves customers. Returns those that have become large and have no counters. */
  saveCustomers(customers: readonly GrownCustomer[], commitId: number): Promise<string[]>
}

export type Counters = ReturnType<typeof keepCounts>

/** Collects the changes of a transaction's invoices. `flush` writes them. */
export function keepCounts(db: Db, engine: CustomerWrites, { commit }: SharedRows) {
  let changes = new Changes()

  async function flush(): Promise<void> {
    const changed = [...changes.customers]
    changes = new Changes()
    await saveCounters(db, changed)
    const now = Date.now()
    const customers = changed.map(([customerId, change]): GrownCustomer => {
      // Each change has a version of its own. Within one life of the store, versions only grow.
      const version = Math.max(change.previous + change.kinds.size, now)
      const changes = changeRows(customerId, change, version, commit.count)
      commit.count += changes.length
      return { customerId, added: change.added, version, changes }
    })
    await saveCustomers(db, engine, customers, commit.id)
  }

  return {
    /**
     * Locks customers, so that no other writer changes them until the transaction ends. Must be called before their rows are read for a
     * change.
     */
    async lock(customerIds: readonly string[]): Promise<void> {
      if (changes.recorded >= maxHeld) await flush()
      const unknown = [...new Set(customerIds)].filter(id => !changes.known.has(id))
      if (unknown.length === 0) return
      for (const { customer_id, counted, version } of await engine.lockCustomers(unknown.sort()))
        changes.known.set(customer_id, { isCounted: Boolean(counted), version })
    },
    /** Records a change of an invoice. It raises the customer's version. */
    record(...change: Parameters<Changes['record']>): void {
      changes.record(...change)
    },
    flush,
    /** Counts a customer's invoices again and replaces its total and counters. The caller must have locked the customer. */
    async recount(customerId: string): Promise<void> {
      await db.query('DELETE FROM fatura.counters WHERE customer_id = $1', [customerId])
      await db.query('UPDATE fatura.customers SET counted = false WHERE customer_id = $1', [customerId])
      const [row] = await db.query<{ wrong_by: number }>(
        `SELECT (SELECT count(*) FROM fatura.invoices WHERE customer_id = $1)
           - coalesce((SELECT total FROM fatura.customers WHERE customer_id = $1), 0) AS wrong_by`,
        [customerId],
      )
      const customer = { customerId, added: row?.wrong_by ?? 0, version: Date.now(), changes: [] }
      await saveCustomers(db, engine, [customer], commit.id)
    },
  }
}

async function saveCounters(db: Db, changed: readonly [string, CustomerChange][]): Promise<void> {
  const rows = changed.flatMap(([customerId, { counters }]) =>
    Array.from(counters.values(), counter => [customerId, ...counter] as const).filter(
      ([, , , , , n, totalCents]) => n !== 0 || totalCents !== 0n,
    ),
  )
  await db.insert(counterInsertion, rows)
  for (const customerId of new Set(rows.flatMap(([id, , , , , n]) => (n < 0 ? id : []))))
    await db.query('DELETE FROM fatura.counters WHERE customer_id = $1 AND n = 0', [customerId])
}

/** Saves customers, and creates counters for customers that have become large. */
async function saveCustomers(
  db: Db,
  engine: CustomerWrites,
  customers: readonly GrownCustomer[],
  commitId: number,
): Promise<void> {
  for (const customerId of await engine.saveCustomers(customers, commitId)) {
    await db.query(
      `INSERT INTO fatura.counters (customer_id, month, status, currency, ix, n, total_cents)
       SELECT $1, ${counterColumns(db.engine)} FROM fatura.invoices ${db.byIndex('invoices_in_order')}
       WHERE customer_id = $1 GROUP BY 2, 3, 4, 5`,
      [customerId],
    )
    await db.query('UPDATE fatura.customers SET counted = true WHERE customer_id = $1', [customerId])
  }
}
