/** Compares totals and counters with the rows. The comparison takes no lock and writes nothing. */
import type { OnRecounted } from '../store.ts'
import { countedAbove, counterColumns } from './counters.ts'
import { type Db, queryColumn } from './db.ts'
import type { Counters } from './write-counters.ts'

const customersAtOnce = 100

/** Selects customers that have invoices or counters but no row in `customers`. */
const lostCustomers = ['invoices', 'counters']
  .map(
    table => `SELECT DISTINCT customer_id FROM fatura.${table} AS other
      WHERE NOT EXISTS (SELECT 1 FROM fatura.customers c WHERE c.customer_id = other.customer_id)`,
  )
  .join(' UNION ')

/**
 * A single statement, so that it sees one moment. It returns the number of invoices of each customer, and a row without a number for each
 * wrong total or counter.
 */
const checkCustomers = (db: Db, within = db.isAmong('customer_id', '$1')) => `
  WITH
    kept AS (SELECT customer_id, total, counted FROM fatura.customers WHERE ${within}),
    found AS (SELECT customer_id, count(*) AS n FROM fatura.invoices WHERE ${within} GROUP BY customer_id),
    made AS (
      SELECT customer_id, ${counterColumns(db.engine)} FROM fatura.invoices ${db.byIndex('invoices_in_order')}
      WHERE ${within} AND customer_id IN (SELECT customer_id FROM kept WHERE counted) GROUP BY 1, 2, 3, 4, 5),
    every AS (
      SELECT customer_id, coalesce(total, 0) AS total, coalesce(counted, false) AS counted,
        coalesce(n, 0) AS n
      FROM kept FULL JOIN found USING (customer_id))
  SELECT customer_id, n FROM found
  UNION ALL
  SELECT customer_id, NULL FROM every WHERE total <> n OR n > ${countedAbove} AND NOT counted
  UNION ALL
  SELECT customer_id, NULL FROM made
  FULL JOIN (SELECT * FROM fatura.counters WHERE ${within}) AS stored USING (customer_id, month, status, currency, ix)
  WHERE (made.n, made.total_cents) IS DISTINCT FROM (stored.n, stored.total_cents)`

export async function check(db: Db, customers: readonly string[]) {
  const rows = await db.query<{ customer_id: string; n: number | null }>(checkCustomers(db), [customers])
  return {
    invoices: rows.reduce((sum, { n }) => sum + (n ?? 0), 0),
    /** The customers with a wrong total or counter. A customer with several wrong ones is in the list several times. */
    wrong: rows.flatMap(({ customer_id, n }) => (n === null ? customer_id : [])),
  }
}

/**
 * Locks a customer and compares its total and counters with the rows again. Creates them anew when something is still wrong. Returns how
 * many totals and counters were wrong.
 */
export async function repairCustomer(db: Db, counters: Counters, customerId: string): Promise<number> {
  await counters.lock([customerId])
  const { wrong } = await check(db, [customerId])
  if (wrong.length > 0) await counters.recount(customerId)
  return wrong.length
}

/**
 * Returns how many totals and counters are wrong. `repair` is called for each customer with a wrong one. It checks the customer again, and
 * returns how many were wrong at that time.
 */
export async function recount(
  db: Db,
  checkSome: (customers: readonly string[]) => ReturnType<typeof check>,
  repair: ((customerId: string) => Promise<number>) | null,
  onProgress?: OnRecounted,
): Promise<number> {
  const [all] = await queryColumn<number>(db, 'SELECT CAST(sum(total) AS bigint) FROM fatura.customers')
  let [wrong, invoices] = [0, 0]
  for await (const customers of customersOf(db)) {
    const checked = await checkSome(customers)
    if (repair === null) wrong += checked.wrong.length
    else for (const customerId of new Set(checked.wrong)) wrong += await repair(customerId)
    invoices += checked.invoices
    onProgress?.(invoices, all || null)
  }
  return wrong
}

/** On Citus, a statement sees one moment only within one shard. Customers are therefore checked one by one. */
async function* customersOf(db: Db): AsyncGenerator<string[]> {
  const atOnce = db.isCitus ? 1 : customersAtOnce
  for (let last: string | undefined = ''; last !== undefined; ) {
    const some: string[] = await queryColumn(
      db,
      `SELECT customer_id FROM fatura.customers WHERE customer_id > $1 ORDER BY customer_id LIMIT ${customersAtOnce}`,
      [last],
    )
    for (let at = 0; at < some.length; at += atOnce) yield some.slice(at, at + atOnce)
    last = some.at(-1)
  }
  for (const customerId of await queryColumn<string>(db, lostCustomers)) yield [customerId]
}
