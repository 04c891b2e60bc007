/** What is known of a day without reading its texts: who can hold the words of a search. The caller holds a read transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { spans } from '../read-model/counting.ts'
import { countBits, frequentPlace, readBits } from '../read-model/frequent-words.ts'
import { addParties, partyPart } from '../read-model/party-bits.ts'
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

/** Of one word, by the day: who has it; and who can have it, of the days of which that is all that is known. */
interface Told {
  exact: BitsOfDays
  possible: BitsOfDays
}

/** So few days are read faster than what else is kept of a word. */
const fewDays = 64

/** Up to this many parties that hold a word, it is worth looking who is theirs. */
const holdersAtMost = 32

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
  const findHolders = db.prepare(
    `SELECT party_id FROM parties WHERE customer_id = ?1 AND instr(text, ?2) > 0 LIMIT ${holdersAtMost + 1}`,
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

  function readParts(customerId: string, part: number): [day: number, bytes: Uint8Array][] {
    return readPart.all(customerId, part) as unknown as [number, Uint8Array][]
  }

  function readShortOnes(
    customerId: string,
    place: ShortPlace,
    sizes: ReadonlyMap<number, number>,
  ): BitsOfDays {
    const found: BitsOfDays = new Map()
    for (const [day, part] of readParts(customerId, place.part)) {
      const size = sizes.get(day)
      if (size !== undefined) found.set(day, readShort(part, place, size))
    }
    return found
  }

  /** The parties that have it in their text. */
  function readHolders(customerId: string, word: SearchWord): Set<string> {
    const rows = formsOf(word).flatMap(form => findHolders.all(customerId, form))
    return new Set(rows.map(({ party_id }) => String(party_id)))
  }

  function readWord(customerId: string, word: SearchWord, sizes: ReadonlyMap<number, number>): Told {
    const holders = readHolders(customerId, word)
    const place = shortPlace(word)
    if (place !== null && holders.size === 0)
      return { exact: readShortOnes(customerId, place, sizes), possible: new Map() }
    if (holders.size > 0 && holders.size <= holdersAtMost) {
      const told = readHeld(customerId, word, holders, sizes)
      if (told.exact.size > 0 && told.possible.size <= fewDays) return told
    }
    const { found: exact, others } = readFrequent(customerId, word, sizes)
    const isWorth = others > fewDays && holders.size === 0
    return { exact, possible: isWorth ? readFours(customerId, word, sizes) : new Map() }
  }

  /** Who has the first and the last four letters of a longer word. */
  function readFours(customerId: string, word: SearchWord, sizes: ReadonlyMap<number, number>): BitsOfDays {
    const [first, last] = foursOf(word) ?? []
    if (first === undefined || last === undefined) return new Map()
    // The last ones are rarer: numbers differ at their ends.
    const found = readShortOnes(customerId, last, sizes)
    const some = found.values().filter(bits => bits.some(byte => byte !== 0))
    if (some.drop(fewDays).next().done) return found
    for (const [day, bits] of readShortOnes(customerId, first, sizes))
      keepCommon(found.get(day) ?? bits, bits)
    return found
  }

  /** Of a word that parties hold: those who are made out to them, and those who have it themselves. */
  function readHeld(
    customerId: string,
    word: SearchWord,
    holders: ReadonlySet<string>,
    sizes: ReadonlyMap<number, number>,
  ): Told {
    const told: Told = { exact: new Map(), possible: new Map() }
    const place = shortPlace(word)
    const own = place === null ? readFours(customerId, word, sizes) : readShortOnes(customerId, place, sizes)
    for (const [day, part] of own.size === 0 ? [] : readParts(customerId, partyPart)) {
      const bits = own.get(day)
      if (bits === undefined || part.length === 0) continue
      const isSure = place !== null || bits.every(byte => byte === 0)
      addParties(bits, part, holders)
      told[isSure ? 'exact' : 'possible'].set(day, bits)
    }
    return told
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
