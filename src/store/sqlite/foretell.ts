/** What is known of a day without reading its texts: who can hold the words of a search. The caller holds a read transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { spans } from '../read-model/counting.ts'
import { countBits, frequentPlace, readBits } from '../read-model/frequent-words.ts'
import { formsOf, type SearchWord } from '../read-model/search.ts'
import { foursOf, readShort, type ShortPlace, shortPlace } from '../read-model/short-words.ts'

export interface Foretold {
  /** Who can hold the words: one bit for each invoice of the day, that of the last one in the list first. */
  bits: Uint8Array
  count: number
  /** Whether they do hold them. */
  isExact: boolean
}

type BitsOfDays = Map<number, Uint8Array>

/** So few days are read faster than what else is kept of a word. */
const fewDays = 64

export function foretell(db: DatabaseSync) {
  const partOfDays = `FROM counts c CROSS JOIN search_words w
      ON w.customer_id = c.customer_id AND w.day = c.start AND w.part = ?2
    WHERE c.customer_id = ?1 AND c.span = ${spans.day} AND c.status = '' AND c.ix = ''`
  const readPart = db.prepare(`SELECT w.day, w.bits ${partOfDays}`)
  // To cut a word's bits out here takes half as long.
  const readMarked = db.prepare(
    `SELECT w.day, CAST(substr(w.bits, nullif(instr(w.bits, ?3), 0) + length(?3), ?4) AS TEXT) ${partOfDays}`,
  )
  for (const statement of [readPart, readMarked]) statement.setReturnArrays(true)
  const findHolder = db.prepare(
    'SELECT 1 FROM parties WHERE customer_id = ?1 AND instr(text, ?2) > 0 LIMIT 1',
  )

  /** Who is found by a word on days on which it is frequent, and how many other days keep words. */
  function readFrequent(
    customerId: string,
    word: SearchWord,
    sizes: ReadonlyMap<number, number>,
  ): { found: BitsOfDays; others: number } {
    const found: BitsOfDays = new Map()
    const place = frequentPlace(word)
    if (place === null) return { found, others: sizes.size }
    const mostDigits = 2 * Math.ceil(Math.max(...sizes.values()) / 8)
    const rows = readMarked.all(customerId, place.part, Buffer.from(place.mark), mostDigits)
    let others = 0
    for (const [day, digits] of rows as unknown as [number, string | null][]) {
      if (!sizes.has(day)) continue
      const bits = readBits(digits, place)
      if (bits === null) others++
      else found.set(day, bits)
    }
    return { found, others }
  }

  function readShortOnes(
    customerId: string,
    place: ShortPlace,
    sizes: ReadonlyMap<number, number>,
  ): BitsOfDays {
    const found: BitsOfDays = new Map()
    const rows = readPart.all(customerId, place.part) as unknown as [number, Uint8Array][]
    for (const [day, part] of rows) {
      const size = sizes.get(day)
      if (size !== undefined) found.set(day, readShort(part, place, size))
    }
    return found
  }

  /** Whether any party has it in its text. */
  function isHeld(customerId: string, word: SearchWord): boolean {
    return formsOf(word).some(form => findHolder.get(customerId, form) !== undefined)
  }

  /** Of one word, by the day: who has it; and who can have it, of the days of which that is all that is known. */
  function readWord(
    customerId: string,
    word: SearchWord,
    sizes: ReadonlyMap<number, number>,
  ): { exact: BitsOfDays; possible: BitsOfDays } {
    const isOwn = !isHeld(customerId, word)
    const place = isOwn ? shortPlace(word) : null
    if (place !== null) return { exact: readShortOnes(customerId, place, sizes), possible: new Map() }
    const { found: exact, others } = readFrequent(customerId, word, sizes)
    if (others <= fewDays || !isOwn) return { exact, possible: new Map() }
    const [first, last] = (foursOf(word) ?? []).map(place => readShortOnes(customerId, place, sizes))
    for (const [day, bits] of first ?? []) keepCommon(bits, last?.get(day) ?? bits)
    return { exact, possible: first ?? new Map() }
  }

  /** By the day, where something is known. `sizes` tells how many invoices the days have that matter. Stops after each word. */
  return function* (
    customerId: string,
    words: readonly SearchWord[],
    sizes: ReadonlyMap<number, number>,
  ): Generator<void, Map<number, Foretold>, void> {
    const all = new Map<number, Foretold>()
    for (const [i, word] of words.entries()) {
      const { exact, possible } = readWord(customerId, word, sizes)
      for (const day of sizes.keys()) {
        const bits = exact.get(day) ?? possible.get(day)
        const told = all.get(day)
        if (bits === undefined) {
          if (told !== undefined) told.isExact = false
        } else if (told === undefined) {
          all.set(day, { bits, count: 0, isExact: i === 0 && exact.has(day) })
        } else {
          keepCommon(told.bits, bits)
          told.isExact &&= exact.has(day)
        }
      }
      yield
    }
    for (const told of all.values()) told.count = countBits(told.bits)
    return all
  }
}

function keepCommon(bytes: Uint8Array, others: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (bytes[i] as number) & (others[i] ?? 0)
}
