/** A search among a large customer's invoices, block by block. The caller holds a read transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { type Days, dayLength, everyDay } from '../read-model/counting.ts'
import { frequentPlace, readBits } from '../read-model/frequent-words.ts'
import { wordsLeft } from '../read-model/search.ts'
import { groupsOf, partOf } from '../read-model/search-signs.ts'
import type { InvoiceQuery } from '../store.ts'
import {
  blockColumns,
  findTexts,
  placeOf,
  type SearchBlock,
  type Sought,
  soughtWord,
} from './search-blocks.ts'

/** Up to this many parties, it is worth looking first whether all of them are meant. */
const partiesAtMost = 32

/** This few blocks are read faster than they are told apart further. */
const worthReading = 4

/** This many are read faster than their frequent words. */
const worthCounting = 256

/** Of each bit of a byte, all bytes that have it. */
const bytesWith = Array.from({ length: 8 }, (_, bit) =>
  Uint8Array.from({ length: 256 }, (_, byte) => byte).filter(byte => byte & (1 << bit)),
)

/** Work in small steps: the caller decides after each when to go on, if at all. */
export type Steps<Result> = Generator<void, Result, void>

export function searchCounted(db: DatabaseSync) {
  const readParties = db.prepare(`SELECT text FROM parties WHERE customer_id = ?1 LIMIT ${partiesAtMost + 1}`)
  const readFirsts = db.prepare(`
    SELECT first FROM search_blocks
    WHERE customer_id = ?1 AND first < ?3
      AND first >= (SELECT max(first) FROM search_blocks WHERE customer_id = ?1 AND first <= ?2)
    ORDER BY first DESC`)
  const readBlock = db.prepare(
    `SELECT ${blockColumns} FROM search_blocks WHERE customer_id = ?1 AND first = ?2`,
  )
  // SQL knows no bits of a blob: ?4 holds all bytes that have the bit.
  const hasBit = `instr(?4, substr(bits, 1 + ((CAST(?3 AS INTEGER) & (8 * length(bits) - 1)) >> 3), 1)) > 0`
  const findSigns = db.prepare(
    `SELECT first FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND ${hasBit}`,
  )
  const checkSign = db.prepare(
    `SELECT 1 FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND first = ?5 AND ${hasBit}`,
  )
  const readFrequent = db.prepare(
    'SELECT first, CAST(bits AS TEXT) AS words FROM search_signs WHERE customer_id = ?1 AND part = ?2',
  )
  const readSummary = db.prepare(`
    SELECT summary FROM invoices WHERE rowid = (
      SELECT rowid FROM invoices INDEXED BY invoices_in_order
      WHERE customer_id = ?1 AND issued_at >= ?2 AND issued_at < ?3
      ORDER BY issued_at DESC, id DESC LIMIT 1 OFFSET ?4)`)
  // Kept from search to search: making one for each block takes longer than looking through it.
  let found = new Uint8Array(4096)

  /** The first days of the blocks that words can be in; null where that is not known. */
  function findBlocks({ customer_id, words = [] }: InvoiceQuery): number[] | null {
    let left: number[] | null = null
    for (const group of groupsOf(words)) {
      const [part, bytes] = [partOf(group), bytesWith[group & 7] as Uint8Array]
      left =
        left === null
          ? findSigns.all(customer_id, part, group, bytes).map(({ first }) => Number(first))
          : left.filter(first => checkSign.get(customer_id, part, group, bytes, first) !== undefined)
      if (left.length <= worthReading) break
    }
    return left
  }

  /** The first days of all blocks that hold some of the days, the latest first. */
  function firstsOf(customerId: string, { first, end }: Days): number[] {
    return readFirsts.all(customerId, first, end).map(row => Number(row.first))
  }

  /** Of the blocks that keep the bits of each word, how many invoices have all of them. */
  function* countFrequent({ customer_id, words = [] }: InvoiceQuery): Steps<Map<number, number>> {
    let found: Map<number, Uint8Array> | null = null
    for (const word of words) {
      const place = frequentPlace(word)
      if (place === null) return new Map()
      const having = new Map<number, Uint8Array>()
      for (const { first, words } of readFrequent.all(customer_id, place.part)) {
        const [block, bits] = [Number(first), readBits(String(words), place.mark)]
        const others = found?.get(block)
        if (bits === null || (found !== null && others === undefined)) continue
        if (others !== undefined) keepCommon(bits, others)
        having.set(block, bits)
      }
      if (having.size === 0) return new Map()
      found = having
      yield
    }
    return new Map([...(found ?? [])].map(([first, bits]) => [first, countBits(bits)]))
  }

  return {
    /** Whether every party holds the words: then a search is a list. False also where there are too many to look at. */
    isEvery({ customer_id, words = [] }: InvoiceQuery): boolean {
      const parties = readParties.all(customer_id)
      return (
        parties.length <= partiesAtMost &&
        parties.every(({ text }) => wordsLeft(words, String(text)).length === 0)
      )
    },

    /** How many invoices are found, and a page's rows' texts from a place on. Stops after each block, and can be left there. */
    *find(query: InvoiceQuery, days: Days, skip: number): Steps<{ total: number; summaries: Uint8Array }> {
      const { customer_id, words = [], page_size } = query
      const isAnyDay = days.first === everyDay.first && days.end === everyDay.end
      const sought: Sought = {
        // What is longer is rarer: blocks without it are passed over at once.
        words: words.map(soughtWord).sort((a, b) => b.word.length - a.word.length),
        status: query.status,
        ix_status: query.ix_status,
        days: isAnyDay ? null : days,
      }
      const summaries: string[] = []
      let total = 0
      const signed = findBlocks(query)
      const among = signed && new Set(signed)
      const isOfAnyState = query.status === undefined && query.ix_status === undefined
      const isWorthCounting = isOfAnyState && (signed === null || signed.length > worthCounting)
      const frequent = isWorthCounting ? yield* countFrequent(query) : new Map<number, number>()
      let next = everyDay.end
      for (const first of signed !== null && !isWorthCounting
        ? signed.reverse()
        : firstsOf(customer_id, days)) {
        const before = next
        next = first
        if (among?.has(first) === false) continue
        const known = first >= days.first && before <= days.end ? frequent.get(first) : undefined
        if (known !== undefined && (total + known <= skip || total >= skip + page_size)) {
          total += known
          continue
        }
        const block = readBlock.get(customer_id, first) as unknown as SearchBlock
        if (found.length < block.marks.length) found = new Uint8Array(block.marks.length)
        const n = findTexts(block, sought, found)
        const end = Math.min(n, skip + page_size - total)
        for (let [nth, i] = [0, -1]; nth < end; nth++) {
          i = found.indexOf(1, i + 1)
          if (total + nth < skip) continue
          const { day, before } = placeOf(block, i)
          const row = readSummary.get(customer_id, day * dayLength, (day + 1) * dayLength, before)
          summaries.push(String(row?.summary))
        }
        total += n
        yield
      }
      return { total, summaries: Buffer.from(summaries.join(',')) }
    },
  }
}

/** How many bits each byte has. */
const bitsOf = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length)

function countBits(bytes: Uint8Array): number {
  let bits = 0
  for (const byte of bytes) bits += bitsOf[byte] as number
  return bits
}

function keepCommon(bytes: Uint8Array, others: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (bytes[i] as number) & (others[i] as number)
}
