/** A search among a large customer's invoices, day by day. The caller holds a read transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { type Days, dayLength, spans } from '../read-model/counting.ts'
import { wordsLeft } from '../read-model/search.ts'
import { byteOf, groupsOf, leastSigned, partOf } from '../read-model/search-signs.ts'
import type { InvoiceQuery } from '../store.ts'
import { type Foretold, foretell } from './foretell.ts'
import { dayColumns, findTexts, type SearchDay, type Sought, sizeOf, soughtWord } from './search-days.ts'

/** Up to this many parties, it is worth looking first whether all of them are meant. */
const partiesAtMost = 32

/** This few days are read faster than they are told apart further. */
const worthReading = 4

/** This many are read faster than what is kept of their words. */
const worthForetelling = 256

/** Of each bit of a byte, all bytes that have it. */
const bytesWith = Array.from({ length: 8 }, (_, bit) =>
  Uint8Array.from({ length: 256 }, (_, byte) => byte).filter(byte => byte & (1 << bit)),
)

/** Work in small steps: the caller decides after each when to go on, if at all. */
export type Steps<Result> = Generator<void, Result, void>

export function searchCounted(db: DatabaseSync) {
  const readParties = db.prepare(`SELECT text FROM parties WHERE customer_id = ?1 LIMIT ${partiesAtMost + 1}`)
  const readSizes = db.prepare(`
    SELECT start, n FROM counts
    WHERE customer_id = ?1 AND span = ${spans.day} AND status = '' AND ix = '' AND start >= ?2 AND start < ?3 AND n < ?4
    ORDER BY start DESC`)
  readSizes.setReturnArrays(true)
  const readUnsigned = db.prepare(
    'SELECT day FROM search_days WHERE customer_id = ?1 AND is_signed = 0 AND day >= ?2 AND day < ?3',
  )
  const readDay = db.prepare(`SELECT ${dayColumns} FROM search_days WHERE customer_id = ?1 AND day = ?2`)
  const readDays = db.prepare(`
    SELECT day, ${dayColumns} FROM search_days WHERE customer_id = ?1 AND day >= ?2 AND day <= ?3 ORDER BY day DESC`)
  // SQL knows no bits of a blob: ?4 holds all bytes that have the bit.
  const hasBit = 'instr(?4, substr(bits, 1 + CAST(?3 AS INTEGER) % length(bits), 1)) > 0'
  const findSigns = db.prepare(
    `SELECT day FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND ${hasBit}`,
  )
  const checkSign = db.prepare(
    `SELECT 1 FROM search_signs WHERE customer_id = ?1 AND part = ?2 AND day = ?5 AND ${hasBit}`,
  )
  const foretellDays = foretell(db)
  const readSummary = db.prepare(`
    SELECT summary FROM invoices WHERE rowid = (
      SELECT rowid FROM invoices INDEXED BY invoices_in_order
      WHERE customer_id = ?1 AND issued_at >= ?2 AND issued_at < ?3
      ORDER BY issued_at DESC, id DESC LIMIT 1 OFFSET ?4)`)
  // Kept from search to search: making one for each day takes longer than looking through it.
  let found = new Uint8Array(4096)

  /** The texts of the parties; null where there are too many to look at. */
  function readFewParties(customerId: string): string[] | null {
    const parties = readParties.all(customerId).map(({ text }) => String(text))
    return parties.length > partiesAtMost ? null : parties
  }

  /** The days whose signs have the words; null where signs tell nothing. */
  function findSigned({ customer_id, words = [] }: InvoiceQuery): number[] | null {
    // A word that a party holds is on all days of the party: signs tell nothing of it.
    const parties = readFewParties(customer_id) ?? []
    const own = words.filter(word => !parties.some(party => wordsLeft([word], party).length === 0))
    let left: number[] | null = null
    for (const group of groupsOf(own)) {
      const [part, byte, bytes] = [partOf(group), byteOf(group), bytesWith[group & 7] as Uint8Array]
      left =
        left === null
          ? findSigns.all(customer_id, part, byte, bytes).map(({ day }) => Number(day))
          : left.filter(day => checkSign.get(customer_id, part, byte, bytes, day) !== undefined)
      if (left.length <= worthReading) break
    }
    return left
  }

  /** How many invoices days have, the latest first: of those with fewer than some. */
  function sizesOf(customerId: string, { first, end }: Days, below: number): [day: number, n: number][] {
    return readSizes.all(customerId, first, end, below) as unknown as [number, number][]
  }

  /** Reads days one by one, as they are asked for, the latest first. Where most of them will be, they are read in a row: three times as fast. */
  function openDays(customerId: string, days: readonly number[], isMost: boolean) {
    const [latest, earliest] = [days[0] ?? 0, days.at(-1) ?? 0]
    const inRow = isMost ? readDays.iterate(customerId, earliest, latest) : null
    return {
      read(day: number): SearchDay {
        if (inRow === null) return readDay.get(customerId, day) as unknown as SearchDay
        for (;;) {
          const { value, done } = inRow.next()
          if (done) throw new Error('The texts of a customer are not complete. Run: fatura doctor --repair')
          if (value.day === day) return value as unknown as SearchDay
        }
      },
      close: () => inRow?.return?.(),
    }
  }

  return {
    /** Whether every party holds the words: then a search is a list. False also where there are too many to look at. */
    isEvery({ customer_id, words = [] }: InvoiceQuery): boolean {
      const parties = readFewParties(customer_id)
      return parties?.every(party => wordsLeft(words, party).length === 0) ?? false
    },

    /** How many invoices are found, and a page's rows' texts from a place on. Stops after each day that is read, and can be left there. */
    *find(query: InvoiceQuery, range: Days, skip: number): Steps<{ total: number; summaries: Uint8Array }> {
      const { customer_id, words = [], page_size, status, ix_status } = query
      // What is longer is rarer: days without it are passed over at once.
      const soughtWords = words.map(soughtWord).sort((a, b) => b.word.length - a.word.length)
      const sought: Sought = { words: soughtWords, status, ix_status }
      const isOfAnyState = status === undefined && ix_status === undefined
      const signed = findSigned(query)
      const isForetold = signed === null || signed.length > worthForetelling
      const sizes = sizesOf(customer_id, range, isForetold ? Number.MAX_SAFE_INTEGER : leastSigned)
      // What is kept of these is of other texts.
      const unsigned = readUnsigned.all(customer_id, range.first, range.end).map(({ day }) => Number(day))
      const chosen = chooseDays(sizes, signed, unsigned, range)
      const foretold = isForetold
        ? yield* foretellDays(customer_id, words, sizesAmong(sizes, chosen))
        : new Map<number, Foretold>()
      for (const day of unsigned) foretold.delete(day)
      const days = chosen.filter(day => foretold.get(day)?.count !== 0)
      const isCounted = (day: number) => isOfAnyState && foretold.get(day)?.isExact === true
      const isMost = isForetold && 3 * days.filter(day => !isCounted(day)).length > sizes.length
      const read = openDays(customer_id, days, isMost)
      const summaries: string[] = []
      let total = 0
      try {
        for (const day of days) {
          const told = foretold.get(day)
          if (told && isCounted(day) && (total + told.count <= skip || total >= skip + page_size)) {
            total += told.count
            continue
          }
          const texts = read.read(day)
          if (found.length < sizeOf(texts)) found = new Uint8Array(sizeOf(texts))
          const n = findTexts(texts, sought, found, told?.bits)
          const end = Math.min(n, skip + page_size - total)
          for (let [nth, i] = [0, -1]; nth < end; nth++) {
            i = found.indexOf(1, i + 1)
            if (total + nth < skip) continue
            const row = readSummary.get(customer_id, day * dayLength, (day + 1) * dayLength, i)
            summaries.push(String(row?.summary))
          }
          total += n
          yield
        }
      } finally {
        read.close()
      }
      return { total, summaries: Buffer.from(summaries.join(',')) }
    },
  }
}

/** The days to look at, the latest first: those whose signs have the words, and those without signs. */
function chooseDays(
  sizes: readonly (readonly [day: number, n: number])[],
  signed: readonly number[] | null,
  unsigned: readonly number[],
  { first, end }: Days,
): number[] {
  if (signed === null) return sizes.map(([day]) => day)
  const small = sizes.filter(([, n]) => n < leastSigned).map(([day]) => day)
  const days = new Set([...signed.filter(day => day >= first && day < end), ...small, ...unsigned])
  return [...days].sort((a, b) => b - a)
}

function sizesAmong(
  sizes: readonly (readonly [day: number, n: number])[],
  days: readonly number[],
): Map<number, number> {
  const among = new Set(days)
  return new Map(sizes.filter(([day]) => among.has(day)))
}
