/** Totals, first pages and counters of the customers that a transaction changed: written before it commits. */
import type { PoolClient } from 'pg'
import {
  type ChangeRow,
  Changes,
  changedCounters,
  changeRows,
  counterColumns,
  versionAfter,
} from '../read-model/counting.ts'
import type { SharedRows } from '../shared/shared-rows.ts'
import { callAtShards } from './at-shards.ts'
import { insertRows } from './insert-rows.ts'
import { writeList } from './lists.ts'

/** Nothing is updated but the lock. */
const customerLock = {
  into: 'fatura.customers',
  columns: { customer_id: 'text', version: 'bigint' },
  onConflict: '(customer_id) DO UPDATE SET version = stored.version',
  returning: 'customer_id, counted, version',
} as const

const counters = {
  into: 'fatura.counts',
  columns: {
    customer_id: 'text',
    month: 'text',
    status: 'text',
    currency: 'text',
    ix: 'text',
    n: 'bigint',
    high: 'bigint',
    low: 'bigint',
  },
  onConflict: `(customer_id, month, status, currency, ix) DO UPDATE SET
    n = stored.n + excluded.n, high = stored.high + excluded.high, low = stored.low + excluded.low`,
} as const

export type Counting = ReturnType<typeof keepCounts>

export function keepCounts(client: PoolClient, { batch }: SharedRows) {
  let changes = new Changes()

  async function flush(): Promise<void> {
    const changed = [...changes.customers]
    changes = new Changes()
    const rows = changed.flatMap(([customerId, change]) =>
      changedCounters(change).map(counter => [customerId, ...counter] as const),
    )
    await insertRows(client, counters, rows)
    for (const customerId of new Set(rows.flatMap(([id, , , , , n]) => (n < 0 ? id : []))))
      await client.query({
        name: 'delete-empty-counters',
        text: 'DELETE FROM fatura.counts WHERE customer_id = $1 AND n = 0',
        values: [customerId],
      })
    const now = Date.now()
    const customers = changed.map(([customerId, change]): Added => {
      const version = versionAfter(change, now)
      const rows = changeRows(customerId, change, version, batch.count)
      batch.count += rows.length
      return { customerId, added: change.added, version, changes: rows }
    })
    await saveCustomers(client, customers, batch.number)
  }

  return {
    /** No other writer changes these customers until the end. To be called before their rows are read to be changed. */
    async lock(customerIds: readonly string[]): Promise<void> {
      if (changes.isFull()) await flush()
      const unknown = [...new Set(customerIds)].filter(id => !changes.has(id))
      if (unknown.length === 0) return
      const locks = unknown.sort().map(customerId => [customerId, 0])
      type Row = { customer_id: string; counted: boolean; version: number }
      const rows = await insertRows<Row>(client, customerLock, locks)
      for (const { customer_id, counted, version } of rows)
        changes.add(customer_id, { isCounted: counted, version })
    },
    /** As `Changes` notes it. The customer's version rises. */
    note(...noted: Parameters<Changes['note']>): void {
      changes.note(...noted)
    },
    flush,
  }
}

interface Added {
  customerId: string
  /** Invoices that came, less those that went. */
  added: number
  version: number
  changes: readonly ChangeRow[]
}

const customersAtOnce = 5_000

/** Saves customers with so many more invoices; those that are large by now get counters. The caller has locked them. */
async function saveCustomers(client: PoolClient, all: readonly Added[], batch = 0): Promise<void> {
  for (let at = 0; at < all.length; at += customersAtOnce) {
    const answers = await callAtShards<Added, string[]>(
      client,
      'count_customers',
      all.slice(at, at + customersAtOnce),
      ({ customerId }) => customerId,
      some => [
        some.map(({ customerId }) => customerId),
        some.map(({ added }) => added),
        some.map(({ version }) => version),
        ...listChanges(some.flatMap(({ changes }) => changes)),
        batch,
        Date.now(),
      ],
    )
    for (const customerId of answers.flatMap(({ told }) => told)) await makeCounters(client, customerId)
  }
}

function listChanges(rows: readonly ChangeRow[]): (string | null)[] {
  return (['customer_id', 'version', 'previous', 'invoice_id', 'kind', 'place'] as const).map(name =>
    writeList(
      name === 'version' || name === 'previous' || name === 'place' ? 'bigint' : 'text',
      rows.map(row => row[name]),
    ),
  )
}

async function makeCounters(client: PoolClient, customerId: string): Promise<void> {
  await client.query(
    `INSERT INTO fatura.counts (customer_id, month, status, currency, ix, n, high, low)
     SELECT $1, ${counterColumns('postgres')} FROM fatura.invoices WHERE customer_id = $1 GROUP BY 2, 3, 4, 5`,
    [customerId],
  )
  await setCounted(client, customerId, true)
}

async function setCounted(client: PoolClient, customerId: string, isCounted: boolean): Promise<void> {
  await client.query('UPDATE fatura.customers SET counted = $2 WHERE customer_id = $1', [
    customerId,
    isCounted,
  ])
}

/** Counts a customer again, whatever was kept of it. The caller has locked it. */
export async function recountCustomer(client: PoolClient, customerId: string): Promise<void> {
  await client.query('DELETE FROM fatura.counts WHERE customer_id = $1', [customerId])
  await setCounted(client, customerId, false)
  const { rows } = await client.query<{ wrong_by: number }>(
    `SELECT (SELECT count(*) FROM fatura.invoices WHERE customer_id = $1)
       - (SELECT total FROM fatura.customers WHERE customer_id = $1) AS wrong_by`,
    [customerId],
  )
  await saveCustomers(client, [
    { customerId, added: rows[0]?.wrong_by ?? 0, version: Date.now(), changes: [] },
  ])
}
