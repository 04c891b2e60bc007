/** Compares totals, first pages and counters with the rows: without a lock, and without writing. */
import type pg from 'pg'
import type { PoolClient } from 'pg'
import { countedAbove, counterColumns } from '../read-model/counting.ts'
import type { OnRecounted } from '../store.ts'
import { readHead, saveCustomers, setCounted } from './counts.ts'
import { isSpread } from './spread.ts'
import { explain, transact } from './transact.ts'

/** How many customers are looked at together. */
const customersAtOnce = 200

/** Customers in their order: from one up to, not including, another. */
interface Stretch {
  from: string
  end: string
}

const firstOfAll = ''
/** After every customer; and between a customer and the next. */
const [lastOfAll, nextOne] = ['\u{10ffff}', '\u0001']

const ofStretch = 'customer_id >= $1 AND customer_id < $2'

const makeCheck = (within: string, headOf: string) => `
  WITH
    kept AS (SELECT customer_id, total, counted, head FROM fatura.customers WHERE ${within}),
    found AS (SELECT customer_id, count(*) AS n FROM fatura.invoices WHERE ${within} GROUP BY customer_id),
    expected AS (
      SELECT customer_id, ${counterColumns('postgres')} FROM fatura.invoices
      WHERE ${within} AND customer_id IN (SELECT customer_id FROM kept WHERE counted) GROUP BY 1, 2, 3, 4, 5),
    wrong AS (
      SELECT customer_id FROM kept FULL JOIN found USING (customer_id)
      WHERE coalesce(total, 0) <> coalesce(n, 0) OR NOT coalesce(counted, false) AND coalesce(n, 0) > ${countedAbove}
      UNION ALL
      SELECT customer_id FROM (SELECT customer_id, head FROM kept FULL JOIN found USING (customer_id)) each
      WHERE coalesce(head, '') <> ${readHead(headOf)}
      UNION ALL
      SELECT customer_id FROM expected e
      FULL JOIN (SELECT * FROM fatura.counts WHERE ${within}) k USING (customer_id, month, status, currency, ix)
      WHERE (e.n, e.high, e.low) IS DISTINCT FROM (k.n, k.high, k.low))
  SELECT coalesce(sum(n), 0)::bigint AS invoices, (
    SELECT coalesce(json_object_agg(customer_id, n), '{}')
    FROM (SELECT customer_id, count(*) AS n FROM wrong GROUP BY customer_id) each) AS wrong
  FROM found`

const checkStretch = makeCheck(ofStretch, 'each.customer_id')
/** On Citus, a statement sees one moment only within one shard. */
const checkCustomer = makeCheck('customer_id = $1', '$1')

interface Checked {
  invoices: number
  /** Number of wrong totals, first pages and counters of each customer that has any. */
  wrong: Record<string, number>
}

function check(client: PoolClient, stretch: Stretch): Promise<Checked> {
  return isSpread(client) ? checkApart(client, stretch) : checkTogether(client, stretch)
}

async function checkTogether(client: PoolClient, { from, end }: Stretch): Promise<Checked> {
  const { rows } = await client.query<Checked>(checkStretch, [from, end])
  return rows[0] as Checked
}

async function checkApart(client: PoolClient, { from, end }: Stretch): Promise<Checked> {
  const anything = ['customers', 'invoices', 'counts']
  const { rows: customers } = await client.query<{ customer_id: string }>(
    anything.map(table => `SELECT customer_id FROM fatura.${table} WHERE ${ofStretch}`).join(' UNION '),
    [from, end],
  )
  const all: Checked = { invoices: 0, wrong: {} }
  for (const { customer_id } of customers) {
    const { rows } = await client.query<Checked>({
      name: 'check-customer',
      text: checkCustomer,
      values: [customer_id],
    })
    all.invoices += rows[0]?.invoices ?? 0
    Object.assign(all.wrong, rows[0]?.wrong)
  }
  return all
}

/** Checks a stretch of customers, as it was at one moment; returns where the next one begins, too. */
async function checkNext(pool: pg.Pool, from: string): Promise<Checked & { next: string }> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query(
      "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; SET LOCAL work_mem = '64MB'; SET LOCAL enable_seqscan = off",
    )
    const { rows } = await client.query<{ customer_id: string }>(
      `SELECT customer_id FROM fatura.customers WHERE customer_id >= $1 ORDER BY customer_id OFFSET ${customersAtOnce} LIMIT 1`,
      [from],
    )
    const next = rows[0]?.customer_id ?? lastOfAll
    return { ...(await check(client, { from, end: next })), next }
  } finally {
    await client.query('ROLLBACK').catch((failure: Error) => {
      broken = failure
    })
    client.release(broken)
  }
}

/** An estimate, as the server keeps it; null when it has none. */
async function estimateInvoices(pool: pg.Pool): Promise<number | null> {
  const { rows } = await pool.query<{ n: number }>(
    "SELECT reltuples::bigint AS n FROM pg_class WHERE oid = 'fatura.invoices'::regclass",
  )
  const n = rows[0]?.n ?? 0
  return n > 0 ? n : null
}

/** Returns how much is wrong; with `repair`, customers of whom something is are locked, one at a time, and counted again. */
export async function recount(pool: pg.Pool, repair: boolean, onProgress?: OnRecounted): Promise<number> {
  const all = onProgress === undefined ? null : await explain(estimateInvoices(pool))
  let [wrong, invoices] = [0, 0]
  for (let from = firstOfAll; from !== lastOfAll; ) {
    const checked = await explain(checkNext(pool, from))
    for (const [customerId, found] of Object.entries(checked.wrong))
      wrong += repair ? await repairCustomer(pool, customerId) : found
    from = checked.next
    invoices += checked.invoices
    onProgress?.(invoices, all)
  }
  return wrong
}

/** A fault of a moment ago may be gone by now; if it is not, the customer is counted again. */
function repairCustomer(pool: pg.Pool, customerId: string): Promise<number> {
  return transact(pool, async ({ client, counting }) => {
    await explain(counting.lock([customerId]))
    const { wrong } = await explain(check(client, { from: customerId, end: customerId + nextOne }))
    const found = wrong[customerId] ?? 0
    if (found > 0) await explain(recountCustomer(client, customerId))
    return found
  })
}

/** Counts a customer again, whatever was kept of it. The caller has locked it. */
async function recountCustomer(client: PoolClient, customerId: string): Promise<void> {
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
