/**
 * Frequent words are counted without reading texts. Of some hundred invoices, those that are found by a word are kept as a
 * row of bits, for each word that at least one in twenty has in its own text.
 */
import { type SearchWord, textEnd } from './search.ts'

/** What some hundred invoices are found by, in the list's order. */
export interface TextBlock {
  texts: readonly string[]
  /** The distinct texts of whom they are made out to, and which of these each invoice has. */
  parties: readonly string[]
  partyOf: ArrayLike<number>
  /** How many days they are of. */
  days: number
}

/** Up to this many invoices a day, all texts are read in a few milliseconds, and no words are kept. */
const leastADay = 256

/** A word is frequent when one in this many has it. */
const oneIn = 20

const longestWord = 8
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789_'
/** Which words are kept where they are frequent, as SQL writes it, too. */
export const keptWords = `^[${letters}]{1,${longestWord}}$`
const isKept = new RegExp(keptWords)

const endCode = textEnd.charCodeAt(0)
const noLetter = -1
const numberOfLetter = new Int8Array(256).fill(noLetter)
for (const [number, letter] of [...letters].entries()) numberOfLetter[letter.charCodeAt(0)] = number

/** The words are kept in parts, behind those of signs: short enough for a row of SQLite to lie within a page. */
const firstPart = 32
export const frequentParts = 64

function partOfWord(word: string): number {
  const [first, second, last] = [
    word.charCodeAt(0),
    word.charCodeAt(1) || 0,
    word.charCodeAt(word.length - 1),
  ]
  return firstPart + ((3 * first + 17 * second + 11 * last + 9 * word.length) % frequentParts)
}

/** The same in SQL. */
export function partInSql(word: string): string {
  const [second, last] = [`ascii(substr(${word}, 2, 1))`, `ascii(right(${word}, 1))`]
  return `${firstPart} + (3 * ascii(${word}) + 17 * ${second} + 11 * ${last} + 9 * length(${word})) % ${frequentParts}`
}

/** What a word's bits follow in its part; no letter of a word and no digit of the bits is one of these marks. */
const markOf = (word: string) => `\n${word}:`

/** Where a word's bits are, if it is frequent. Null for one that is never kept. */
export function frequentPlace([text, taxId]: SearchWord): { part: number; mark: string } | null {
  return taxId === null && isKept.test(text) ? { part: partOfWord(text), mark: markOf(text) } : null
}

/** A word's bits, the first invoice's the highest; null where the word is not frequent. */
export function readBits(part: string, mark: string): Uint8Array | null {
  const begin = part.indexOf(mark) + mark.length
  if (begin < mark.length) return null
  const end = part.indexOf('\n', begin)
  return Buffer.from(part.slice(begin, end === -1 ? undefined : end), 'hex')
}

/** The parts of a block's frequent words, by their numbers; none where all texts are read as fast. */
export function keepFrequent({ texts, parties, partyOf, days }: TextBlock): Map<number, string> {
  const parts = new Map<number, string>()
  if (texts.length < leastADay * days) return parts
  for (const [word, bits] of findFrequent(texts)) {
    const holds = parties.map(party => party.includes(word))
    if (holds.includes(true))
      for (let i = 0; i < texts.length; i++) if (holds[partyOf[i] as number]) setBit(bits, i)
    const part = partOfWord(word)
    parts.set(part, (parts.get(part) ?? '') + markOf(word) + bits.toString('hex'))
  }
  return parts
}

function setBit(bits: Uint8Array, index: number): void {
  bits[index >>> 3] = (bits[index >>> 3] as number) | (128 >>> (index & 7))
}

/** Each word that enough of the texts hold, and which do. A frequent word is a frequent one and a letter more. */
function findFrequent(texts: readonly string[]): Map<string, Buffer> {
  const all = new Map<string, Buffer>()
  // Whole numbers of 32 bits are counted faster than bytes.
  const size = 4 * Math.ceil(texts.length / 32)
  /** Keeps those of the words that are frequent; says the new number of each. */
  function keepEnough(bits: Uint8Array, nameOf: (word: number) => string): [string[], Int32Array] {
    const whole = new Uint32Array(bits.buffer)
    const numbers = new Int32Array(bits.length / size).fill(-1)
    const kept: string[] = []
    for (let word = 0; word < numbers.length; word++) {
      const n = countBits(whole, (word * size) / 4, size / 4)
      if (n === 0 || n * oneIn < texts.length) continue
      numbers[word] = kept.push(nameOf(word)) - 1
      all.set(nameOf(word), Buffer.from(bits.buffer, word * size, Math.ceil(texts.length / 8)))
    }
    return [kept, numbers]
  }

  // As bytes: those of other letters than ASCII's are none of ours.
  const joined = Buffer.from(texts.join(textEnd))
  const letterAt = new Int8Array(joined.length + longestWord).fill(noLetter)
  const textAt = new Uint32Array(joined.length)
  // Where a frequent word begins, and which one of those of its length. Of single letters, nearly all are frequent.
  const [begins, wordAt] = [new Uint32Array(joined.length), new Uint32Array(joined.length)]
  const ofLetters = new Uint8Array(letters.length * size)
  let left = 0
  for (let place = 0, text = 0; place < joined.length; place++) {
    const code = joined[place] as number
    if (code === endCode) text++
    const letter = numberOfLetter[code] as number
    if (letter === noLetter) continue
    const byte = letter * size + (text >>> 3)
    ofLetters[byte] = (ofLetters[byte] as number) | (128 >>> (text & 7))
    letterAt[place] = letter
    textAt[place] = text
    begins[left] = place
    wordAt[left++] = letter
  }
  keepEnough(ofLetters, letter => letters[letter] as string)
  let words: readonly string[] = [...letters]
  for (let length = 2; length <= longestWord && left > 0; length++) {
    const bits = new Uint8Array(words.length * letters.length * size)
    let begun = 0
    for (let i = 0; i < left; i++) {
      const place = begins[i] as number
      const letter = letterAt[place + length - 1] as number
      if (letter === noLetter) continue
      const word = (wordAt[i] as number) * letters.length + letter
      const text = textAt[place] as number
      const byte = word * size + (text >>> 3)
      bits[byte] = (bits[byte] as number) | (128 >>> (text & 7))
      begins[begun] = place
      wordAt[begun++] = word
    }
    const shorter = words
    const [kept, numbers] = keepEnough(
      bits,
      word => (shorter[Math.floor(word / letters.length)] as string) + letters[word % letters.length],
    )
    left = 0
    for (let i = 0; i < begun; i++) {
      const number = numbers[wordAt[i] as number] as number
      if (number === -1) continue
      begins[left] = begins[i] as number
      wordAt[left++] = number
    }
    words = kept
  }
  return all
}

function countBits(numbers: Uint32Array, first: number, length: number): number {
  let bits = 0
  for (let i = first; i < first + length; i++) {
    let n = numbers[i] as number
    if (n === 0) continue
    n -= (n >>> 1) & 0x55555555
    n = (n & 0x33333333) + ((n >>> 2) & 0x33333333)
    bits += Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
  }
  return bits
}
