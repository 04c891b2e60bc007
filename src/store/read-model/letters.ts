/** The letters that words are kept of, in the texts of a day's invoices. */
import { textEnd } from './search.ts'

/** What the invoices of a day are found by, in the list's order. */
export interface DayTexts {
  texts: readonly string[]
  /** The distinct texts of whom they are made out to, and which of these each invoice has. */
  parties: readonly string[]
  partyOf: ArrayLike<number>
}

export const letters = 'abcdefghijklmnopqrstuvwxyz0123456789_'

/** The longest word that is kept of frequent ones. */
export const longestWord = 8

const endCode = textEnd.charCodeAt(0)
export const noLetter = -1
const numberOfLetter = new Int8Array(256).fill(noLetter)
for (const [number, letter] of [...letters].entries()) numberOfLetter[letter.charCodeAt(0)] = number

/** Each letter of texts, and whose it is. */
export interface Letters {
  texts: number
  /** By the place in all texts: the letter's number, or none. Goes on with none for as long as a word can be. */
  at: Int8Array
  /** By the same place. Texts are numbered from the last one on: a new invoice comes first, and leaves all numbers as they are. */
  textAt: Uint32Array
}

export function readLetters(texts: readonly string[]): Letters {
  // As bytes: those of other letters than ASCII's are none of ours.
  const joined = Buffer.from(texts.toReversed().join(textEnd))
  const at = new Int8Array(joined.length + longestWord).fill(noLetter)
  const textAt = new Uint32Array(joined.length)
  for (let place = 0, text = 0; place < joined.length; place++) {
    const code = joined[place] as number
    if (code === endCode) text++
    at[place] = numberOfLetter[code] as number
    textAt[place] = text
  }
  return { texts: texts.length, at, textAt }
}

/** Bits of texts: one for each, that of text 0 the highest of the first byte. */
export function setBit(bits: Uint8Array, text: number): void {
  bits[text >>> 3] = (bits[text >>> 3] as number) | (128 >>> (text & 7))
}

export function hasBit(bits: Uint8Array, text: number): boolean {
  return ((bits[text >>> 3] ?? 0) & (128 >>> (text & 7))) !== 0
}

/** As hexadecimal digits. What ends with nobody is left out: so they stay as they are when somebody comes who has no bit. */
export function writeBits(bits: Buffer): string {
  return bits.toString('hex', 0, bits.findLastIndex(byte => byte !== 0) + 1)
}
