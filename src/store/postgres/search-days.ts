/**
 * A large customer's texts, a day together: reaching a row takes the engine longer than looking into its text. Written
 * with the counters, for the same days.
 */
import type { PoolClient } from 'pg'
import { dayLength } from '../read-model/counting.ts'
import type { TextBlock } from '../read-model/frequent-words.ts'
import { textEnd } from '../read-model/search.ts'
import { everyPart, signBlock } from '../read-model/search-signs.ts'

const inOrder = 'ORDER BY issued_at DESC, id DESC'

/** What a day's row holds, of the invoices that are aggregated. No folded text holds a carriage return. */
export const dayTexts = `
  array_agg(own_text ${inOrder}) AS texts, array_agg(party_id ${inOrder}) AS parties,
  string_agg(own_text, '\\x0d'::bytea ${inOrder}) AS joined`

/** Signs stay as they are where texts do: most changes are of a state. */
export async function renewDays(
  client: PoolClient,
  customerId: string,
  days: readonly number[],
): Promise<void> {
  const ofDay = (day: string) =>
    `customer_id = $1 AND issued_at >= ${day}::bigint * ${dayLength} AND issued_at < (${day} + 1)::bigint * ${dayLength}`
  const { rows: gone } = await client.query<{ day: number }>({
    name: 'forget-texts',
    text: `
      DELETE FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day = ANY ($2::integer[])
        AND NOT EXISTS (SELECT FROM fatura.invoices WHERE ${ofDay('s.day')}) RETURNING s.day`,
    values: [customerId, days],
  })
  const { rows: changed } = await client.query<{ day: number }>({
    name: 'join-texts',
    text: `
      INSERT INTO fatura.search_days AS stored (customer_id, day, texts, parties, joined)
      SELECT $1, given.day, found.* FROM unnest($2::integer[]) AS given (day) CROSS JOIN LATERAL (
        SELECT ${dayTexts} FROM fatura.invoices WHERE ${ofDay('given.day')}) found
      WHERE found.texts IS NOT NULL
      ON CONFLICT (customer_id, day) DO UPDATE
        SET texts = excluded.texts, parties = excluded.parties, joined = excluded.joined
        WHERE (stored.joined, stored.parties) IS DISTINCT FROM (excluded.joined, excluded.parties)
      RETURNING stored.day`,
    values: [customerId, days],
  })
  await signDays(
    client,
    customerId,
    [...gone, ...changed].map(({ day }) => day),
  )
}

/** How many days' texts are held at a time. */
export const daysAtOnce = 50

/** What invoices of days are found by. */
export const selectTexts = `
  SELECT s.day AS first, convert_from(s.joined, 'UTF8') AS texts, s.parties::text[] AS party_ids, (
    SELECT json_object_agg(y.party_id, y.text ORDER BY y.party_id)
    FROM (SELECT DISTINCT unnest(s.parties) AS party_id) p
    JOIN fatura.parties y ON y.customer_id = s.customer_id AND y.party_id = p.party_id) AS parties
  FROM fatura.search_days s`

interface TextsRow {
  first: number
  texts: string
  party_ids: string[]
  parties: Record<string, string> | null
}

export function textsOf({ first, texts, party_ids, parties }: TextsRow): TextBlock & { first: number } {
  const numbers = new Map(Object.keys(parties ?? {}).map((id, number) => [id, number]))
  return {
    first,
    texts: texts.split(textEnd),
    parties: Object.values(parties ?? {}),
    partyOf: party_ids.map(id => numbers.get(id) ?? -1),
    days: 1,
  }
}

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
    const { rows } = await client.query<TextsRow>({
      name: 'read-texts',
      text: `${selectTexts} WHERE s.customer_id = $1 AND s.day = ANY ($2::integer[])`,
      values: [customerId, some],
    })
    const signs: Signs = { parts: [], firsts: [], bits: [] }
    for (const { first, ...block } of rows.map(textsOf))
      for (const [part, bits] of signBlock(block)) {
        signs.parts.push(part)
        signs.firsts.push(first)
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
