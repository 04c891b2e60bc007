/**
 * Frequent words are counted without reading texts. Of a day's invoices, those that are found by a word are kept as a
 * row of bits, for each word that at least one in twenty has in its own text; and for each single letter that anyone has.
 */
import { type DayTexts, type Letters, letters, longestWord, noLetter, setBit, writeBits } from './letters.ts'
import type { SearchWord } from './search.ts'
import { type Fours, isOfLetters, nameFour, sharing } from './short-words.ts'

/** A word is frequent when one in this many has it. */
const oneIn = 20

/** Which words are kept where they are frequent, as SQL writes it, too. */
export const keptWords = `^[${letters}]{1,${longestWord}}$`
const isKept = new RegExp(keptWords)

/** The words are kept in parts, from 0 on: short enough to be read at once, and few enough to be written fast. */
export const frequentParts = 32

function partOfWord(word: string): number {
  const [first, second, last] = [
    word.charCodeAt(0),
    word.charCodeAt(1) || 0,
    word.charCodeAt(word.length - 1),
  ]
  return (3 * first + 17 * second + 11 * last + 9 * word.length) % frequentParts
}

/** The same in SQL. */
export function partInSql(word: string): string {
  const [second, last] = [`ascii(substr(${word}, 2, 1))`, `ascii(right(${word}, 1))`]
  return `(3 * ascii(${word}) + 17 * ${second} + 11 * ${last} + 9 * length(${word})) % ${frequentParts}`
}

/** What a word's bits follow in its part; no letter of a word and no digit of the bits is one of these marks. */
const markOf = (word: string) => `\n${word}:`

export interface FrequentPlace {
  part: number
  mark: string
  /** Whether the word is a single letter. */
  isLetter: boolean
}

/** Where a word's bits are, if it is frequent. Null for one that is never kept. */
export function frequentPlace([text, taxId]: SearchWord): FrequentPlace | null {
  if (taxId !== null || !isKept.test(text)) return null
  return { part: partOfWord(text), mark: markOf(text), isLetter: text.length === 1 }
}

const nobody = new Uint8Array()

/**
 * A word's bits, of what follows its mark in its part, null where the mark is not: then the word is not frequent, or, if it is a single
 * letter, nobody has it.
 */
export function readBits(marked: string | null, { isLetter }: FrequentPlace): Uint8Array | null {
  if (marked === null) return isLetter ? nobody : null
  const end = marked.indexOf('\n')
  return Buffer.from(end === -1 ? marked : marked.slice(0, end), 'hex')
}

/** The frequent words of a day, in their parts. Every part is there, also one without a word. */
export function keepFrequent({ texts, parties, partyOf }: DayTexts, run: Letters, fours: Fours): Buffer[] {
  const parts: string[] = Array(frequentParts).fill('')
  const found = findFrequent(run, fours)
  for (const letter of letters)
    if (!found.has(letter) && parties.some(party => party.includes(letter)))
      found.set(letter, Buffer.alloc(Math.ceil(texts.length / 8)))
  for (const [word, bits] of found) {
    const holds = parties.map(party => party.includes(word))
    if (holds.includes(true))
      for (let i = 0; i < texts.length; i++)
        if (holds[partyOf[i] as number]) setBit(bits, texts.length - 1 - i)
    parts[partOfWord(word)] += markOf(word) + writeBits(bits)
  }
  return parts.map(words => Buffer.from(words))
}

/** Each word that enough of the texts hold, and which do. */
function findFrequent(run: Letters, fours: Fours): Map<string, Buffer> {
  const found = new Map<string, Buffer>()
  const least = run.texts / oneIn
  keepLetters(run, found)
  keepLonger(run, fours, keepShortOnes(run, fours, least, found), least, found)
  return found
}

function keepLetters({ texts, at, textAt }: Letters, found: Map<string, Buffer>): void {
  const size = Math.ceil(texts / 8)
  const bits = Buffer.alloc(letters.length * size)
  const isHeld = new Uint8Array(letters.length)
  for (let place = 0; place < textAt.length; place++) {
    const letter = at[place] as number
    if (letter === noLetter) continue
    const text = textAt[place] as number
    const byte = letter * size + (text >>> 3)
    bits[byte] = (bits[byte] as number) | (128 >>> (text & 7))
    isHeld[letter] = 1
  }
  for (let letter = 0; letter < letters.length; letter++)
    if (isHeld[letter])
      found.set(letters[letter] as string, bits.subarray(letter * size, (letter + 1) * size))
}

/** A word of four letters, and where it stands among the fours. */
interface FourLetters {
  word: string
  start: number
  end: number
}

/** Keeps frequent words of two to four letters; says those of four. */
function keepShortOnes(
  { texts, textAt }: Letters,
  { fours, places }: Fours,
  least: number,
  found: Map<string, Buffer>,
): FourLetters[] {
  const words: FourLetters[] = []
  /** Among those from a place on: all that share their first letters, then of these all that share one more. */
  function keepWithin(from: number, to: number, letterCount: 2 | 3 | 4): void {
    const of = sharing[letterCount]
    for (let start = from, end = from; start < to; start = end) {
      const four = fours[start] as number
      const next = four - (four % of) + of
      while (end < to && (fours[end] as number) < next) end++
      // Who has the letters twice is counted twice here: more than enough may still be too few.
      if (end - start < least || !isOfLetters(four, letterCount)) continue
      const bits = Buffer.alloc(Math.ceil(texts / 8))
      for (let i = start; i < end; i++) setBit(bits, textAt[places[i] as number] as number)
      if (countBits(bits) < least) continue
      const word = nameFour(four).slice(0, letterCount)
      found.set(word, bits)
      if (letterCount === 4) words.push({ word, start, end })
      else keepWithin(start, end, letterCount === 2 ? 3 : 4)
    }
  }
  keepWithin(0, fours.length, 2)
  return words
}

/** A frequent word of more than four letters is a frequent one and a letter more. */
function keepLonger(
  { texts, at, textAt }: Letters,
  { places }: Fours,
  ofFourLetters: readonly FourLetters[],
  least: number,
  found: Map<string, Buffer>,
): void {
  // Where a frequent word begins, and which one of those of its length.
  const [begins, wordAt] = [new Uint32Array(textAt.length), new Uint32Array(textAt.length)]
  let left = 0
  for (const [word, { start, end }] of ofFourLetters.entries()) {
    begins.set(places.subarray(start, end), left)
    wordAt.fill(word, left, left + end - start)
    left += end - start
  }
  let words = ofFourLetters.map(({ word }) => word)
  for (let length = 5; length <= longestWord && left > 0; length++) {
    const counts = new Uint32Array(words.length * letters.length)
    // Of each word, the last text that has it, and one more: a text counts once.
    const last = new Uint32Array(counts.length)
    let begun = 0
    for (let i = 0; i < left; i++) {
      const place = begins[i] as number
      const letter = at[place + length - 1] as number
      if (letter === noLetter) continue
      const word = (wordAt[i] as number) * letters.length + letter
      const text = textAt[place] as number
      if (last[word] !== text + 1) counts[word] = (counts[word] as number) + 1
      last[word] = text + 1
      begins[begun] = place
      wordAt[begun++] = word
    }
    const numbers = new Int32Array(counts.length).fill(-1)
    const [names, bits]: [string[], Buffer[]] = [[], []]
    for (let word = 0; word < counts.length; word++) {
      if (counts[word] === 0 || (counts[word] as number) < least) continue
      const name = (words[Math.floor(word / letters.length)] as string) + letters[word % letters.length]
      const ofWord = Buffer.alloc(Math.ceil(texts / 8))
      numbers[word] = names.push(name) - 1
      bits.push(ofWord)
      found.set(name, ofWord)
    }
    left = 0
    for (let i = 0; i < begun; i++) {
      const number = numbers[wordAt[i] as number] as number
      if (number === -1) continue
      const place = begins[i] as number
      setBit(bits[number] as Buffer, textAt[place] as number)
      begins[left] = place
      wordAt[left++] = number
    }
    words = names
  }
}

/** How many bits each byte has. */
const bitsIn = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll('0', '').length)

export function countBits(bytes: Uint8Array): number {
  let bits = 0
  for (let i = 0; i < bytes.length; i++) bits += bitsIn[bytes[i] as number] as number
  return bits
}
