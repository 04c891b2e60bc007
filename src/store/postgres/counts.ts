/** Totals, first pages and counters of the customers that a transaction changed: written before it commits. */
import type { PoolClient } from 'pg'
import { Changes, dayLength, headSize, heldAtMost, spans, stretchOf } from '../read-model/counting.ts'
import { keepSums, monthsOf, replaceMonths, sumColumns } from '../read-model/sums.ts'
import { callAtShards } from './at-shards.ts'
import { insertRows } from './insert-rows.ts'

/** The UTC day of a row's moment, counted from the epoch. */
export const dayOfIssue = `((issued_at - (issued_at % ${dayLength} + ${dayLength}) % ${dayLength}) / ${dayLength})::integer`

const ix = "coalesce('=' || ix_status, '-')"

/** Of each state, of each status, of each ix_status, and of all. */
export const everyState = `CUBE (status, ${ix})`
export const countedStates = `coalesce(status, '') AS status, coalesce(${ix}, '') AS ix, count(*) AS n`

/** What one transaction changed of customers' invoices. */
export interface Counting {
  /** No other writer changes these customers until the end. To be called before their rows are read to be changed. */
  lock(customerIds: readonly string[]): Promise<void>
  /** An invoice of these moments came, went or changed: the customer's version rises, and it is counted again. */
  note(customerId: string, ...moments: number[]): void
  /** Before the transaction ends. */
  flush(): Promise<void>
}

/** Nothing is updated but the lock. */
const customerLock = {
  into: 'fatura.customers',
  columns: { customer_id: 'text', version: 'bigint' },
  onConflict: '(customer_id) DO UPDATE SET version = stored.version',
  returning: 'customer_id, counted',
} as const

export function keepCounts(client: PoolClient): Counting {
  let changes = new Changes()

  async function flush(): Promise<void> {
    const changed = [...changes.customers]
    changes = new Changes()
    if (changed.length === 0) return
    const small = changed.flatMap(([customerId, { counted }]) => (counted ? [] : [customerId]))
    const large = await saveSmall(client, small)
    for (const [customerId, { counted, days }] of changed) {
      if (!counted && !large.has(customerId)) continue
      const total = await (counted ? countDays(client, customerId, [...days]) : countAll(client, customerId))
      const sums = await (counted ? sumMonths(client, customerId, days) : sumAll(client, customerId))
      await saveCustomer(client, customerId, total, sums)
    }
  }

  return {
    async lock(customerIds) {
      if (changes.customers.size >= heldAtMost) await flush()
      const unknown = [...new Set(customerIds)].filter(id => !changes.has(id))
      if (unknown.length === 0) return
      const rows = await insertRows<{ customer_id: string; counted: boolean }>(
        client,
        customerLock,
        unknown.sort().map(customerId => [customerId, 0]),
      )
      for (const { customer_id, counted } of rows) changes.add(customer_id, counted)
    },
    note(customerId, ...moments) {
      changes.note(customerId, ...moments)
    },
    flush,
  }
}

/** Counts days again, and all that is made of them; returns the total. */
async function countDays(client: PoolClient, customerId: string, days: readonly number[]): Promise<number> {
  const stretches = [...new Set(days.map(stretchOf))]
  await client.query({
    name: 'forget-days',
    text: `
      DELETE FROM fatura.counts WHERE customer_id = $1 AND (span = ${spans.day} AND start = ANY ($2::integer[])
        OR span = ${spans.stretch} AND start = ANY ($3::integer[]) OR span = ${spans.all})`,
    values: [customerId, days, stretches],
  })
  await client.query({
    name: 'count-days',
    text: `
      INSERT INTO fatura.counts (customer_id, span, start, status, ix, n)
      SELECT $1, ${spans.day}, given.day, found.* FROM unnest($2::integer[]) AS given (day) CROSS JOIN LATERAL (
        SELECT ${countedStates} FROM fatura.invoices
        WHERE customer_id = $1 AND issued_at >= given.day::bigint * ${dayLength}
          AND issued_at < (given.day + 1)::bigint * ${dayLength}
        GROUP BY ${everyState}) found
      WHERE found.n > 0`,
    values: [customerId, days],
  })
  await client.query({
    name: 'count-stretches',
    text: `
      INSERT INTO fatura.counts (customer_id, span, start, status, ix, n)
      SELECT $1, ${spans.stretch}, given.first, found.* FROM unnest($2::integer[]) AS given (first) CROSS JOIN LATERAL (
        SELECT status, ix, sum(n) AS n FROM fatura.counts
        WHERE customer_id = $1 AND span = ${spans.day}
          AND start >= given.first AND start < given.first + ${spans.stretch}
        GROUP BY status, ix) found`,
    values: [customerId, stretches],
  })
  return sumUp(client, customerId)
}

/** The counters over all days, of those of stretches; returns the total. */
async function sumUp(client: PoolClient, customerId: string): Promise<number> {
  const { rows } = await client.query<{ status: string; ix: string; n: number }>({
    name: 'sum-up',
    text: `
      INSERT INTO fatura.counts (customer_id, span, start, status, ix, n)
      SELECT $1, ${spans.all}, 0, status, ix, sum(n) FROM fatura.counts
      WHERE customer_id = $1 AND span = ${spans.stretch} GROUP BY status, ix RETURNING status, ix, n`,
    values: [customerId],
  })
  return rows.find(({ status, ix }) => status === '' && ix === '')?.n ?? 0
}

export async function forgetCounts(client: PoolClient, customerId: string): Promise<void> {
  await client.query('DELETE FROM fatura.counts WHERE customer_id = $1', [customerId])
}

/** Counts all of a customer's invoices again; returns the total. */
export async function countAll(client: PoolClient, customerId: string): Promise<number> {
  await forgetCounts(client, customerId)
  await client.query(
    `INSERT INTO fatura.counts (customer_id, span, start, status, ix, n)
     SELECT $1, ${spans.day}, day, ${countedStates} FROM (
       SELECT ${dayOfIssue} AS day, status, ix_status FROM fatura.invoices WHERE customer_id = $1) given
     GROUP BY day, ${everyState}`,
    [customerId],
  )
  await client.query(
    `INSERT INTO fatura.counts (customer_id, span, start, status, ix, n)
     SELECT $1, ${spans.stretch}, start & ${-spans.stretch}, status, ix, sum(n)
     FROM fatura.counts WHERE customer_id = $1 AND span = ${spans.day} GROUP BY 3, 4, 5`,
    [customerId],
  )
  return sumUp(client, customerId)
}

/** The kept sums, with those of the months of some days made anew. The caller has locked the customer: there is a row. */
async function sumMonths(client: PoolClient, customerId: string, days: Iterable<number>): Promise<string> {
  const months = monthsOf(days)
  const { rows } = await client.query<{ kept: string | null; made: string | null }>({
    name: 'sum-months',
    text: `
      SELECT c.sums AS kept, (
        SELECT ${joinSums} FROM unnest($2::bigint[], $3::bigint[]) AS given (first, before) CROSS JOIN LATERAL (
          SELECT ${sumColumns('postgres')} FROM fatura.invoices
          WHERE customer_id = $1 AND issued_at >= given.first AND issued_at < given.before
          GROUP BY 1, 2, 3) r) AS made
      FROM fatura.customers c WHERE c.customer_id = $1`,
    values: [customerId, months.map(({ from }) => from), months.map(({ before }) => before)],
  })
  return replaceMonths(rows[0]?.kept ?? null, months, [rows[0]?.made ?? null])
}

/** All of a customer's sums, made anew, in the form that is kept. */
export async function sumAll(client: PoolClient, customerId: string): Promise<string> {
  const { rows } = await client.query<{ made: string | null }>(
    `SELECT ${joinSums} AS made FROM (
       SELECT ${sumColumns('postgres')} FROM fatura.invoices WHERE customer_id = $1 GROUP BY 1, 2, 3) r`,
    [customerId],
  )
  return keepSums(rows[0]?.made ?? null)
}

const joinSums = 'json_agg(json_build_array(r.currency, r.status, r.month, r.n, r.high, r.low))::text'

/** Counts and saves customers without counters, all at once; returns those that are large by now. */
async function saveSmall(client: PoolClient, customerIds: readonly string[]): Promise<Set<string>> {
  const answers = await callAtShards<string, string[]>(
    client,
    'count_customers',
    customerIds,
    customerId => customerId,
    some => [some, Date.now()],
  )
  return new Set(answers.flatMap(({ told }) => told))
}

/** The caller has locked it, so there is a row. */
export async function saveCustomer(
  client: PoolClient,
  customerId: string,
  total: number,
  /** Null for a customer without counters. */
  sums: string | null,
): Promise<void> {
  await client.query({
    name: 'save-customer',
    text: `
      UPDATE fatura.customers AS stored SET version = greatest(stored.version + 1, $2::bigint), total = $3,
        counted = $4::text IS NOT NULL, sums = $4, head = ${readHead('$1')}
      WHERE customer_id = $1`,
    values: [customerId, Date.now(), total, sums],
  })
}

/** A customer's newest summaries, joined as they are sent. */
export function readHead(customerId: string): string {
  return `coalesce((
    SELECT string_agg(newest.summary, ',') FROM (
      SELECT summary FROM fatura.invoices WHERE customer_id = ${customerId}
      ORDER BY issued_at DESC, id DESC LIMIT ${headSize}) newest), '')`
}
