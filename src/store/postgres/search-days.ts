/**
 * A large customer's texts, a day together: reaching a row takes the engine longer than looking into its text. Written
 * with the counters, for the same days.
 */
import type { PoolClient } from 'pg'
import { dayLength } from '../read-model/counting.ts'
import { signParts, signText } from '../read-model/search-signs.ts'

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
  await signDays(client, customerId, days)
}

/** How many days' texts are held at a time. */
const daysAtOnce = 50

/** All that invoices of a day are found by. */
export const dayText = `
  convert_from(s.joined, 'UTF8') || coalesce((
    SELECT string_agg(E'\\r' || y.text, '' ORDER BY y.party_id)
    FROM (SELECT DISTINCT unnest(s.parties) AS party_id) p
    JOIN fatura.parties y ON y.customer_id = s.customer_id AND y.party_id = p.party_id), '')`

export interface Signs {
  parts: number[]
  firsts: number[]
  bits: Buffer[]
}

/** The signs of days as they should be, some days at a time. */
export async function* makeSigns(
  client: PoolClient,
  customerId: string,
  days: readonly number[],
): AsyncGenerator<Signs & { days: readonly number[] }> {
  for (let at = 0; at < days.length; at += daysAtOnce) {
    const some = days.slice(at, at + daysAtOnce)
    const { rows } = await client.query<{ day: number; text: string }>({
      name: 'read-texts',
      text: `SELECT s.day, ${dayText} AS text FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day = ANY ($2::integer[])`,
      values: [customerId, some],
    })
    const signs: Signs = { parts: [], firsts: [], bits: [] }
    for (const { day, text } of rows)
      for (const [part, bits] of signText(text).entries()) {
        signs.parts.push(part)
        signs.firsts.push(day)
        signs.bits.push(Buffer.from(bits))
      }
    yield { ...signs, days: some }
  }
}

export async function readDays(client: PoolClient, customerId: string): Promise<number[]> {
  const { rows } = await client.query<{ day: number }>(
    'SELECT day FROM fatura.search_days WHERE customer_id = $1 ORDER BY day',
    [customerId],
  )
  return rows.map(({ day }) => day)
}

export const everyPart = Array.from({ length: signParts }, (_, part) => part)

/** Puts the signs of days as they are now in the place of what was kept. */
export async function signDays(
  client: PoolClient,
  customerId: string,
  days: readonly number[],
): Promise<void> {
  for await (const signs of makeSigns(client, customerId, days)) {
    await client.query({
      name: 'forget-signs',
      text: 'DELETE FROM fatura.search_signs WHERE customer_id = $1 AND part = ANY ($2::integer[]) AND first = ANY ($3::integer[])',
      values: [customerId, everyPart, signs.days],
    })
    await client.query({
      name: 'save-signs',
      text: `
        INSERT INTO fatura.search_signs (customer_id, part, first, bits)
        SELECT $1, given.* FROM unnest($2::integer[], $3::integer[], $4::bytea[]) AS given (part, first, bits)`,
      values: [customerId, signs.parts, signs.firsts, signs.bits],
    })
  }
}
