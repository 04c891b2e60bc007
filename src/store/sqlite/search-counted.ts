/** A search among a large customer's invoices, block by block. The caller holds a read transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { type Days, dayLength, everyDay } from '../read-model/counting.ts'
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

/** Of each bit of a byte, all bytes that have it. */
const bytesWith = Array.from({ length: 8 }, (_, bit) =>
  Uint8Array.from({ length: 256 }, (_, byte) => byte).filter(byte => byte & (1 << bit)),
)

/** Work in small steps: the caller decides after each when to go on, if at all. */
export type Steps<Result> = Generator<void, Result, void>

export function searchCounted(db: DatabaseSync) {
  const readParties = db.prepare(`SELECT text FROM parties WHERE customer_id = ?1 LIMIT ${partiesAtMost + 1}`)
  const readBlocks = db.prepare(`
    SELECT ${blockColumns} FROM search_blocks
    WHERE customer_id = ?1 AND first < ?3
      AND first >= (SELECT max(first) FROM search_blocks WHERE customer_id = ?1 AND first <= ?2)
      AND (?4 IS NULL OR first IN (SELECT value FROM json_each(?4)))
    ORDER BY first DESC`)
  // SQL knows no bits of a blob: ?4 holds all bytes that have the bit.
  const hasBit = `instr(?4, substr(bits, 1 + ((CAST(?3 AS INTEGER) & (8 * length(bits) - 1)) >> 3), 1)) > 0`
  const findSigns = db.prepare(
    `SELECT first FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND ${hasBit}`,
  )
  const checkSign = db.prepare(
    `SELECT 1 FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND first = ?5 AND ${hasBit}`,
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
      const blocks = findBlocks(query)
      const among = blocks === null ? null : JSON.stringify(blocks)
      for (const row of readBlocks.iterate(customer_id, days.first, days.end, among)) {
        const block = row as unknown as SearchBlock
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
