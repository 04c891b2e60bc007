/** Holds what is kept of customers' invoices beside them against the rows. */
import type { PoolClient } from 'pg'
import { countedAbove, spans } from '../counting.ts'
import {
  countAll,
  countedStates,
  dayOfIssue,
  everyState,
  forgetCounts,
  readHead,
  saveCustomer,
} from './counts.ts'
import { dayTexts } from './search-days.ts'

/** So many customers are looked at in one transaction. */
export const recountedAtOnce = 200

/** Customers in their order, after one of them. */
export async function nextCustomers(client: PoolClient, after: string): Promise<string[]> {
  const { rows } = await client.query<{ customer_id: string }>(
    `SELECT customer_id FROM fatura.customers WHERE customer_id > $1
     UNION SELECT customer_id FROM (SELECT DISTINCT customer_id FROM fatura.invoices WHERE customer_id > $1) i
     UNION SELECT customer_id FROM (SELECT DISTINCT customer_id FROM fatura.counts WHERE customer_id > $1) k
     UNION SELECT customer_id FROM (SELECT DISTINCT customer_id FROM fatura.search_days WHERE customer_id > $1) s
     ORDER BY customer_id LIMIT ${recountedAtOnce}`,
    [after],
  )
  return rows.map(({ customer_id }) => customer_id)
}

/** How many counters and texts of each of these customers are wrong; those of which none is are left out. */
export async function checkCustomers(
  client: PoolClient,
  customerIds: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await client.query<{ customer_id: string; wrong: number }>(
    `WITH
       given AS (
         SELECT g.customer_id, coalesce(c.total, 0) AS total, coalesce(c.counted, false) AS counted,
           coalesce(c.head, '') AS head
         FROM unnest($1::text[]) AS g (customer_id) LEFT JOIN fatura.customers c USING (customer_id)),
       found AS (SELECT customer_id, count(*) AS n FROM fatura.invoices WHERE customer_id = ANY ($1) GROUP BY customer_id),
       days AS (
         SELECT customer_id, day, ${countedStates} FROM (
           SELECT customer_id, ${dayOfIssue} AS day, status, ix_status FROM fatura.invoices
           WHERE customer_id IN (SELECT customer_id FROM given WHERE counted)) i
         GROUP BY customer_id, day, ${everyState}),
       texts AS (
         SELECT customer_id, day, ${dayTexts} FROM (
           SELECT customer_id, ${dayOfIssue} AS day, issued_at, id, own_text, party_id FROM fatura.invoices
           WHERE customer_id IN (SELECT customer_id FROM given WHERE counted)) i
         GROUP BY customer_id, day),
       expected AS (
         SELECT customer_id, ${spans.day} AS span, day AS start, status, ix, n FROM days
         UNION ALL
         SELECT customer_id, ${spans.stretch}, day & ${-spans.stretch}, status, ix, sum(n) FROM days GROUP BY 1, 3, 4, 5
         UNION ALL
         SELECT customer_id, ${spans.all}, 0, status, ix, sum(n) FROM days GROUP BY 1, 4, 5),
       wrong AS (
         SELECT customer_id FROM given LEFT JOIN found USING (customer_id)
         WHERE total <> coalesce(n, 0) OR NOT counted AND coalesce(n, 0) > ${countedAbove}
         UNION ALL
         SELECT customer_id FROM given WHERE head <> ${readHead('given.customer_id')}
         UNION ALL
         SELECT customer_id FROM expected e
         FULL JOIN (SELECT * FROM fatura.counts WHERE customer_id = ANY ($1)) k
           USING (customer_id, span, start, status, ix)
         WHERE e.n IS DISTINCT FROM k.n
         UNION ALL
         SELECT customer_id FROM texts e
         FULL JOIN (SELECT * FROM fatura.search_days WHERE customer_id = ANY ($1)) s USING (customer_id, day)
         WHERE (e.texts, e.parties, e.joined) IS DISTINCT FROM (s.texts, s.parties, s.joined))
     SELECT customer_id, count(*) AS wrong FROM wrong GROUP BY customer_id ORDER BY customer_id`,
    [customerIds],
  )
  return new Map(rows.map(({ customer_id, wrong }) => [customer_id, wrong]))
}

/** Counts a customer anew, whatever was kept of it. The caller has locked it. */
export async function recountCustomer(client: PoolClient, customerId: string): Promise<void> {
  const { rows } = await client.query<{ n: number }>(
    'SELECT count(*) AS n FROM fatura.invoices WHERE customer_id = $1',
    [customerId],
  )
  const total = rows[0]?.n ?? 0
  if (total > countedAbove) await countAll(client, customerId)
  else await forgetCounts(client, customerId)
  await saveCustomer(client, customerId, total, total > countedAbove)
}
