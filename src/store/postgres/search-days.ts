/**
 * A large customer's texts, a day together: reaching a row takes the engine longer than looking into its text. Written
 * with the counters, for the same days.
 */
import { dayLength } from '../read-model/counting.ts'
import type { DayTexts } from '../read-model/letters.ts'
import { textEnd } from '../read-model/search.ts'
import {
  chooseToSign,
  countParts,
  type DayParts,
  leastSigned,
  mostParts,
  signDay,
} from '../read-model/search-signs.ts'
import type { Asked } from './insert-rows.ts'

/** The last of the list first: a new invoice leaves the places of all others as they are. */
const inOrder = 'ORDER BY issued_at, id'

/** A moment's day, rounded down also before 1970. */
export const dayOfIssue = `((issued_at - (issued_at % ${dayLength} + ${dayLength}) % ${dayLength}) / ${dayLength})::integer`

/** What a day's row holds, of the invoices that are aggregated. No folded text holds a carriage return. */
const textsIn = (order: string) => `
  array_agg(own_text ${order}) AS texts, array_agg(party_id ${order}) AS parties,
  string_agg(own_text, '\\x0d'::bytea ${order}) AS joined`
export const dayTexts = textsIn(inOrder)

const isTooSmall = `count(*) < ${leastSigned}`

/** Puts days as they are now in the place of what was kept of them. Where texts stay, so do signs: most changes are of a state. */
export async function renewDays(client: Asked, customerId: string, days: readonly number[]): Promise<void> {
  const ofDay = (day: string) =>
    `customer_id = $1 AND issued_at >= ${day}::bigint * ${dayLength} AND issued_at < (${day} + 1)::bigint * ${dayLength}`
  const { rows: gone } = await client.query<SignedDay>({
    name: 'forget-texts',
    text: `
      DELETE FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day = ANY ($2::integer[])
        AND NOT EXISTS (SELECT FROM fatura.invoices WHERE ${ofDay('s.day')}) RETURNING s.day, s.signed_size`,
    values: [customerId, days],
  })
  await dropParts(client, customerId, gone, () => 0)
  await client.query({
    name: 'join-texts',
    text: `
      INSERT INTO fatura.search_days AS stored (customer_id, day, texts, parties, joined, is_signed)
      SELECT $1, given.day, found.* FROM unnest($2::integer[]) AS given (day) CROSS JOIN LATERAL (
        SELECT ${textsIn('')}, ${isTooSmall} FROM (
          SELECT own_text, party_id FROM fatura.invoices WHERE ${ofDay('given.day')} ${inOrder}) sorted) found
      WHERE found.texts IS NOT NULL
      ON CONFLICT (customer_id, day) DO UPDATE
        SET texts = excluded.texts, parties = excluded.parties, joined = excluded.joined,
          is_signed = excluded.is_signed AND stored.signed_size < ${leastSigned}
        WHERE (stored.joined, stored.parties) IS DISTINCT FROM (excluded.joined, excluded.parties)`,
    values: [customerId, days],
  })
  await signSome(client, customerId, days)
}

/** Signs days, if there are too many without signs. */
async function signSome(client: Asked, customerId: string, changed: readonly number[]): Promise<void> {
  const { rows } = await client.query<{ day: number }>({
    name: 'find-unsigned',
    text: 'SELECT s.day FROM fatura.search_days s WHERE s.customer_id = $1 AND NOT s.is_signed',
    values: [customerId],
  })
  const unsigned = rows.map(({ day }) => day)
  await signDays(client, customerId, chooseToSign(unsigned, new Set(changed)))
}

interface SignedDay {
  day: number
  signed_size: number
}

/** Drops what is more than days of some sizes have. */
async function dropParts(
  client: Asked,
  customerId: string,
  signed: readonly SignedDay[],
  sizeOf: (day: number) => number,
): Promise<void> {
  for (const { day, signed_size } of signed) {
    const [had, left] = [countParts(signed_size), countParts(sizeOf(day))]
    for (const kind of ['signs', 'words'] as const) {
      if (had[kind] <= left[kind]) continue
      await client.query({
        text: `
          DELETE FROM fatura.search_${kind} g WHERE g.customer_id = $1 AND g.day = $2
            AND g.part = ANY (ARRAY(SELECT generate_series($3::integer, ${mostParts - 1})))`,
        values: [customerId, day, left[kind]],
      })
    }
  }
}

/** Makes what a large customer's invoices are found by again, whatever was kept. */
export async function renewTexts(client: Asked, customerId: string): Promise<void> {
  for (const table of ['search_days', 'search_signs', 'search_words'])
    await client.query({ text: `DELETE FROM fatura.${table} WHERE customer_id = $1`, values: [customerId] })
  const { rows } = await client.query<{ day: number }>({
    text: `
      INSERT INTO fatura.search_days (customer_id, day, texts, parties, joined, is_signed)
      SELECT $1, day, ${dayTexts}, ${isTooSmall} FROM (
        SELECT ${dayOfIssue} AS day, issued_at, id, own_text, party_id FROM fatura.invoices WHERE customer_id = $1) given
      GROUP BY day RETURNING day`,
    values: [customerId],
  })
  await signSome(
    client,
    customerId,
    rows.map(({ day }) => day),
  )
}

/** How many days' texts are held at a time. */
const daysAtOnce = 50

/** What invoices of days are found by. */
const selectTexts = `
  SELECT s.day, s.signed_size, convert_from(s.joined, 'UTF8') AS texts, s.parties::text[] AS party_ids, (
    SELECT json_object_agg(y.party_id, y.text ORDER BY y.party_id)
    FROM (SELECT DISTINCT unnest(s.parties) AS party_id) p
    JOIN fatura.parties y ON y.customer_id = s.customer_id AND y.party_id = p.party_id) AS parties
  FROM fatura.search_days s WHERE s.customer_id = $1 AND s.day = ANY ($2::integer[])`

interface TextsRow extends SignedDay {
  texts: string
  party_ids: string[]
  parties: Record<string, string> | null
}

function textsOf({ texts, party_ids, parties }: TextsRow): DayTexts {
  const numbers = new Map(Object.keys(parties ?? {}).map((id, number) => [id, number]))
  return {
    texts: texts.split(textEnd).reverse(),
    parties: Object.values(parties ?? {}),
    partyOf: party_ids.map(id => numbers.get(id) ?? -1).reverse(),
  }
}

/** Parts of days, as columns. */
export interface Parts {
  parts: number[]
  days: number[]
  bits: Buffer[]
}

export interface Signs extends DayParts<Parts> {
  /** The days, how many invoices each has, and had when it was signed. */
  signed: (SignedDay & { size: number })[]
}

/** What is kept of days as it should be, some days at a time. */
export async function* makeSigns(
  client: Asked,
  customerId: string,
  days: readonly number[],
): AsyncGenerator<Signs> {
  for (let at = 0; at < days.length; at += daysAtOnce) {
    const { rows } = await client.query<TextsRow>({
      name: 'read-texts',
      text: selectTexts,
      values: [customerId, days.slice(at, at + daysAtOnce)],
    })
    const made: Signs = {
      signed: [],
      signs: { parts: [], days: [], bits: [] },
      words: { parts: [], days: [], bits: [] },
    }
    for (const row of rows) {
      const texts = textsOf(row)
      made.signed.push({ day: row.day, signed_size: row.signed_size, size: texts.texts.length })
      const { signs, words } = signDay(texts)
      addParts(made.signs, row.day, signs)
      addParts(made.words, row.day, words)
    }
    yield made
  }
}

function addParts(to: Parts, day: number, parts: readonly Uint8Array[]): void {
  for (const [part, bits] of parts.entries()) {
    to.parts.push(part)
    to.days.push(day)
    to.bits.push(Buffer.from(bits.buffer, bits.byteOffset, bits.byteLength))
  }
}

/** The days whose signs are those of their texts. */
export async function readSignedDays(client: Asked, customerId: string): Promise<number[]> {
  const { rows } = await client.query<{ day: number }>({
    text: 'SELECT day FROM fatura.search_days WHERE customer_id = $1 AND is_signed ORDER BY day',
    values: [customerId],
  })
  return rows.map(({ day }) => day)
}

/** As one value, and where each begins in it, from 1 on, and how long it is: a list of bytes would be written out as text. */
function joinBytes(bytes: readonly Buffer[]): [joined: Buffer, starts: number[], sizes: number[]] {
  let end = 1
  const starts = bytes.map(({ length }) => {
    end += length
    return end - length
  })
  return [Buffer.concat(bytes), starts, bytes.map(({ length }) => length)]
}

/** Puts what is kept of days as it should be now in the place of what was. Parts that are as before are not written. */
async function signDays(client: Asked, customerId: string, days: readonly number[]): Promise<void> {
  for await (const { signed, signs, words } of makeSigns(client, customerId, days)) {
    for (const [table, { parts, days, bits }] of [
      ['search_signs', signs],
      ['search_words', words],
    ] as const)
      if (parts.length > 0)
        await client.query({
          name: `save-${table}`,
          text: `
            INSERT INTO fatura.${table} AS stored (customer_id, part, day, bits)
            SELECT $1, given.part, given.day, substring($4::bytea FROM given.start FOR given.size)
            FROM unnest($2::integer[], $3::integer[], $5::integer[], $6::integer[]) AS given (part, day, start, size)
            ON CONFLICT (customer_id, part, day) DO UPDATE SET bits = excluded.bits WHERE stored.bits <> excluded.bits`,
          values: [customerId, parts, days, ...joinBytes(bits)],
        })
    const sizes = new Map(signed.map(({ day, size }) => [day, size]))
    await dropParts(client, customerId, signed, day => sizes.get(day) ?? 0)
    await client.query({
      name: 'note-signed',
      text: `
        UPDATE fatura.search_days s SET signed_size = given.size, is_signed = true
        FROM unnest($2::integer[], $3::integer[]) AS given (day, size) WHERE s.customer_id = $1 AND s.day = given.day`,
      values: [customerId, [...sizes.keys()], [...sizes.values()]],
    })
  }
}
