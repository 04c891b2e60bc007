/** Holds what is kept of customers' invoices beside them against the rows: without a lock, and without writing. */
import type pg from 'pg'
import type { PoolClient } from 'pg'
import { countedAbove, spans } from '../read-model/counting.ts'
import { hasSameParts } from '../read-model/search-signs.ts'
import type { OnRecounted } from '../store.ts'
import { type Counting, countAll, countedStates, everyState, forgetCounts, saveCustomer } from './counts.ts'
import { dayOfIssue, dayTexts, makeSigns, readSignedDays } from './search-days.ts'
import { isSpread } from './spread.ts'
import { explain, transact } from './transact.ts'
import { readHead } from './write-functions.ts'

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
    large AS (
      SELECT customer_id, ${dayOfIssue} AS day, issued_at, id, status, ix_status, own_text, party_id FROM fatura.invoices
      WHERE ${within} AND customer_id IN (SELECT customer_id FROM kept WHERE counted)),
    days AS (SELECT customer_id, day, ${countedStates} FROM large GROUP BY customer_id, day, ${everyState}),
    texts AS (SELECT customer_id, day, ${dayTexts} FROM large GROUP BY customer_id, day),
    expected AS (
      SELECT customer_id, ${spans.day} AS span, day AS start, status, ix, n FROM days
      UNION ALL
      SELECT customer_id, ${spans.stretch}, day & ${-spans.stretch}, status, ix, sum(n) FROM days GROUP BY 1, 3, 4, 5
      UNION ALL
      SELECT customer_id, ${spans.all}, 0, status, ix, sum(n) FROM days GROUP BY 1, 4, 5),
    wrong AS (
      SELECT customer_id FROM kept FULL JOIN found USING (customer_id)
      WHERE coalesce(total, 0) <> coalesce(n, 0) OR NOT coalesce(counted, false) AND coalesce(n, 0) > ${countedAbove}
      UNION ALL
      SELECT customer_id FROM (SELECT customer_id, head FROM kept FULL JOIN found USING (customer_id)) each
      WHERE coalesce(head, '') <> ${readHead(headOf)}
      UNION ALL
      SELECT customer_id FROM expected e
      FULL JOIN (SELECT * FROM fatura.counts WHERE ${within}) k USING (customer_id, span, start, status, ix)
      WHERE e.n IS DISTINCT FROM k.n
      UNION ALL
      SELECT customer_id FROM texts e
      FULL JOIN (SELECT * FROM fatura.search_days WHERE ${within}) s USING (customer_id, day)
      WHERE (e.texts, e.parties, e.joined) IS DISTINCT FROM (s.texts, s.parties, s.joined)
      UNION ALL
      SELECT y.customer_id FROM fatura.parties y WHERE ${within} AND NOT EXISTS (
        SELECT FROM fatura.invoices i WHERE i.customer_id = y.customer_id AND i.party_id = y.party_id))
  SELECT coalesce(sum(n), 0)::bigint AS invoices, (
    SELECT coalesce(json_object_agg(customer_id, n), '{}')
    FROM (SELECT customer_id, count(*) AS n FROM wrong GROUP BY customer_id) each) AS wrong
  FROM found`

const checkStretch = makeCheck(ofStretch, 'each.customer_id')
/** On Citus, a statement sees one moment only within one shard. */
const checkCustomer = makeCheck('customer_id = $1', '$1')

interface Checked {
  invoices: number
  /** How many counters and texts of each customer are wrong; those of which none is are left out. */
  wrong: Record<string, number>
}

async function check(client: PoolClient, { from, end }: Stretch): Promise<Checked> {
  const { invoices, wrong } = await (isSpread(client) ? checkApart : checkTogether)(client, { from, end })
  const { rows: signed } = await client.query<{ customer_id: string }>(
    `SELECT customer_id FROM fatura.customers WHERE ${ofStretch} AND counted
     UNION SELECT customer_id FROM fatura.search_signs WHERE ${ofStretch}
     UNION SELECT customer_id FROM fatura.search_words WHERE ${ofStretch}`,
    [from, end],
  )
  for (const { customer_id } of signed) {
    const found = await countWrongSigns(client, customer_id)
    if (found > 0) wrong[customer_id] = (wrong[customer_id] ?? 0) + found
  }
  return { invoices, wrong }
}

async function checkTogether(client: PoolClient, { from, end }: Stretch): Promise<Checked> {
  const { rows } = await client.query<Checked>(checkStretch, [from, end])
  return rows[0] as Checked
}

async function checkApart(client: PoolClient, { from, end }: Stretch): Promise<Checked> {
  const anything = ['customers', 'invoices', 'counts', 'search_days', 'parties']
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

/** How many parts of what is kept of a customer's days are not as they should be. */
async function countWrongSigns(client: PoolClient, customerId: string): Promise<number> {
  const days = await readSignedDays(client, customerId)
  let wrong = 0
  for (const table of ['search_signs', 'search_words']) {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*) AS n FROM fatura.${table} g WHERE g.customer_id = $1 AND NOT EXISTS (
         SELECT FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day = g.day AND NOT s.is_signed)`,
      [customerId],
    )
    wrong += rows[0]?.n ?? 0
  }
  for await (const { signed, signs, words } of makeSigns(client, customerId, days)) {
    wrong += signed.filter(({ signed_size, size }) => !hasSameParts(signed_size, size)).length
    for (const [table, { parts, days, bits }] of [
      ['search_signs', signs],
      ['search_words', words],
    ] as const) {
      // What is kept beyond what should be is wrong as well.
      const { rows } = await client.query<{ n: number }>(
        `SELECT count(*) FILTER (WHERE g.bits IS DISTINCT FROM e.bits) - count(g.bits) AS n
         FROM unnest($2::integer[], $3::integer[], $4::bytea[]) AS e (part, day, bits)
         LEFT JOIN fatura.${table} g ON g.customer_id = $1 AND g.part = e.part AND g.day = e.day`,
        [customerId, parts, days, bits],
      )
      wrong += rows[0]?.n ?? 0
    }
  }
  return wrong
}

/** What is wrong of a stretch of customers, as it was at one moment; and where the next one begins. */
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

/** Says how much is wrong; with `repair`, customers of whom something is are locked, one at a time, and counted again. */
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

/** What was wrong a moment ago may be right by now; what is wrong still is counted again. */
function repairCustomer(pool: pg.Pool, customerId: string): Promise<number> {
  return transact(pool, async ({ client, counting }) => {
    await explain(counting.lock([customerId]))
    const { wrong } = await explain(check(client, { from: customerId, end: customerId + nextOne }))
    const found = wrong[customerId] ?? 0
    if (found > 0) await explain(recountCustomer(client, counting, customerId))
    return found
  })
}

/** Counts a customer again, whatever was kept of it. The caller has locked it. */
async function recountCustomer(client: PoolClient, counting: Counting, customerId: string): Promise<void> {
  const { rows: parties } = await client.query<{ party_id: number }>(
    'SELECT party_id FROM fatura.parties WHERE customer_id = $1',
    [customerId],
  )
  for (const { party_id } of parties) counting.leaveParty(customerId, party_id)
  const { rows } = await client.query<{ n: number }>(
    'SELECT count(*) AS n FROM fatura.invoices WHERE customer_id = $1',
    [customerId],
  )
  const total = rows[0]?.n ?? 0
  if (total > countedAbove) await countAll(client, customerId)
  else await forgetCounts(client, customerId)
  await saveCustomer(client, customerId, total, total > countedAbove)
}
