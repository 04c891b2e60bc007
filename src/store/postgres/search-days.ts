/**
 * A large customer's texts, a day together: reaching a row takes the engine longer than looking into its text. Written
 * with the counters, for the same days.
 */
import type { PoolClient } from 'pg'
import { dayLength } from '../read-model/counting.ts'

const inOrder = 'ORDER BY issued_at DESC, id DESC'

/** What a day's row holds, of the invoices that are aggregated. No folded text holds a carriage return. */
export const dayTexts = `
  array_agg(own_text ${inOrder}) AS texts, array_agg(party_id ${inOrder}) AS parties,
  string_agg(own_text, '\\x0d'::bytea ${inOrder}) AS joined`

export async function renewDays(
  client: PoolClient,
  customerId: string,
  days: readonly number[],
): Promise<void> {
  await client.query({
    name: 'forget-texts',
    text: 'DELETE FROM fatura.search_days WHERE customer_id = $1 AND day = ANY ($2::integer[])',
    values: [customerId, days],
  })
  await client.query({
    name: 'join-texts',
    text: `
      INSERT INTO fatura.search_days (customer_id, day, texts, parties, joined)
      SELECT $1, given.day, found.* FROM unnest($2::integer[]) AS given (day) CROSS JOIN LATERAL (
        SELECT ${dayTexts} FROM fatura.invoices
        WHERE customer_id = $1 AND issued_at >= given.day::bigint * ${dayLength}
          AND issued_at < (given.day + 1)::bigint * ${dayLength}) found
      WHERE found.texts IS NOT NULL`,
    values: [customerId, days],
  })
}
